"""`take`, `skip`, `shard`, `cache`, and stages that change no element but read ahead."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.iteration import (
    INFINITE,
    NOTHING,
    UNKNOWN,
    Ending,
    InPlace,
    Iteration,
    Node,
    read_ahead,
)


class Strided(Node):
    """Elements `first`, `first + stride`, ... of the input, at most `limit` of them.

    `take(n)` has a limit, `skip(n)` a first, `skip(-1)` both, `shard(n, i)` a first and a
    stride; `map`, `prefetch` and `with_options` yield all.

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
            # TensorFlow calls skip(-1) infinite too, although it skips all (skip_dataset_op.cc).
            return count if self.limit is None or self.first else self.limit
        count = len(range(self.first, count, self.stride))
        return count if self.limit is None else min(self.limit, count)

    def iterate(self) -> Iteration:
        # take(0) and skip(-1) make an iterator of their own, and none of their input.
        if self.limit == 0:
            return NOTHING.iterate()
        return StridedIteration(self) if self.stride > 1 else StretchIteration(self)


class StridedIteration(Ending):
    """An iterator over every so-manyth element."""

    def __init__(self, node: Strided) -> None:
        super().__init__(node.child.iterate())
        self._node = node

    def _advance(self, count: int) -> int:
        node, child = self._node, self._child
        wanted = self.pulled + count
        total = wanted if node.limit is None else min(wanted, node.limit)
        # How far the input must be read for element total - 1, which is its element first + (total
        # - 1) * stride.
        needed = node.first + (total - 1) * node.stride + 1 - child.pulled
        if total > self.pulled and child.pull(needed) < needed:
            # All that the input had is read; of a shard, some behind the last that is yielded.
            total = len(range(node.first, child.pulled, node.stride))
        # take(n) ends without asking the input behind its n-th element.
        elif total == node.limit:
            self.abandon()
        return total - self.pulled

    def abandon(self) -> None:
        if not self._is_over:
            self._end()  # before threads are taken into account
            # Threads start with the first element that is asked for, or at once with warm start.
            if self._node.reads_ahead != 0 and (self.pulled or self._node.warm):
                read_ahead(self._node.child, self._child, self._node.reads_ahead)
            self._child.abandon()

    def _inputs_of(self, elements: Int64s) -> Int64s:
        if self._node.first == 0 and self._node.stride == 1:
            return elements
        return elements * self._node.stride + self._node.first

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        elements, rest = np.divmod(inputs - self._node.first, self._node.stride)
        # Elements that a shard leaves out are -1, which `Derived.elements_of` drops.
        return np.where(rest, -1, elements)


class StretchIteration(StridedIteration):
    """An iterator over neighbours: examples lie as in the input, shifted by those skipped."""

    _counted = _num_skipped = 0  # elements of the input before the first one, and their examples

    def before(self, elements: Int64s) -> Int64s:
        # One question for both: behind the end nothing is kept, and two at each skip are 2**n.
        inputs = np.minimum(np.append(elements, 0) + self._node.first, self._child.pulled)
        found: Int64s = self._child.before(inputs)
        return found[:-1] - found[-1:]

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        elements, offsets = self._child.at(places + self._skipped)
        return elements - self._node.first, offsets

    def codes_at(self, places: Int64s) -> Int64s:
        return self._child.codes_at(places + self._skipped)

    @property
    def _skipped(self) -> int:
        """Number of examples before the first element; nothing is asked where there is none."""
        first, pulled = self._node.first, self._child.pulled
        if first and self._counted < first:
            # Kept: each of many skips in a row asks the one before it twice.
            self._counted = min(first, pulled)
            self._num_skipped = int(self._child.before(np.array([self._counted]))[0])
        return self._num_skipped

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        if start < stop:
            yield from self._child.chunks(start + self._node.first, stop + self._node.first)


# `cache()` in memory: the first complete pass is kept, and later iterators repeat it.
#
# It is complete with as many elements as `assert_cardinality` says, which stands here for that.


class Cache(Node):
    """`ds.cache()`; filled once an iterator has seen the end, or all that TensorFlow knows of.

    >>> from shardctl.iteration.iteration import Source
    >>> cache = Cache(Source(range(3)))
    >>> cache.iterate().pull(2), cache.state
    (2, 0)
    >>> cache.iterate().pull(3), cache.state
    (3, 1)
    """

    def __init__(self, child: Node) -> None:
        self.inputs, self.shape = (child,), child.shape
        self.kept: Iteration | None = None
        self._is_uncertain = False
        # Over an input whose iterators are all alike it makes no difference what is kept.
        self.lasting = () if child.is_fixed else (self,)

    @property
    def state(self) -> int:
        return int(self.kept is not None)

    def make_uncertain(self) -> None:
        """Note that threads may have filled it, or not."""
        self._is_uncertain = True

    def iterate(self) -> CacheIteration:
        if self._is_uncertain:
            raise UnpredictableOrderError(
                "whether cache() is filled depends on timing: threads above it read ahead when a "
                "pass is cut short; cut below the stages that read ahead"
            )
        return CacheIteration(self)


class CacheIteration(InPlace):
    """An iterator that fills the cache, or yields what it holds."""

    def __init__(self, node: Cache) -> None:
        # A filled cache reads the iterator that filled it, and makes none below: no seeds are
        # taken.
        super().__init__(node.child.iterate() if node.kept is None else node.kept)
        self._node, self._fills = node, node.kept is None

    def _advance(self, count: int) -> int:
        if not self._fills:
            return min(count, self._child.pulled - self.pulled)
        got = self._child.pull(count)
        is_whole = self._child.ended or self._child.pulled == self._node.cardinality
        # Of two iterators that fill at the same time the first to finish counts.
        if is_whole and self._node.kept is None:
            self._node.kept = self._child
        return got

    def abandon(self) -> None:
        if self._fills:
            self._child.abandon()


class Asserted(Node):
    """`ds.apply(assert_cardinality(count))`, whose elements are those of its input.

    TensorFlow counts them as they are read, and fails where the count is another
    (tensorflow/core/kernels/data/experimental/assert_cardinality_dataset_op.cc).

    >>> from shardctl.iteration.iteration import Source
    >>> Asserted(Source(range(3)), 3).cardinality
    3

    Raises:
        UsageError: it is known that there are more or fewer.
    """

    def __init__(self, child: Node, count: int) -> None:
        self.inputs, self.shape = (child,), child.shape
        self._count = INFINITE if count < 0 else count
        known = (
            INFINITE if child.never_ends else child.num_elements if child.is_counted else UNKNOWN
        )
        if known not in (UNKNOWN, self._count):
            there = "elements without end" if known == INFINITE else f"{known}"
            raise UsageError(f"assert_cardinality({count}): there are {there}")

    def cardinality_of(self, counts: Sequence[int]) -> int:
        return self._count

    def iterate(self) -> Iteration:
        return self.child.iterate()
