"""Stages that hand out every so-manyth element from some place on: take, skip, shard, map, ..."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UnpredictableOrderError
from shardctl.iteration.iteration import (
    INFINITE,
    NOTHING,
    UNKNOWN,
    Derived,
    Iteration,
    Node,
    read_ahead,
)


class Strided(Node):
    """Elements `first`, `first + stride`, ... of the input, at most `limit` of them.

    `take(n)` has a limit, `skip(n)` a first, `skip(-1)` both, `shard(n, i)` a first and a
    stride; `map`, `prefetch` and `with_options` hand out all.

    reads_ahead: how many elements threads may read before they are asked for, None any number.
    warm: threads begin when an iterator is made, not when it is first asked.
    has_prefetch: it is a prefetch.

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Strided(Source(range(10)), first=2, stride=3).iterate()
    >>> iteration.pull(9), iteration.examples(np.arange(3)).tolist()
    (3, [2, 5, 8])
    """

    def __init__(
        self,
        child: Node,
        *,
        first: int = 0,
        stride: int = 1,
        limit: int | None = None,
        reads_ahead: int | None = 0,
        warm: bool = False,
        has_prefetch: bool = False,
    ) -> None:
        self.inputs, self.shape = (child,), child.shape
        self.first, self.stride, self.limit = first, stride, limit
        self.reads_ahead, self.warm = reads_ahead, warm
        self.has_prefetch = has_prefetch

    @property
    def is_infinite(self) -> bool:
        return self.limit is None and self.child.is_infinite

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        if count == UNKNOWN:
            return count
        if count == INFINITE:
            # TensorFlow says so of skip(-1) too, which skips all (skip_dataset_op.cc).
            return count if self.limit is None or self.first else self.limit
        count = len(range(self.first, count, self.stride))
        return count if self.limit is None else min(self.limit, count)

    def iterate(self) -> Iteration:
        # take(0) and skip(-1) make an iterator of their own, and none of their input.
        return NOTHING.iterate() if self.limit == 0 else StridedIteration(self)


class StridedIteration(Derived):
    """An iterator over every so-manyth element."""

    def __init__(self, node: Strided) -> None:
        super().__init__(node.child.iterate())
        self._node = node
        self._is_abandoned = False
        self._fault: UnpredictableOrderError | None = None  # of what was handed out until then

    def _advance(self, count: int) -> int:
        node, child = self._node, self._child
        wanted = self.pulled + count
        total = wanted if node.limit is None else min(wanted, node.limit)
        needed = node.first + (total - 1) * node.stride + 1 - child.pulled
        if total > self.pulled and child.pull(needed) < needed:
            # All that the input had is read; of a shard, some behind the last that is handed out.
            total = len(range(node.first, child.pulled, node.stride))
        elif total == node.limit:
            self.abandon()
        return total - self.pulled

    def abandon(self) -> None:
        if not self._is_abandoned:
            self._is_abandoned = True
            # What threads read beyond it is nobody's, however little is known of it.
            try:
                self._child.check()
            except UnpredictableOrderError as fault:
                self._fault = fault
            if self._node.reads_ahead != 0 and (self.pulled or self._node.warm):
                read_ahead(self._node.child, self._child, self._node.reads_ahead)
            self._child.abandon()

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault
        if not self._is_abandoned:
            super().check()

    def _inputs_of(self, elements: Int64s) -> Int64s:
        if self._node.first == 0 and self._node.stride == 1:
            return elements
        return elements * self._node.stride + self._node.first

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        elements, rest = np.divmod(inputs - self._node.first, self._node.stride)
        return np.where(rest, -1, elements)

    def before(self, elements: Int64s) -> Int64s:
        if self._node.stride > 1:
            return super().before(elements)
        inputs = np.minimum(elements + self._node.first, self._child.pulled)
        return self._child.before(inputs) - self._skipped

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        if self._node.stride > 1:
            return super().at(places)
        elements, offsets = self._child.at(places + self._skipped)
        return elements - self._node.first, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        if self._node.stride > 1:
            return super().codes_at(places)
        return self._child.codes_at(places + self._skipped)

    @property
    def _skipped(self) -> int:
        """Number of examples before the first element; nothing is asked where there is none."""
        return int(self._child.before(np.array([min(self._node.first, self._child.pulled)]))[0])

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        node, width = self._node, self.width
        if start >= stop:
            return
        if node.stride == 1:
            yield from self._child.chunks(start + node.first, stop + node.first)
        elif width is None:
            yield from super().chunks(start, stop)
        else:
            first, last = (index * node.stride + node.first for index in (start, stop - 1))
            place = 0
            for chunk in self._child.chunks(first, last + 1):
                if width == 1:
                    yield chunk[-place % node.stride :: node.stride]
                else:
                    elements = np.arange(place, place + len(chunk)) // width
                    yield chunk[elements % node.stride == 0]
                place += len(chunk)
