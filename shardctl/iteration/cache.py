"""`cache()` in memory: the first complete pass is kept, and later iterators repeat it.

It is complete with as many elements as `assert_cardinality` says, which stands here for that.
"""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.iteration import INFINITE, UNKNOWN, InPlace, Iteration, Node


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
        # Over an input whose iterators are all alike nobody can tell what is kept.
        self.lasting = () if child.is_fixed else (self,)

    @property
    def state(self) -> int:
        return int(self.kept is not None)

    def make_uncertain(self) -> None:
        """Say that nobody knows whether threads have filled it."""
        self._is_uncertain = True

    def iterate(self) -> CacheIteration:
        if self._is_uncertain:
            raise UnpredictableOrderError(
                "whether cache() is filled depends on timing: threads above it read ahead when a "
                "pass is cut short; cut below the stages that read ahead"
            )
        return CacheIteration(self)


class CacheIteration(InPlace):
    """An iterator that fills the cache, or hands out what it holds."""

    def __init__(self, node: Cache) -> None:
        super().__init__(node.child.iterate() if node.kept is None else node.kept)
        self._node, self._fills = node, node.kept is None

    def _advance(self, count: int) -> int:
        if not self._fills:
            return min(count, self._child.pulled - self.pulled)
        got = self._child.pull(count)
        is_whole = self._child.ended or self._child.pulled == self._node.cardinality
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
