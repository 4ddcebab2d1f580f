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
    Axis,
    Iteration,
    Node,
    has_prefetch_below,
    lasting_below,
)
from shardctl.core.iteration.nodes.joined import NONE, Joined, in_order
from shardctl.errors import UsageError


class Repeat(Node):
    """`ds.repeat(count)`; None repeats until an epoch is empty.

    Of a finite one TensorFlow makes an iterator of the input more than there are epochs
    (tensorflow/core/kernels/data/repeat_dataset_op.cc).

    >>> from shardctl.core.iteration.nodes.source import Source
    >>> iteration = Repeat(Source(range(3)), None).iterate()
    >>> iteration.pull(10**12), iteration.examples(np.array([10**12 - 1])).tolist()
    (1000000000000, [0])
    """

    def __init__(self, child: Node, count: int | None) -> None:
        self.child, self.inputs, self.shape = child, (child,), child.shape
        self.count = count

    @property
    def is_infinite(self) -> bool:
        return self.child.is_infinite or (self.count is None and self.child.num_elements != 0)

    @property
    def never_ends(self) -> bool:
        child = self.child
        is_some = child.is_counted and child.num_elements > 0
        return child.never_ends or (self.count is None and is_some)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        if count == 0:
            return 0
        if self.count is None:
            return INFINITE
        return count if count < 0 else count * self.count

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


class Cycle(Iteration):
    """A repeat of epochs that are all alike: one of them stands for all."""

    def __init__(self, node: Repeat) -> None:
        super().__init__()
        self._node, self._epoch = node, node.child.iterate()

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
    def inputs(self) -> tuple[Iteration, ...]:
        return (self._epoch,)

    @property
    def width(self) -> int | None:
        return self._epoch.width

    def _local(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        epochs, local = np.divmod(elements, max(self._epoch.pulled, 1))
        return epochs, local

    def widths(self, elements: Int64s) -> Int64s:
        return self._epoch.widths(self._local(elements)[1])

    def examples(self, elements: Int64s) -> Int64s:
        epochs, local = self._local(elements)
        if not readings.are_counted():
            return self._epoch.examples(local)
        earlier = np.repeat(epochs, self._epoch.widths(local)) * self._epoch.num_readings
        numbers: Int64s = self._epoch.examples(local) + earlier
        return numbers

    def before(self, elements: Int64s) -> Int64s:
        epochs, local = self._local(elements)
        return epochs * self._epoch.num_examples + self._epoch.before(local)

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        epochs, local = np.divmod(places, max(self._epoch.num_examples, 1))
        elements, offsets = self._epoch.at(local)
        return elements + epochs * self._epoch.pulled, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        epochs, local = np.divmod(places, max(self._epoch.num_examples, 1))
        if not readings.are_counted():
            return self._epoch.codes_at(local)
        numbers: Int64s = self._epoch.codes_at(local) + epochs * self._epoch.num_readings
        return numbers

    @property
    def num_readings(self) -> int:
        return -(-self.pulled // max(self._epoch.pulled, 1)) * self._epoch.num_readings

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
        size = max(self._epoch.pulled, 1)
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
        self.shape = tuple(
            Axis(max(one.size, other.size), one.is_exact and one == other)
            for one, other in zip(first.shape, second.shape, strict=True)
        )

    @property
    def is_infinite(self) -> bool:
        return any(node.is_infinite for node in self.inputs)

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
