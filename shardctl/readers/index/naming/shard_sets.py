"""Files that are the shards of one thing, by their names: which number counts them?

Where a name says `3-of-8` that is the number. Elsewhere it is the one that varies: a year or a
resolution that all names share counts nothing. Where several numbers vary and none of them tells
the files apart, nobody can say.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from shardctl.files.stores.stored_files import StoredFiles, as_bytes
from shardctl.readers.index.naming.shapes import RANDOM, Shape


@dataclass(kw_only=True)
class ShardSet:
    """The files of a folder that are numbered as one.

    text: their name, with a mark for the number, and for the number of shards where it is said.
    numbers: the number of each, None where nothing is counted; totals: how many there are, by each
    name. unclear: several numbers vary, and none of them counts the files.
    texts: how the names are written, those of a compressed copy too.
    """

    folder: int
    text: str
    places: array[int]
    numbers: array[int] | None = None
    totals: array[int] | None = None
    widths: tuple[int, int] = (0, 0)
    total_widths: tuple[int, int] = (0, 0)
    random: list[str] | None = None
    unclear: bool = False
    texts: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return len(self.places)

    def join(self, other: ShardSet) -> None:
        """Take the files of another set that nothing counts either."""
        self.places.extend(other.places)
        self.random = self.random if self.random == other.random else None
        self.texts |= other.texts
        self.unclear |= other.unclear

    @property
    def same_widths(self) -> bool:
        """Whether an order of the names by their bytes is one by their numbers."""
        return len(self.texts) == 1 and self.widths[0] == self.widths[1] and not self.unclear


def sets_of(shapes: Iterable[Shape]) -> list[ShardSet]:
    """Return the sets of shards that the files of some shapes make up."""
    return [found for shape in shapes for found in _sets(shape)]


def _sets(shape: Shape) -> Iterator[ShardSet]:
    varying = _unlike(shape, shape.varying())
    pair = shape.pair
    if pair is None:
        yield from _numbered(shape, varying)
        return
    rest = [at for at in varying if at not in pair]
    # What follows the pair and is another in every file, a time or a count, tells no sets apart.
    noise = [at for at in rest if at > pair[1] and _all_unlike(shape.numbers[at])]
    apart = [at for at in rest if at not in noise]
    groups: dict[tuple[int, ...], list[int]] = {}
    if apart:
        for row in range(len(shape.places)):
            groups.setdefault(tuple(shape.numbers[at][row] for at in apart), []).append(row)
    for rows in groups.values() if apart else (range(len(shape.places)),):
        yield _set(shape, rows, pair[0], marks=(*pair, *noise), total=pair[1])


def _numbered(shape: Shape, varying: list[int]) -> Iterator[ShardSet]:
    """Yield the sets of names that do not say `X-of-Y`."""
    rows = range(len(shape.places))
    if not varying:
        wide = [at for at, (least, most) in enumerate(shape.widths) if least != most]
        yield _set(shape, rows, wide[-1] if wide else None, marks=wide)
        return
    index = varying[0] if len(varying) == 1 else _consecutive(shape, varying)
    groups = _sequences(shape, varying) if index is None else []
    for group in groups:
        yield _set(shape, group, varying[-1], marks=varying[-1:])
    if not groups:
        yield replace(_set(shape, rows, index, marks=varying), unclear=index is None)


def _consecutive(shape: Shape, varying: list[int]) -> int | None:
    """Return which of several varying numbers counts the files, None where that is not certain."""
    # A shard and its compressed copy have the same numbers.
    num_shards = len(set(zip(*(shape.numbers[at] for at in varying), strict=True)))
    found = [at for at in varying if len(set(shape.numbers[at])) == num_shards]
    found = [at for at in found if _is_consecutive(shape.numbers[at])]
    if not found:
        return None
    first = shape.numbers[found[0]]
    order = sorted(range(len(first)), key=first.__getitem__)
    for at in found[1:]:
        numbers = shape.numbers[at]
        if any(numbers[a] > numbers[b] for a, b in pairwise(order)):
            return None
    return found[0]


def _sequences(shape: Shape, varying: list[int]) -> list[list[int]]:
    """Return the rows of each of several sequences, none where there are no such.

    As those of `img-256-0`, `img-256-1`, `img-512-0`, `img-512-1`: the last number begins anew.
    """
    *outer, inner = varying
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(len(shape.places)):
        groups.setdefault(tuple(shape.numbers[at][row] for at in outer), []).append(row)
    numbers = shape.numbers[inner]
    counted_files = sum(
        len(rows)
        for rows in groups.values()
        if len(rows) > 1 and _is_consecutive(array("q", (numbers[row] for row in rows)))
    )
    return list(groups.values()) if 2 * counted_files >= len(shape.places) else []


def _set(
    shape: Shape,
    rows: Sequence[int],
    index: int | None,
    *,
    marks: Sequence[int],
    total: int | None = None,
) -> ShardSet:
    def column(numbers: array[int]) -> array[int]:
        return numbers if len(rows) == len(numbers) else array("q", map(numbers.__getitem__, rows))

    text = shape.text_of(rows[0], marks)
    return ShardSet(
        folder=shape.folder,
        text=text,
        places=column(shape.places),
        numbers=None if index is None else column(shape.numbers[index]),
        totals=None if total is None else column(shape.numbers[total]),
        widths=(0, 0) if index is None else shape.widths[index],
        total_widths=(0, 0) if total is None else shape.widths[total],
        random=shape.random,
        texts={text + ending for ending in shape.endings},
    )


def _unlike(shape: Shape, columns: list[int]) -> list[int]:
    """Return columns without those that repeat an earlier one, as in `256x256`."""
    kept: list[int] = []
    for at in columns:
        if all(shape.numbers[at] != shape.numbers[other] for other in kept):
            kept.append(at)
    return kept


def unnumbered(files: StoredFiles, places: Sequence[int]) -> ShardSet:
    """Return files as a set in which nothing counts, whatever their names are."""
    names = (name for _, name in files.chosen(places).folders_and_names())
    return ShardSet(
        folder=0,
        text=RANDOM,
        places=array("q", places),
        texts={RANDOM + name[max(name.rfind("."), 0) :] for name in names},
    )


def _all_unlike(numbers: array[int]) -> bool:
    return len(set(numbers)) == len(numbers)


def _is_consecutive(numbers: array[int]) -> bool:
    return max(numbers) - min(numbers) + 1 == len(set(numbers))


def ordered(files: StoredFiles, found: ShardSet) -> list[int]:
    """Return the rows of a set in shard order; those of the same number by their names."""
    rows = range(len(found))
    numbers = found.numbers
    if numbers is None:
        return sorted(rows, key=lambda row: as_bytes(files.path(found.places[row])))
    order = sorted(rows, key=numbers.__getitem__)
    if any(numbers[a] == numbers[b] for a, b in pairwise(order)):
        order.sort(key=lambda row: (numbers[row], as_bytes(files.path(found.places[row]))))
    return order
