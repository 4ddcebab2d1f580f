"""`take`, `skip`, `shard`, `cache`, `filter`, and stages that change no element but read ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, groups_of
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import (
    INFINITE,
    NOTHING,
    PIECE,
    UNKNOWN,
    Derived,
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
        return NOTHING.iterate() if self.limit == 0 else StridedIteration(self)


class StridedIteration(Derived):
    """An iterator over every so-manyth element."""

    def __init__(self, node: Strided) -> None:
        super().__init__(node.child.iterate())
        self._node = node
        self._is_abandoned = False
        self._fault: UnpredictableOrderError | None = None  # of what was yielded until then

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
        if not self._is_abandoned:
            self._is_abandoned = True
            # What threads read beyond this point is never yielded, so it need not be known.
            try:
                # Checked now, before threads are taken into account: what was yielded until here
                # may be certain even though what they read ahead is not.
                self._child.check()
            except UnpredictableOrderError as fault:
                self._fault = fault
            # Threads start with the first element that is asked for, or at once with warm start.
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
        # Elements that a shard leaves out are -1, which `Derived.elements_of` drops.
        return np.where(rest, -1, elements)

    def before(self, elements: Int64s) -> Int64s:
        if self._node.stride > 1:
            return super().before(elements)
        # Without a stride, examples lie as in the input, shifted by those skipped.
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
        if self._node.stride > 1:
            yield from super().chunks(start, stop)
        elif start < stop:
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


# `filter` where a list says which examples pass.

Passing = Callable[[Int64s], NDArray[np.bool_]]  # whether each code passes

_MOST_IN_VAIN = 1 << 20  # examples of an endless input that are looked at one by one


class Filter(Node):
    """`ds.filter(predicate)`: the elements whose code passes.

    How many of its input are left is kept every 65,536 elements; what lies between is looked up.

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Filter(Source(range(10)), lambda codes: codes % 3 == 1).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([2, 0])).tolist()
    (3, [7, 1])

    Raises:
        UsageError: an element holds several examples.
    """

    def __init__(self, child: Node, passes: Passing) -> None:
        self.inputs, self.passes = (child,), passes
        if child.shape:
            raise UsageError(
                "filter: a list of examples says which examples pass, and here an element holds "
                "several (a batch, a tuple of zip): put the filter before them"
            )

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # tensorflow/core/kernels/data/filter_dataset_op.cc defines no cardinality.
        return UNKNOWN

    def iterate(self) -> FilterIteration:
        return FilterIteration(self)


class FilterIteration(Derived):
    """An iterator: what its input has yielded, and how much of that passed."""

    def __init__(self, node: Filter) -> None:
        super().__init__(node.child.iterate())
        self._node = node
        self._sums = [0]  # of what passed in front of every PIECE-th element
        self._seen = 0
        self._passed = 0
        self._known: tuple[int, int, Int64s] = (-1, 0, np.empty(0, np.int64))

    def _advance(self, count: int) -> int:
        wanted, last_passed = self.pulled + count, self._seen
        while (missing := wanted - self._passed) > 0:
            # No more than so many are asked for, so that none is read too early: where all
            # iterators are alike it makes no difference.
            asked = max(missing, PIECE) if self._node.is_fixed else missing
            # In pieces, since of an endless input perhaps nothing ever passes.
            if self._node.is_infinite:
                asked = min(asked, PIECE)
            before = self._passed
            got = self._child.pull(asked)
            self._look(self._seen + got)
            if got < asked:
                break
            if self._passed > before:
                last_passed = self._seen
            elif self._node.is_infinite and self._seen - last_passed > _MOST_IN_VAIN:
                raise UsageError(
                    f"filter: none of {self._seen - last_passed:,} examples passes, and TensorFlow "
                    "would read indefinitely: check the list of those that are kept"
                )
        return min(self._passed, wanted) - self.pulled

    def _look(self, stop: int) -> None:
        """Count what passes of the elements up to `stop`."""
        while self._seen < stop:
            block = self._seen // PIECE
            end = min((block + 1) * PIECE, stop)
            codes = self._child.examples(np.arange(self._seen, end))
            self._passed += int(np.count_nonzero(self._node.passes(codes)))
            self._seen = end
            # A sum at each whole block: finding an element looks through one block at most.
            if end % PIECE == 0:
                self._sums.append(self._passed)

    @property
    def width(self) -> int:
        return 1

    def _inputs_of(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for block, here in groups_of(np.searchsorted(self._sums, elements, "right") - 1):
            # Element e is the (e - sum before the block)-th of those that pass in the block.
            found[here] = self._passing(block)[elements[here] - self._sums[block]]
        return found

    def _passing(self, block: int) -> Int64s:
        """Return the elements of the input in a block that pass."""
        stop = min((block + 1) * PIECE, self._seen)
        if self._known[:2] != (block, stop):
            elements = np.arange(block * PIECE, stop)
            # The predicate needs codes, also where the answer is to be numbers of readings.
            with readings.counted(on=False):
                codes = self._child.examples(elements)
            self._known = (block, stop, elements[self._node.passes(codes)])
        return self._known[2]

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        elements = np.full(len(inputs), -1)
        for block, here in groups_of(inputs // PIECE):
            # -1 at the end, so that a search that runs off the end compares unequal.
            passing = np.append(self._passing(block), -1)
            within = np.searchsorted(passing[:-1], inputs[here])
            passes = passing[within] == inputs[here]
            elements[here[passes]] = self._sums[block] + within[passes]
        return elements
