"""Iterations that hand out several others, one after the other: repeats, epochs, concatenations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s, groups_of
from shardctl.core.iteration import iteration as readings
from shardctl.core.iteration.iteration import Iteration

NONE = np.empty(0, np.int64)


class Joined(Iteration):
    """The elements of `pieces`, one piece after the other, as far as each is pulled.

    is_repeated: each piece reads again what the one before it read.
    """

    is_repeated = True

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[Iteration] = []
        self._known: dict[str, Any] = {}

    @property
    def inputs(self) -> Sequence[Iteration]:
        return self.pieces

    @property
    def starts(self) -> Int64s:
        """The first element of each piece, int64[pieces + 1]."""
        return self._sums("elements", lambda piece: piece.pulled)

    @property
    def example_starts(self) -> Int64s:
        """The place of the first example of each piece, int64[pieces + 1]."""
        return self._sums("examples", lambda piece: piece.num_examples)

    @property
    def _reading_starts(self) -> Int64s:
        """The readings before each piece, int64[pieces + 1]."""
        return self._sums("readings", lambda piece: piece.num_readings if piece.pulled else 0)

    def _sums(self, of: str, count: Callable[[Iteration], int]) -> Int64s:
        def sums() -> Int64s:
            return np.cumsum([0, *map(count, self.pieces)], dtype=np.int64)

        found: Int64s = self._kept(of, sums)
        return found

    def _kept(self, name: str, made: Callable[[], Any]) -> Any:
        """Return what is made of the pieces, once for as long as nothing more is pulled."""
        if self._known.get("counted") != (self.pulled, len(self.pieces)):
            self._known = {"counted": (self.pulled, len(self.pieces))}
        if name not in self._known:
            self._known[name] = made()
        return self._known[name]

    @property
    def width(self) -> int | None:
        """That of all pieces that hand out something, 1 where none does."""
        width: int | None = self._kept("width", lambda: common_width(self.pieces))
        return width

    def widths(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for _, here, piece, local in self._indexed(elements, self.starts):
            found[here] = piece.widths(local)
        return found

    def examples(self, elements: Int64s) -> Int64s:
        found = [
            (here, self._counted_from(index, piece.examples(local)))
            for index, here, piece, local in self._indexed(elements, self.starts)
        ]
        return found[0][1] if len(found) == 1 else gathered(found, self.widths(elements))

    def before(self, elements: Int64s) -> Int64s:
        found = np.zeros(len(elements), np.int64)
        for index, here, piece, local in self._indexed(elements, self.starts):
            found[here] = piece.before(local) + self.example_starts[index]
        return found

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        elements, offsets = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        for index, here, piece, local in self._indexed(places, self.example_starts):
            inner, offsets[here] = piece.at(local)
            elements[here] = inner + self.starts[index]
        return elements, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        found = np.empty(len(places), np.int64)
        for index, here, piece, local in self._indexed(places, self.example_starts):
            found[here] = self._counted_from(index, piece.codes_at(local))
        return found

    @property
    def num_readings(self) -> int:
        return int(self._reading_starts[-1]) if self.is_repeated else super().num_readings

    def _counted_from(self, index: int, found: Int64s) -> Int64s:
        """Return what a piece hands out; where readings are counted, on from those before it."""
        if not (index and self.is_repeated and readings.are_counted()):
            return found
        return found + self._reading_starts[index]

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return self._found(self.starts, lambda piece: piece.elements_of(codes))

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return self._found(self.example_starts, lambda piece: piece.places_of(codes))

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        starts = self.starts.tolist()
        for piece, first in zip(self.pieces, starts[:-1], strict=True):
            if first < stop and first + piece.pulled > start:
                yield from piece.chunks(max(start - first, 0), min(stop - first, piece.pulled))

    def _indexed(
        self, wanted: Int64s, starts: Int64s
    ) -> Iterator[tuple[int, Int64s | slice, Iteration, Int64s]]:
        """Yield (piece's index, where in `wanted`, piece, which of the piece's) for each piece."""
        if not len(wanted) or not self.pieces:
            return
        last = len(self.pieces) - 1
        indices = np.minimum(np.searchsorted(starts, wanted, "right") - 1, last)
        if (indices[0] == indices).all():
            index = int(indices[0])
            yield index, slice(None), self.pieces[index], wanted - starts[index]
            return
        for index, here in groups_of(indices):
            yield index, here, self.pieces[index], wanted[here] - starts[index]

    def _found(
        self, starts: Int64s, ask: Callable[[Iteration], tuple[Int64s, Int64s]]
    ) -> tuple[Int64s, Int64s]:
        queries, places = [NONE], [NONE]
        for piece, start in zip(self.pieces, starts.tolist()[:-1], strict=True):
            if piece.pulled:
                query, place = ask(piece)
                queries.append(query)
                places.append(place + start)
        return in_order(np.concatenate(queries), np.concatenate(places))


def common_width(pieces: Iterable[Iteration]) -> int | None:
    """Return the width of all that hand out something, 1 where none does, None for several."""
    widths = {piece.width for piece in pieces if piece.pulled}
    return widths.pop() if len(widths) == 1 else None if widths else 1


def gathered(parts: Iterable[tuple[Int64s | slice, Int64s]], widths: Int64s) -> Int64s:
    """Return the codes of elements that come from several iterations, one after the other.

    parts: for each iteration which of the elements are its own, and the codes of these.
    widths: the number of examples of each element.
    """
    ends = np.cumsum(widths)
    found = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
    for here, codes in parts:
        counts = widths[here]
        shifts = ends[here] - counts - (np.cumsum(counts) - counts)
        found[np.repeat(shifts, counts) + np.arange(counts.sum())] = codes
    return found


def in_order(query: Int64s, places: Int64s) -> tuple[Int64s, Int64s]:
    """Return both, ordered by query, then by place."""
    order = np.lexsort((places, query))
    return query[order], places[order]
