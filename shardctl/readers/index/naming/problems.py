"""Shards that are missing between others, there twice, or of another number of shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from shardctl.core.text import choices, counted, printable
from shardctl.readers.index.arrangement import NameProblem
from shardctl.readers.index.naming.shapes import NUMBER, RANDOM, uncompressed
from shardctl.readers.index.naming.shard_sets import ShardSet

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
