"""`repeat` that TensorFlow did not fuse with a shuffle, and `concatenate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.iteration import iteration as readings
from shardctl.core.iteration.iteration import (
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
from shardctl.core.iteration.nodes.joined import NONE, Joined, in_order
from shardctl.errors import UsageError


class Repeat(Repeating):
    """`ds.repeat(count)`; None repeats until an epoch is empty.

    Of a finite one TensorFlow makes an iterator of the input more than there are epochs
    (tensorflow/core/kernels/data/repeat_dataset_op.cc).

    >>> from shardctl.core.iteration.nodes.source import Source
    >>> iteration = Repeat(Source(range(3)), None).iterate()
    >>> iteration.pull(10**12), iteration.examples(np.array([10**12 - 1])).tolist()
    (1000000000000, [0])
    """

    def iterate(self) -> Iteration:
        return Cycle(self) if self.child.is_fixed else RepeatIteration(self)


class RepeatIteration(Joined):
    """An iterator over epochs, each read by an iterator of its own."""

    def __init__(self, node: Repeat) -> None:
        super().__init__()
        self._node, self._current = node, node.child.iterate()
        self.pieces.append(self._current)
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
                # Who reads on behind this end, as threads of a map do, begins a further epoch.
                for each in lasting_below(self._node.child):
                    each.make_uncertain()
                return done
            self._current = self._node.child.iterate()
            if self._num_ended == self._node.count:
                self._current.abandon()
                return done
            self.pieces.append(self._current)

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
        return -(-self.pulled // self._size) * self._epoch.num_readings

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return self._tiled(*self._epoch.elements_of(codes), self._epoch.pulled, self.pulled)

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        size, total = self._epoch.num_examples, self.num_examples
        return self._tiled(*self._epoch.places_of(codes), size, total)

    def _tiled(self, query: Int64s, places: Int64s, size: int, total: int) -> tuple[Int64s, Int64s]:
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
        self.pieces.append(self._left.pop(0).iterate())

    def _advance(self, count: int) -> int:
        done = 0
        while (done := done + self.pieces[-1].pull(count - done)) < count and self._left:
            self.pieces.append(self._left.pop(0).iterate())
        return done

    def abandon(self) -> None:
        self.pieces[-1].abandon()
