"""Record files grouped by their names: those that are alike but for a number are one set of shards.

Where a name holds `3-of-8` that is the number of the shard; elsewhere it is the one that varies: a
year or a resolution that all names share counts nothing. Words that are drawn at random (UUIDs,
hashes) neither make files unlike nor are taken for numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from shardctl.base.text import quoted
from shardctl.errors import DatasetError
from shardctl.metadata.index.name_words import NUMBER, RANDOM
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import as_bytes, split_path

MOST_SHAPES = 10_000  # that are looked at; names of more follow no convention
_NUMBER = re.compile("[0-9]+")
# UUIDs; hex words of 8 to 64 characters with at least one letter and one digit; what Hugging Face
# adds behind `-of-00001-`.
_RANDOM = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,64})(?![0-9A-Za-z])"
    r"|(?<=-of-[0-9]{5}-)[0-9a-f]{16}(?![0-9A-Za-z])"
    r"|[0-9]{19,}"  # more than an int64 takes
)
# Behind a shard's file when it was compressed; the same shard with and without is there twice.
COMPRESSED = re.compile(r"\.(?:gz|gzip|zlib|zz|zst|zstd|bz2|xz|snappy)$", re.IGNORECASE)
_PAIR = re.compile(f"{NUMBER}[-_]of[-_]{NUMBER}")


def path_key(file: StoredFile) -> bytes:
    """Return what files are sorted by where nothing counts them: their path by bytes."""
    return as_bytes(file.path)


def glob_of(text: str) -> str:
    """Return the glob of names: what a glob would take for something else is in brackets."""
    return re.sub(f"[{NUMBER}{RANDOM}]", "*", re.sub(r"[*?\[]", r"[\g<0>]", text))


@dataclass(kw_only=True)
class ShardSet:
    """The files of a folder that are numbered as one, in shard order.

    folder: below the root. text: their name, with a mark for the number, and for the number of
    shards where it is there. numbers: the number of each, None where nothing is counted; totals:
    how many there are, by each name. words_differ: random words do. unclear:
    several numbers vary, and none of them counts the files. texts: how the names are written, those
    of a compressed copy too.
    """

    folder: str
    text: str
    files: list[StoredFile]
    numbers: list[int] | None = None
    totals: list[int] | None = None
    words_differ: bool = False
    unclear: bool = False
    texts: set[str] = field(default_factory=set)

    def join(self, other: ShardSet) -> None:
        """Take the files of another set that nothing counts either."""
        self.files = sorted(self.files + other.files, key=path_key)
        self.texts |= other.texts
        self.unclear |= other.unclear

    @property
    def glob(self) -> str:
        """A glob of the files, below the root."""
        return self.folder + glob_of(min(self.texts, key=len))


def shard_sets(root: str, files: Iterable[StoredFile]) -> list[ShardSet]:
    """Return the sets that files make up, as they are met.

    Raises:
        DatasetError: names of so many kinds follow no convention.
    """
    shapes: dict[tuple[str, str], _Shape] = {}
    for file in files:
        folder, name = split_path(file.path)
        plain = COMPRESSED.sub("", name)
        # Random words first, or the digits in them would be taken for numbers.
        bare = _RANDOM.sub(RANDOM, plain)
        # Files with equal keys differ in numbers and random words alone.
        key = folder, _NUMBER.sub(NUMBER, bare)
        if key not in shapes:
            if len(shapes) == MOST_SHAPES:
                many = f"{quoted(root or '/', 200)} has more than {MOST_SHAPES:,} kinds of names"
                raise DatasetError(f"{many}; choose files by a glob that tells splits apart")
            below = folder.removeprefix(root.rstrip("/") + "/")
            shapes[key] = _Shape(folder=below, text=key[1])
        shapes[key].files.append(file)
        shapes[key].digits.append(_NUMBER.findall(bare))
        shapes[key].random.append(_RANDOM.findall(plain))
        shapes[key].endings.add(name[len(plain) :])
    return [found for shape in shapes.values() for found in _sets(shape)]


@dataclass(kw_only=True)
class _Shape:
    """The files of a folder whose names have one text with marks for numbers and random words."""

    folder: str
    text: str
    files: list[StoredFile] = field(default_factory=list)
    digits: list[list[str]] = field(default_factory=list)
    random: list[list[str]] = field(default_factory=list)
    endings: set[str] = field(default_factory=set)

    @cached_property
    def columns(self) -> list[list[int]]:
        """The numbers of all files, a list a mark."""
        return [list(map(int, column)) for column in zip(*self.digits, strict=True)]

    def widths(self, at: int) -> tuple[int, int]:
        """Return the fewest and the most digits of a number."""
        lengths = {len(digits[at]) for digits in self.digits}
        return min(lengths), max(lengths)

    def part(
        self,
        rows: Sequence[int],
        index: int | None,
        *,
        marks: Sequence[int],
        total: int | None = None,
        unclear: bool = False,
    ) -> ShardSet:
        """Return some of the files as a set that one number counts; `marks` stay in its text."""
        columns = self.columns
        first, *pieces = self.text.split(NUMBER)
        for at, piece in enumerate(pieces):
            # A number that all these files share is written into the text again.
            number = f"{columns[at][rows[0]]:0{self.widths(at)[0]}d}"
            first += (NUMBER if at in marks else number) + piece
        # First by path, then stably by number: files with one number stay in the order of paths.
        rows = sorted(rows, key=lambda row: path_key(self.files[row]))
        if index is not None:
            rows.sort(key=columns[index].__getitem__)
        return ShardSet(
            folder=self.folder,
            text=first,
            files=[self.files[row] for row in rows],
            numbers=None if index is None else [columns[index][row] for row in rows],
            totals=None if total is None else [columns[total][row] for row in rows],
            words_differ=any(map(self.random[0].__ne__, self.random)),
            unclear=unclear,
            texts={first + ending for ending in self.endings},
        )


def _sets(shape: _Shape) -> Iterator[ShardSet]:
    """Yield the sets of shards that the files of a shape make up."""
    columns, rows = shape.columns, range(len(shape.files))
    # Without columns that repeat an earlier one, as in `256x256`.
    varying = [
        at
        for at, column in enumerate(columns)
        if any(map(column[0].__ne__, column)) and column not in columns[:at]
    ]
    pairs = list(_PAIR.finditer(shape.text))
    if pairs:
        # The last pair counts; which mark it is follows from the marks in front of it.
        index = shape.text.count(NUMBER, 0, pairs[-1].start())
        rest = [at for at in varying if at not in (index, index + 1)]
        # What follows the pair and is another in every file, as a time, tells no sets apart.
        noise = [at for at in rest if at > index and len(set(columns[at])) == len(rows)]
        apart = [columns[at] for at in rest if at not in noise]
        # Numbers in front of the pair, as a resolution, make sets of their own.
        for group in _groups(apart, len(rows)):
            yield shape.part(group, index, marks=(index, index + 1, *noise), total=index + 1)
        return
    if not varying:
        # Equal values in different widths, as 1 and 01: the one number is still that of the shard.
        wide = [at for at in range(len(columns)) if len(set(shape.widths(at))) > 1]
        yield shape.part(rows, wide[-1] if wide else None, marks=wide)
        return
    counting = varying[0] if len(varying) == 1 else _counting(columns, varying)
    if counting is None:
        # Sequences, as those of `img-256-0`, `img-256-1`, `img-512-0`: the last number begins anew.
        groups = _groups([columns[at] for at in varying[:-1]], len(rows))
        last = columns[varying[-1]]
        runs = (g for g in groups if len(g) > 1 and _is_consecutive([last[row] for row in g]))
        # At least half of the files are in unbroken sequences: that is no accident.
        if 2 * sum(map(len, runs)) >= len(rows):
            for group in groups:
                yield shape.part(group, varying[-1], marks=varying[-1:])
            return
    yield shape.part(rows, counting, marks=varying, unclear=counting is None)


def _groups(columns: Sequence[Sequence[int]], count: int) -> list[list[int]]:
    """Return the rows that have the same numbers in some columns."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(count):
        groups.setdefault(tuple(column[row] for column in columns), []).append(row)
    return list(groups.values())


def _counting(columns: Sequence[list[int]], varying: Sequence[int]) -> int | None:
    """Return which of several varying numbers counts the files, None where that is not certain."""
    # A shard and its compressed copy have the same numbers.
    num_shards = len(set(zip(*(columns[at] for at in varying), strict=True)))
    found = [
        at for at in varying if len(set(columns[at])) == num_shards and _is_consecutive(columns[at])
    ]
    for at in found[1:]:
        # Two numbers that both count must count in the same order, else neither is certain.
        others = [other for _, other in sorted(zip(columns[found[0]], columns[at], strict=True))]
        if others != sorted(others):
            return None
    return found[0] if found else None


def _is_consecutive(numbers: Sequence[int]) -> bool:
    return max(numbers) - min(numbers) + 1 == len(set(numbers))
