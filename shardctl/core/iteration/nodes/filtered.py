"""`filter` where a list says which examples pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.iteration import iteration as readings
from shardctl.core.iteration.iteration import EVERYTHING, PIECE, UNKNOWN, Iteration, Node
from shardctl.core.iteration.nodes.batch import Batch, Unbatch
from shardctl.core.iteration.nodes.directed import Directed, DirectedIteration
from shardctl.core.iteration.nodes.strided import Strided
from shardctl.errors import UsageError

Passing = Callable[[Int64s], NDArray[np.bool_]]  # whether each code passes

_MOST_IN_VAIN = 1 << 20  # examples of an endless input that are looked at one by one


class Filter(Node):
    """`ds.filter(predicate)`: the elements whose code passes.

    How many of its input are left is kept every 65,536 elements; what lies between is looked up.

    >>> from shardctl.core.iteration.nodes.source import Source
    >>> iteration = Filter(Source(range(10)), lambda codes: codes % 3 == 1).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([2, 0])).tolist()
    (3, [7, 1])

    Raises:
        UsageError: an element holds several examples.
    """

    def __init__(self, child: Node, passes: Passing) -> None:
        self.child, self.inputs, self.passes = child, (child,), passes
        if child.shape:
            raise UsageError(
                "filter: a list of examples says which examples pass, and here an element holds "
                "several (a batch, a tuple of zip): put the filter before them"
            )

    @property
    def is_infinite(self) -> bool:
        return self.child.is_infinite

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # tensorflow/core/kernels/data/filter_dataset_op.cc has none of its own.
        return 0 if counts == [0] else UNKNOWN

    def iterate(self) -> FilterIteration:
        return FilterIteration(self)


class FilterIteration(Iteration):
    """An iterator: what its input has handed out, and how much of that passed."""

    def __init__(self, node: Filter) -> None:
        super().__init__()
        self._node, self._child = node, node.child.iterate()
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
    def inputs(self) -> Sequence[Iteration]:
        return (self._child,)

    @property
    def width(self) -> int:
        return 1

    def widths(self, elements: Int64s) -> Int64s:
        return np.ones(len(elements), np.int64)

    def _inputs_of(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        blocks = np.searchsorted(self._sums, elements, "right") - 1
        for block in np.unique(blocks).tolist():
            here = np.flatnonzero(blocks == block)
            found[here] = self._passing(block)[elements[here] - self._sums[block]]
        return found

    def _passing(self, block: int) -> Int64s:
        """Return the elements of the input in a block that pass."""
        stop = min((block + 1) * PIECE, self._seen)
        if self._known[:2] != (block, stop):
            elements = np.arange(block * PIECE, stop)
            with handing_out(self._node, inputs=False), readings.counted(on=False):
                codes = self._ahead.examples(elements)
            self._known = (block, stop, elements[self._node.passes(codes)])
        return self._known[2]

    def examples(self, elements: Int64s) -> Int64s:
        return self._child.examples(self._inputs_of(elements))

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, inputs = self._child.elements_of(codes)
        passes = np.flatnonzero(self._node.passes(np.asarray(codes, np.int64))[query])
        query, inputs = query[passes], inputs[passes]
        elements = np.empty(len(inputs), np.int64)
        for block in np.unique(inputs // PIECE).tolist():
            here = np.flatnonzero(inputs // PIECE == block)
            within = np.searchsorted(self._passing(block), inputs[here])
            elements[here] = self._sums[block] + within
        kept = np.flatnonzero(elements < self.pulled)
        return query[kept], elements[kept]


# Which input of a mixture the examples come from that a whole pipeline hands out.


def mixtures_below(node: Node) -> list[Directed]:
    """Return the mixtures of a pipeline, the outermost first, each once."""
    found: dict[int, Directed] = {}
    nodes, seen = [node], set[int]()
    while nodes:
        one = nodes.pop(0)
        if id(one) not in seen:
            seen.add(id(one))
            if isinstance(one, Directed):
                found[id(one)] = one
            # Choices that are mixed are no examples.
            nodes.extend(one.data if isinstance(one, Directed) else one.inputs)
    return list(found.values())


@contextmanager
def handing_out(node: Node, *, inputs: bool, only: Directed | None = None) -> Iterator[None]:
    """Let the mixtures below a node, or only one, hand out inputs, or codes, for a while."""
    mixtures = mixtures_below(node) if only is None else [only]
    before = [mixture.hands_out_inputs for mixture in mixtures]
    try:
        for mixture in mixtures:
            mixture.hands_out_inputs = inputs
        yield
    finally:
        for mixture, flag in zip(mixtures, before, strict=True):
            mixture.hands_out_inputs = flag


def counts_of_inputs(node: Node, iteration: Iteration, mixture: Directed, places: Int64s) -> Int64s:
    """Return how many examples of each input come before each place, int64[q, inputs].

    node: the whole pipeline; iteration: an iterator of it; mixture: one of `mixtures_below`.
    places: of examples among all that the iteration hands out, up to their number. What comes from
        elsewhere, the other of a concatenate, counts nowhere.

    With no more than batches, maps and takes behind a mixture this costs a look at a checkpoint;
    else all examples before the last place are looked up, a piece at a time.

    >>> from shardctl.core.iteration.nodes.choosing import Chosen
    >>> from shardctl.core.iteration.nodes.source import Source
    >>> choices = Chosen(Source([1, 0, 0, 1]))
    >>> node = Directed((Source(range(5)), Source(range(5, 9))), choices, stop_on_empty=True)
    >>> iteration = node.iterate()
    >>> iteration.pull(4), counts_of_inputs(node, iteration, node, np.array([0, 3])).tolist()
    (4, [[0, 0], [2, 1]])
    """
    node, iteration = _where_places_are_alike(node, iteration)
    if isinstance(iteration, DirectedIteration) and node is mixture and iteration.width == 1:
        return iteration.counts_before(places)
    num_inputs = len(mixture.data)
    found = np.zeros((len(places), num_inputs), np.int64)
    if not len(places) or not (last := int(places.max())):
        return found
    wanted = np.unique(places)
    counts = np.zeros(num_inputs, np.int64)
    sums, at = np.zeros((len(wanted), num_inputs), np.int64), 0
    elements, _ = iteration.at(np.array([last - 1]))
    with handing_out(node, inputs=True, only=mixture):
        for codes in iteration.chunks(0, int(elements[0]) + 1):
            first, last_one = np.searchsorted(wanted, [at, at + len(codes)], "left")
            for number in range(num_inputs):
                mine = np.flatnonzero(codes == ~number)
                before = np.searchsorted(mine, wanted[first:last_one] - at, "left")
                sums[first:last_one, number] = counts[number] + before
                counts[number] += len(mine)
            at += len(codes)
    sums[np.searchsorted(wanted, at) :] = counts
    return sums[np.searchsorted(wanted, places)]


def _where_places_are_alike(node: Node, iteration: Iteration) -> tuple[Node, Iteration]:
    """Return the input of stages that leave each example at its place, else what is given."""
    while isinstance(node, Batch | Unbatch | Strided) and len(iteration.inputs) == 1:
        if isinstance(node, Strided) and (node.first or node.stride != 1):
            break
        node, iteration = node.child, iteration.inputs[0]
    return node, iteration
