"""Splits as names say them; what they do not say for certain is refused."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from shardctl.core.phrase import phrase
from shardctl.core.text import choices, counted, printable, quoted
from shardctl.errors import DatasetError
from shardctl.files.stores.stored_files import StoredFiles, as_bytes
from shardctl.readers.index.answer import NameProblem
from shardctl.readers.index.naming.shapes import (
    MOST_SHAPES,
    NUMBER,
    RANDOM,
    shapes_of,
    uncompressed,
)
from shardctl.readers.index.naming.shard_sets import (
    Folders,
    NamedSplit,
    ShardSet,
    SplitSets,
    named_split,
    ordered,
    sets_of,
    speaks_of_several,
    split_in_place,
    split_word,
)

DEFAULT_SPLIT = "train"  # as Hugging Face calls files that name none
_FIRST = ("tr", "va", "de", "te")  # what names of splits begin with, in the order of answers


def splits_by_names(folders: Folders) -> list[SplitSets]:
    """Return the splits of files.

    Raises:
        DatasetError: files of several kinds and nothing that tells which split they are; two
            datasets, versions or formats.
    """
    shapes = shapes_of(folders.files)
    if shapes is None:
        raise DatasetError(
            phrase(
                "{} has more than {:,} kinds of names; say which split they are by {split}",
                _where(folders), MOST_SHAPES,
            )
        )  # fmt: skip
    sets = sets_of(shapes)
    named = [named_split(folders.below(found), found.text) for found in sets]
    if not any(named):
        (found,) = _joined(folders, sets)
        if speaks_of_several(folders.below(found), found.text):
            raise DatasetError(
                phrase(
                    "{}: names speak of several splits: {}; {}",
                    _where(folders), folders.said(sets), folders.way_out(sets),
                )
            )  # fmt: skip
        name = split_word(folders.root.rpartition("/")[2]) or DEFAULT_SPLIT
        return [SplitSets(name=name, sets=(found,))]
    rests = list(dict.fromkeys(one.rest for one in named if one is not None))
    splits: dict[str, list[tuple[ShardSet, NamedSplit]]] = {}
    unknown = []
    for found, spoken in zip(sets, named, strict=True):
        one = spoken or _alike(rests, folders.below(found), found.text)
        if one is None:
            unknown.append(found)
        else:
            splits.setdefault(one.split, []).append((found, one))
    if unknown:
        known = choices(_in_order(splits), 5)
        raise DatasetError(
            phrase(
                "{}: beside {} there are files of no split that the names tell: {}; {}",
                _where(folders), known, folders.said(unknown), folders.way_out(unknown),
            )
        )  # fmt: skip
    _check_one_dataset(folders, splits)
    return [
        SplitSets(
            name=name,
            sets=_joined(folders, [found for found, _ in splits[name]], name),
            named=splits[name][0][1],
        )
        for name in _in_order(splits)
    ]


def _in_order(splits: Iterable[str]) -> list[str]:
    """Return names of splits in the order of answers: train, validation, test, others."""
    begins = {name: name[:2].lower() for name in splits}
    places = {
        name: _FIRST.index(at) if at in _FIRST else len(_FIRST) for name, at in begins.items()
    }
    return sorted(places, key=lambda name: (places[name], name))


def _alike(rests: Sequence[str], folder: str, text: str) -> NamedSplit | None:
    """Return the split of a name that is like those that say theirs: `extra-0` beside `train-0`."""
    found = [
        NamedSplit(split=split, rest=rest)
        for rest in rests
        if (split := split_in_place(rest, folder, text)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _check_one_dataset(
    folders: Folders, splits: Mapping[str, list[tuple[ShardSet, NamedSplit]]]
) -> None:
    """Raise where TFDS's template names two datasets, or a dataset in two folders."""
    first: dict[tuple[str | None, str], ShardSet] = {}
    for members in splits.values():
        for found, named in members:
            if named.dataset is not None:
                first.setdefault((named.dataset, folders.below(found)), found)
    if len(first) > 1:
        datasets = list(dict.fromkeys(dataset for dataset, _ in first))
        what = "datasets" if len(datasets) > 1 else "folders of one dataset"
        several = datasets if len(datasets) > 1 else [folder for _, folder in first]
        raise DatasetError(
            phrase(
                "{} has files of {} {}: {}; give the files of one, or {}",
                _where(folders), len(first), what, choices(several, 6),
                folders.way_out(first.values()),
            )
        )  # fmt: skip


def _joined(
    folders: Folders, sets: Sequence[ShardSet], split: str | None = None
) -> tuple[ShardSet, ...]:
    """Return the one set that sets make up, or raise: files without numbers are one of a folder."""
    if len(sets) > 1 and (
        len({found.folder for found in sets}) > 1
        or any(found.numbers is not None for found in sets)
    ):
        which = "their names tell no splits" if split is None else f"all of split {quoted(split)}"
        raise DatasetError(
            phrase(
                "{} has {} kinds of files, {}: {}; {}",
                _where(folders), len(sets), which, folders.said(sets), folders.way_out(sets),
            )
        )  # fmt: skip
    whole, *others = sets
    for other in others:
        whole.join(other)
    return (whole,)


def _where(folders: Folders) -> str:
    return quoted(folders.root or "/", 200)


# The files of a split in shard order, and how that differs from the order of their names.


class SplitOrder:
    """The files of a split in shard order: sets by their names, each by its numbers.

    Files that nothing counts are in the order of their names by bytes, as are those that several
    numbers tell apart.
    """

    def __init__(self, folders: Folders, split: SplitSets) -> None:
        self._folders = folders
        self._split = split
        self.problems: list[NameProblem] = []
        self.notes: list[str] = []
        numbered = [found for found in split.sets if found.numbers is not None]
        places = array("q")
        for found in sorted(split.sets, key=self._place) if numbered else _one(split.sets):
            order = self._rows(found)
            self._look_at(found, order)
            places.extend(map(found.places.__getitem__, order))
        self.files: StoredFiles = folders.files.chosen(places)
        self._compare_with_names(split.sets)
        if len(split.sets) > 1 and numbered:
            said = folders.said(sorted(split.sets, key=self._place))
            self._note(f"{len(split.sets)} kinds of files, one after the other: {said}")

    def _place(self, found: ShardSet) -> list[tuple[int, int, bytes]]:
        """Return what sets are sorted by: their names, in which 10 comes after 9."""
        pieces = re.split("([0-9]+)", self._folders.below(found) + found.text)
        return [
            (1, int(piece), b"") if at % 2 else (0, 0, as_bytes(piece))
            for at, piece in enumerate(pieces)
        ]

    def _rows(self, found: ShardSet) -> list[int]:
        rows = ordered(self._folders.files, found)
        if several_writes(found) and found.numbers is not None:
            if len(set(found.numbers)) == len(found):
                return rows
            self._note("numbers repeat, as each write has a random word: in the order of the names")
            return sorted(rows, key=lambda row: self._bytes(found, row))
        return rows

    def _bytes(self, found: ShardSet, row: int) -> bytes:
        return as_bytes(self._folders.files.path(found.places[row]))

    def _look_at(self, found: ShardSet, order: list[int]) -> None:
        root = self._folders.root.rstrip("/") + "/"

        def name_of(row: int) -> str:
            return printable(self._folders.files.path(found.places[row]).removeprefix(root), 200)

        self.problems += problems_of(self._split.name, found, order, name_of)
        if found.unclear:
            self._note("several numbers vary in the names: in the order of the names")
        elif (why := why_uncounted(found, order)) is not None:
            self._note(f"{why}, so that nothing tells whether a file is missing")
        elif (
            found.numbers is not None and found.totals is None and (first := min(found.numbers)) > 1
        ):
            self._note(f"the first number is {first:,}")

    def _compare_with_names(self, sets: tuple[ShardSet, ...]) -> None:
        """Note where tf.data, which sorts names by their bytes, has another order."""
        if len(sets) == 1 and sets[0].same_widths:
            return
        for before, after in pairwise(self.files.paths()):
            if as_bytes(before) > as_bytes(after):
                names = [quoted(path.rpartition("/")[2], 100) for path in (before, after)]
                self._note(
                    f"{names[0]} comes before {names[1]}, by their numbers; tf.data's list_files "
                    "and tf.io.gfile.glob sort names as text, the other way round"
                )
                return

    def _note(self, text: str) -> None:
        self.notes.append(f"{printable(self._split.name, 60)}: {text}")


def _one(sets: tuple[ShardSet, ...]) -> Iterator[ShardSet]:
    """Yield sets without numbers as one."""
    whole, *others = sets
    for other in others:
        whole.join(other)
    yield whole


# Shards that are missing between others, there twice, or of another number of shards.

_SHOWN = 5  # ranges or names in a message
_REGULAR = 4  # so many numbers at equal distances are meant so


def problems_of(
    split: str, found: ShardSet, order: Sequence[int], name_of: Callable[[int], str]
) -> Iterator[NameProblem]:
    """Yield what is wrong with the numbers of a set; `order` are its rows by number.

    name_of: the name of the file in a row, as messages show it.
    """
    numbers = found.numbers
    if numbers is None:
        yield from _copies(split, found, order, name_of)
        return
    if found.totals is not None and len(set(found.totals)) > 1:
        yield _several_totals(split, found, order, name_of)
        return
    if found.totals is not None or not several_writes(found):
        yield from _twice(split, found, order, name_of)
    first, last = numbers[order[0]], numbers[order[-1]]
    folder = name_of(order[0]).rpartition("/")[0]
    missing = _Missing(split, found, f"{folder}/" if folder else "")
    if found.totals is None:
        if not why_uncounted(found, order):
            yield from missing.between(order, first, last + 1, None)
        return
    total = found.totals[0]
    start = 1 if first > 0 and last == total else 0  # some count from 1
    if last >= start + total:
        beyond = [row for row in order if numbers[row] >= start + total]
        names = choices((name_of(row) for row in beyond), _SHOWN)
        text = f"{counted(len(beyond), 'shard')} beyond the {total:,} that the names say: {names}"
        yield _problem("wrong-count", split, text)
    yield from missing.between(order, start, start + total, total)


def why_uncounted(found: ShardSet, order: Sequence[int]) -> str | None:
    """Return why numbers without `-of-` need not follow each other, None where they should.

    The numbers of examples, of bytes or of seconds may be in names as well.
    """
    numbers = found.numbers
    if numbers is None or found.totals is not None:
        return None
    values = list(dict.fromkeys(numbers[row] for row in order))
    span = values[-1] - values[0] + 1
    if span == len(values):
        return None
    steps = {b - a for a, b in pairwise(values)}
    if len(values) >= _REGULAR and len(steps) == 1:
        return f"their numbers are {steps.pop():,} apart"
    if 2 * len(values) < span:
        return f"their numbers, {values[0]} to {values[-1]}, do not follow each other"
    return None


def several_writes(found: ShardSet) -> bool:
    """Return whether numbers may repeat: each file, or each write, has a random word of its own.

    As where Spark appends to a folder.
    """
    return found.random is None and RANDOM in found.text and found.totals is None


def _problem(kind: str, split: str, text: str) -> NameProblem:
    return NameProblem(kind=kind, split=split, text=f"{printable(split, 60)}: {text}")


def _several_totals(
    split: str, found: ShardSet, order: Sequence[int], name_of: Callable[[int], str]
) -> NameProblem:
    totals = Counter(found.totals or ())
    first: dict[int, int] = {}
    for row in order:
        first.setdefault(0 if found.totals is None else found.totals[row], row)
    said = [
        f"{counted(count, 'file')} of {total:,} shards ({name_of(first[total])})"
        for total, count in totals.most_common()
    ]
    return _problem("wrong-count", split, f"names of several numbers of shards: {choices(said, 4)}")


def _twice(
    split: str, found: ShardSet, order: Sequence[int], name_of: Callable[[int], str]
) -> Iterator[NameProblem]:
    numbers = found.numbers or ()
    shown: list[tuple[int, str, int]] = []
    count = 0
    for number, group in groupby(order, key=lambda row: numbers[row]):
        rows = list(group)
        if len(rows) > 1:
            count += 1
            if len(shown) < _SHOWN:
                shown.append((number, choices(map(name_of, rows), 3), len(rows)))
    if count == 1:
        number, names, times = shown[0]
        often = "twice" if times == 2 else f"{times} times"
        yield _problem("duplicate", split, f"shard {number} is there {often}: {names}")
    elif count:
        said = "; ".join(f"{number} ({names})" for number, names, _ in shown)
        more = f" and {count - len(shown):,} more" if count > len(shown) else ""
        text = f"{count:,} shards are there more than once: {said}{more}"
        yield _problem("duplicate", split, text)


def _copies(
    split: str, found: ShardSet, order: Sequence[int], name_of: Callable[[int], str]
) -> Iterator[NameProblem]:
    """Yield what is there compressed and not, of files that nothing counts."""
    if all(uncompressed(text) == text for text in found.texts):
        return
    names: dict[str, list[str]] = {}
    for row in order:
        name = name_of(row)
        names.setdefault(uncompressed(name), []).append(name)
    twice = [choices(copies, 3) for copies in names.values() if len(copies) > 1]
    if twice:
        are = "is" if len(twice) == 1 else "are"
        text = f"{counted(len(twice), 'file')} {are} there more than once: {twice[0]}"
        yield _problem("duplicate", split, text)


class _Missing:
    def __init__(self, split: str, found: ShardSet, folder: str) -> None:
        self._split = split
        self._found = found
        self._folder = folder

    def between(
        self, order: Sequence[int], start: int, stop: int, total: int | None
    ) -> Iterator[NameProblem]:
        """Yield the one problem of all numbers of [start, stop) that no file has."""
        numbers = self._found.numbers or ()
        ranges: list[tuple[int, int]] = []
        count, expected = 0, start
        for number in (*(min(numbers[row], stop) for row in order), stop):
            if number > expected:
                count += number - expected
                if len(ranges) <= _SHOWN:
                    ranges.append((expected, number - 1))
            expected = max(expected, number + 1)
        if not count:
            return
        name = printable(self._name(ranges[0][0]), 200)
        of = "" if total is None else f"of {total:,} "
        between = "" if total is not None else f" between {start} and {stop - 1}"
        if count == 1:
            text = f"shard {ranges[0][0]} {of}is missing{between} ({name})"
        else:
            shown = ", ".join(
                str(first) if first == last else f"{first}-{last}"
                for first, last in ranges[:_SHOWN]
            )
            more = ", .." if len(ranges) > _SHOWN else ""
            text = f"{count:,} {of}shards are missing{between}: {shown}{more} (the first is {name})"
        yield _problem("gap", self._split, text)

    def _name(self, number: int) -> str:
        """Return how the file of a number would be called."""
        found = self._found
        texts = [f"{number:0{found.widths[0]}d}"]
        if found.totals is not None:
            texts.append(f"{found.totals[0]:0{found.total_widths[0]}d}")
        name = min(found.texts)
        for text in texts:
            name = name.replace(NUMBER, text, 1)
        words = iter(found.random or ())
        name = "".join(next(words, "*") if char == RANDOM else char for char in name)
        return self._folder + name.replace(NUMBER, "*")
