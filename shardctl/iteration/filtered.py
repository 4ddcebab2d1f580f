"""`filter` where a list says which examples pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, groups_of
from shardctl.errors import UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import EVERYTHING, PIECE, UNKNOWN, Derived, Node

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
        # tensorflow/core/kernels/data/filter_dataset_op.cc has none of its own.
        return 0 if counts == [0] else UNKNOWN

    def iterate(self) -> FilterIteration:
        return FilterIteration(self)


class FilterIteration(Derived):
    """An iterator: what its input has handed out, and how much of that passed."""

    def __init__(self, node: Filter) -> None:
        super().__init__(node.child.iterate())
        self._node = node
        # What is looked at ahead is read of another iterator, where all of them are alike.
        self._ahead = node.child.iterate() if node.is_fixed else self._child
        self._sums = [0]  # of what passed in front of every PIECE-th element
        self._seen = 0
        self._passed = 0
        self._known: tuple[int, int, Int64s] = (-1, 0, np.empty(0, np.int64))

    def _advance(self, count: int) -> int:
        wanted, last_passed = self.pulled + count, self._seen
        while (missing := wanted - self._passed) > 0:
            # No more than so many are asked for, so that none is read too early.
            asked = missing if self._ahead is self._child else max(missing, PIECE)
            if self._node.is_infinite:
                asked = min(asked, PIECE)
            before = self._passed
            got = self._ahead.pull(asked)
            self._look(self._seen + got)
            if got < asked:
                break
            if self._passed > before:
                last_passed = self._seen
            elif self._node.is_infinite and self._seen - last_passed > _MOST_IN_VAIN:
                raise UsageError(
                    f"filter: of {self._seen - last_passed:,} examples none passes; where none "
                    "does TensorFlow reads on for ever: check the list of those that are kept"
                )
        if self._ahead is not self._child:
            enough = self._passed >= wanted
            stop = int(self._inputs_of(np.array([wanted - 1]))[0]) + 1 if enough else EVERYTHING
            self._child.pull(stop - self._child.pulled)
        return min(self._passed, wanted) - self.pulled

    def _look(self, stop: int) -> None:
        """Count what passes of the elements up to `stop`."""
        while self._seen < stop:
            block = self._seen // PIECE
            end = min((block + 1) * PIECE, stop)
            codes = self._ahead.examples(np.arange(self._seen, end))
            self._passed += int(np.count_nonzero(self._node.passes(codes)))
            self._seen = end
            if end % PIECE == 0:
                self._sums.append(self._passed)

    @property
    def width(self) -> int:
        return 1

    def _inputs_of(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for block, here in groups_of(np.searchsorted(self._sums, elements, "right") - 1):
            found[here] = self._passing(block)[elements[here] - self._sums[block]]
        return found

    def _passing(self, block: int) -> Int64s:
        """Return the elements of the input in a block that pass."""
        stop = min((block + 1) * PIECE, self._seen)
        if self._known[:2] != (block, stop):
            elements = np.arange(block * PIECE, stop)
            with readings.counted(on=False):
                codes = self._ahead.examples(elements)
            self._known = (block, stop, elements[self._node.passes(codes)])
        return self._known[2]

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        elements = np.full(len(inputs), -1)
        for block, here in groups_of(inputs // PIECE):
            passing = np.append(self._passing(block), -1)
            within = np.searchsorted(passing[:-1], inputs[here])
            passes = passing[within] == inputs[here]
            elements[here[passes]] = self._sums[block] + within[passes]
        return elements
