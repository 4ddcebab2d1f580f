"""The files that a plan file names, before its dataset is known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import overload

from shardctl.core.arrays import Int64s, run_of


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedFiles:
    """The file of each instruction of a plan file, as it is written there.

    `lengths` (int64[n]) are the examples in each file. `shards` (int64[n]) are their indices in
    their splits, None where no two files of a split have the same base name.
    """

    split_names: tuple[str, ...]
    names: Sequence[str]
    lengths: Int64s
    shards: Int64s | None = None

    def names_at(self, places: Int64s) -> list[str]:
        """Return the names at places in any order; those of places one by one are quick."""
        run = run_of(places)
        if run is None:
            return [self.names[place] for place in places.tolist()]
        return list(self.names[run])


class JoinedNames(Sequence[str]):
    """Names held as long texts, a name a line: two bytes a name and its letters.

    Those of one text are cut apart together, so that going through all is quick.

    >>> names = JoinedNames(["a\\nb", "c"])
    >>> len(names), names[-1], names[1:], list(names)
    (3, 'c', ['b', 'c'], ['a', 'b', 'c'])
    """

    __slots__ = ("_cut", "_starts", "_texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._starts = [*accumulate((text.count("\n") + 1 for text in texts), initial=0)]
        self._cut: tuple[int, list[str]] = (-1, [])

    def __len__(self) -> int:
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._name(places)
        if places.step != 1 or not places:
            return [*map(self._name, places)]
        first, last = (bisect_right(self._starts, at) - 1 for at in (places[0], places[-1]))
        names = [name for at in range(first, last + 1) for name in self._cut_apart(at)]
        begin = self._starts[first]
        return names[places.start - begin : places.stop - begin]

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(map(self._cut_apart, range(len(self._texts))))

    def _name(self, index: int) -> str:
        at = bisect_right(self._starts, index) - 1
        return self._cut_apart(at)[index - self._starts[at]]

    def _cut_apart(self, at: int) -> list[str]:
        which, names = self._cut
        if which != at:
            names = self._texts[at].split("\n")
            self._cut = at, names
        return names
