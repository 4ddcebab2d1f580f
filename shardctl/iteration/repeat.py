"""`repeat` without fusion and `concatenate`: iterators that read several others in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s, groups_of, ranges
from shardctl.errors import UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import (
    INFINITE,
    PIECE,
    UNKNOWN,
    Derived,
    Iteration,
    Node,
    Repeating,
    has_prefetch_below,
    lasting_below,
    shape_of_any,
)

NONE = np.empty(0, np.int64)


class Gathered(Iteration):
    """The elements of several iterations, each of which has its own among them.

    sources: the iterations, each read as far as TensorFlow has read it.
    """

    sources: list[Iteration]

    @abstractmethod
    def _of(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        """Return which source each element is of, and its place there."""

    @abstractmethod
    def _elements(self, number: int, places: Int64s) -> Int64s:
        """Return the elements that places of a source are."""

    def _counted_from(self, number: int, codes: Int64s) -> Int64s:
        """Return codes of a source; readings, where they are counted, with those before it."""
        return codes

    @property
    def inputs(self) -> Sequence[Iteration]:
        return self.sources

    @property
    def width(self) -> int | None:
        """That of all sources that yield something, 1 where none does."""
        widths = {source.width for source in self.sources if source.pulled}
        return widths.pop() if len(widths) == 1 else None if widths else 1

    def widths(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for number, here, places in self._split(*self._of(elements)):
            found[here] = self.sources[number].widths(places)
        return found

    def examples(self, elements: Int64s) -> Int64s:
        parts = [
            (here, self._counted_from(number, self.sources[number].examples(places)))
            for number, here, places in self._split(*self._of(elements))
        ]
        # One source has its codes in the order asked for already.
        if len(parts) == 1:
            return parts[0][1]
        widths = np.ones(len(elements), np.int64) if self.width == 1 else self.widths(elements)
        # The place behind each element's codes in the answer.
        ends = np.cumsum(widths)
        found = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        for here, codes in parts:
            counts = widths[here]
            found[ranges(ends[here] - counts, counts)] = codes
        return found

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return self._found(lambda source: source.elements_of(codes), self._elements)

    def _split(
        self, numbers: Int64s, places: Int64s
    ) -> Iterator[tuple[int, Int64s | slice, Int64s]]:
        """Yield (source, where it is among `numbers`, its places there) for each source."""
        if not len(numbers) or not self.sources:
            return
        if (numbers == numbers[0]).all():
            yield int(numbers[0]), slice(None), places
            return
        for number, here in groups_of(numbers):
            yield number, here, places[here]

    def _found(
        self,
        ask: Callable[[Iteration], tuple[Int64s, Int64s]],
        placed: Callable[[int, Int64s], Int64s],
    ) -> tuple[Int64s, Int64s]:
        queries, places = [NONE], [NONE]
        for number, source in enumerate(self.sources):
            if source.pulled:
                query, place = ask(source)
                queries.append(query)
                places.append(placed(number, place))
        return in_order(np.concatenate(queries), np.concatenate(places))


class Joined(Gathered):
    """The elements of `sources`, one after the other, as far as each is pulled.

    is_repeated: each source reads again what the one before it read.
    """

    is_repeated = True

    def __init__(self) -> None:
        super().__init__()
        self.sources = []
        self._known: dict[str, Any] = {}

    @property
    def starts(self) -> Int64s:
        """The first element of each source, int64[sources + 1]."""
        return self._sums("elements", lambda source: source.pulled)

    @property
    def example_starts(self) -> Int64s:
        """The place of the first example of each source, int64[sources + 1]."""
        return self._sums("examples", lambda source: source.num_examples)

    @property
    def _reading_starts(self) -> Int64s:
        """The readings before each source, int64[sources + 1]."""
        return self._sums("readings", lambda source: source.num_readings if source.pulled else 0)

    def _sums(self, of: str, count: Callable[[Iteration], int]) -> Int64s:
        def sums() -> Int64s:
            return np.cumsum([0, *map(count, self.sources)], dtype=np.int64)

        found: Int64s = self._kept(of, sums)
        return found

    def _kept(self, name: str, made: Callable[[], Any]) -> Any:
        """Return what is made of the sources, once for as long as nothing more is pulled."""
        # Sources grow only while something is pulled, so these two numbers tell whether sums still
        # hold.
        if self._known.get("counted") != (self.pulled, len(self.sources)):
            self._known = {"counted": (self.pulled, len(self.sources))}
        if name not in self._known:
            self._known[name] = made()
        return self._known[name]

    @property
    def width(self) -> int | None:
        width: int | None = self._kept("width", lambda: super(Joined, self).width)
        return width

    def _of(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        return self._at(elements, self.starts)

    def _at(self, wanted: Int64s, starts: Int64s) -> tuple[Int64s, Int64s]:
        """Return which source each place is of, counted from these starts, and its place there."""
        # "right": of sources that start at the same place, all but the last are empty. The end of
        # the whole counts as a place of the last source.
        last = len(self.sources) - 1
        numbers = np.minimum(np.searchsorted(starts, wanted, "right") - 1, last)
        return numbers, wanted - starts[numbers]

    def _elements(self, number: int, places: Int64s) -> Int64s:
        elements: Int64s = places + self.starts[number]
        return elements

    def before(self, elements: Int64s) -> Int64s:
        found = np.zeros(len(elements), np.int64)
        for number, here, local in self._split(*self._of(elements)):
            found[here] = self.sources[number].before(local) + self.example_starts[number]
        return found

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        elements, offsets = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        for number, here, local in self._split(*self._at(places, self.example_starts)):
            inner, offsets[here] = self.sources[number].at(local)
            elements[here] = inner + self.starts[number]
        return elements, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        found = np.empty(len(places), np.int64)
        for number, here, local in self._split(*self._at(places, self.example_starts)):
            found[here] = self._counted_from(number, self.sources[number].codes_at(local))
        return found

    @property
    def num_readings(self) -> int:
        return int(self._reading_starts[-1]) if self.is_repeated else super().num_readings

    def _counted_from(self, number: int, codes: Int64s) -> Int64s:
        if not (number and self.is_repeated and readings.are_counted()):
            return codes
        numbers: Int64s = codes + self._reading_starts[number]
        return numbers

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        starts = self.example_starts
        return self._found(
            lambda source: source.places_of(codes), lambda number, places: places + starts[number]
        )

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        starts = self.starts.tolist()
        for source, first in zip(self.sources, starts[:-1], strict=True):
            if first < stop and first + source.pulled > start:
                yield from source.chunks(max(start - first, 0), min(stop - first, source.pulled))


def in_order(query: Int64s, places: Int64s) -> tuple[Int64s, Int64s]:
    """Return both, ordered by query, then by place."""
    order = np.lexsort((places, query))
    return query[order], places[order]


class Repeat(Repeating):
    """`ds.repeat(count)`; None repeats until an epoch is empty.

    Of a finite one TensorFlow makes an iterator of the input more than there are epochs
    (tensorflow/core/kernels/data/repeat_dataset_op.cc).

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Repeat(Source(range(3)), None).iterate()
    >>> iteration.pull(10**12), iteration.examples(np.array([10**12 - 1])).tolist()
    (1000000000000, [0])
    """

    def iterate(self) -> Iteration:
        # Epochs that are all alike need no iterator each: a repeat of any length costs one epoch.
        return Cycle(self) if self.child.is_fixed else RepeatIteration(self)


class RepeatIteration(Joined):
    """An iterator over epochs, each read by an iterator of its own."""

    def __init__(self, node: Repeat) -> None:
        super().__init__()
        self._node, self._current = node, node.child.iterate()
        self.sources.append(self._current)
        self._num_ended = 0

    def _advance(self, count: int) -> int:
        done = 0
        while True:
            done += self._current.pull(count - done)
            if done == count:
                return done
            is_empty = not self._current.pulled
            self._num_ended += 1
            if self._node.count is None and is_empty:
                # Reading on behind this end, as threads of a map do, begins a further epoch.
                for each in lasting_below(self._node.child):
                    each.make_uncertain()
                return done
            # Also behind the last epoch: the extra iterator takes a pair of seeds of the shuffle
            # below it.
            self._current = self._node.child.iterate()
            if self._num_ended == self._node.count:
                self._current.abandon()
                return done
            self.sources.append(self._current)

    def abandon(self) -> None:
        if not self.ended:
            self._current.abandon()

    def cancel(self) -> None:
        """A prefetch that is cancelled may say that it has ended: then the next epoch begins.

        Sources: tensorflow/core/kernels/data/prefetch_dataset_op.cc, repeat_dataset_op.cc. Of 150
        passes that were cut short 1 to 4 did so (TensorFlow 2.21), none without a prefetch.
        """
        if not self.ended and has_prefetch_below(self._node.child):
            for each in lasting_below(self._node.child):
                each.make_uncertain()


class Cycle(Derived):
    """A repeat of epochs that are all alike: one of them stands for all."""

    def __init__(self, node: Repeat) -> None:
        super().__init__(node.child.iterate())
        self._node, self._epoch = node, self._child

    def _advance(self, count: int) -> int:
        wanted = self.pulled + count
        # The first epoch is read to its end at most once; behind it `pull` does nothing.
        self._epoch.pull(wanted - self._epoch.pulled)
        total = wanted
        if self._epoch.ended:
            if not self._epoch.pulled:
                return 0
            if self._node.count is not None:
                total = min(wanted, self._epoch.pulled * self._node.count)
        return total - self.pulled

    @property
    def _size(self) -> int:
        # While the epoch is not read to its end, this exceeds every element that is asked for.
        return max(self._epoch.pulled, 1)

    def _inputs_of(self, elements: Int64s) -> Int64s:
        return elements % self._size

    def _numbered(self, codes: Int64s, epochs: Int64s) -> Int64s:
        """Return codes; where readings are counted, on from those of the epochs before."""
        return codes + epochs * self._epoch.num_readings if readings.are_counted() else codes

    def examples(self, elements: Int64s) -> Int64s:
        epochs, local = divmod(elements, self._size)
        epochs = epochs if self.width == 1 else np.repeat(epochs, self._epoch.widths(local))
        return self._numbered(self._epoch.examples(local), epochs)

    def before(self, elements: Int64s) -> Int64s:
        epochs, local = divmod(elements, self._size)
        return epochs * self._epoch.num_examples + self._epoch.before(local)

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        epochs, local = divmod(places, max(self._epoch.num_examples, 1))
        elements, offsets = self._epoch.at(local)
        return elements + epochs * self._epoch.pulled, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        epochs, local = divmod(places, max(self._epoch.num_examples, 1))
        return self._numbered(self._epoch.codes_at(local), epochs)

    @property
    def num_readings(self) -> int:
        # Epochs that were begun.
        return -(-self.pulled // self._size) * self._epoch.num_readings

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return self._tiled(*self._epoch.elements_of(codes), self._epoch.pulled, self.pulled)

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        size, total = self._epoch.num_examples, self.num_examples
        return self._tiled(*self._epoch.places_of(codes), size, total)

    def _tiled(self, query: Int64s, places: Int64s, size: int, total: int) -> tuple[Int64s, Int64s]:
        # int64[epochs]: each place of the epoch comes again in every one of them.
        starts = np.arange(0, total, max(size, 1))
        everywhere = (places[:, None] + starts).ravel()
        kept = np.flatnonzero(everywhere < total)
        return in_order(np.repeat(query, len(starts))[kept], everywhere[kept])

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        size = self._size
        if self._epoch.num_examples <= PIECE < (stop - start):
            # Many short epochs, taken from one copy of it.
            codes = np.concatenate([NONE, *self._epoch.chunks(0, self._epoch.pulled)])
            first, last = self.before(np.array([start, stop])).tolist()
            for place in range(first, last, PIECE):
                yield codes[np.arange(place, min(place + PIECE, last)) % len(codes)]
            return
        while start < stop:
            first = start // size * size
            yield from self._epoch.chunks(start - first, min(stop - first, size))
            start = first + size


class Concatenate(Node):
    """`ds.concatenate(other)`: the iterator of the other is made when it is needed.

    Raises:
        UsageError: only one of the two has batches.
    """

    def __init__(self, first: Node, second: Node) -> None:
        self.inputs = (first, second)
        if len(first.shape) != len(second.shape):
            raise UsageError("concatenate of batches and single examples: batch both, or none")
        self.shape = shape_of_any(self.inputs)

    @property
    def never_ends(self) -> bool:
        return any(node.never_ends for node in self.inputs)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # concatenate_dataset_op.cc asks in this order.
        for special in (INFINITE, UNKNOWN):
            if special in counts:
                return special
        return sum(counts)

    def iterate(self) -> ConcatenateIteration:
        return ConcatenateIteration(self)


class ConcatenateIteration(Joined):
    """An iterator over the first, and then the second."""

    is_repeated = False

    def __init__(self, node: Concatenate) -> None:
        super().__init__()
        self._left = list(node.inputs)
        self.sources.append(self._left.pop(0).iterate())

    def _advance(self, count: int) -> int:
        done = 0
        while (done := done + self.sources[-1].pull(count - done)) < count and self._left:
            self.sources.append(self._left.pop(0).iterate())
        return done

    def abandon(self) -> None:
        self.sources[-1].abandon()
