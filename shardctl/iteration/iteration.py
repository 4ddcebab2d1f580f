"""What every node of a pipeline and every iterator of it can do.

A `Node` is a `tf.data.Dataset` object: it lives as long as the script and holds what outlives an
iterator, the generator of a shuffle that reshuffles and the memory of a cache. `iterate` makes an
iterator of it, an `Iteration`, and takes seeds just as TensorFlow does at that moment. `pull`
counts how far the iterator is read; only counts move, so that a pass of a billion elements is over
at once. What has been pulled can be looked up at any place, in any order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from shardctl.base.arrays import Int64s, groups_of, ranges
from shardctl.errors import UnpredictableOrderError

INFINITE, UNKNOWN = -1, -2  # tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY
EVERYTHING = 1 << 62  # elements to pull where all there are are meant
_EXAMPLES, _WIDTH = 1 << 20, 64  # of a piece of an answer; in elements of unknown width
PIECE = 1 << 16  # elements that are looked up at once where an answer is made piece by piece


class Axis(NamedTuple):
    """An axis of elements: its length, which is exact or the most it may be.

    is_batch: a batch gave it; else it stands for the parts of a tuple of `zip`.
    """

    size: int
    is_exact: bool
    is_batch: bool = True


class Lasting(Protocol):
    """What outlives an iterator and changes the next ones: a seed generator, a cache."""

    @property
    def state(self) -> int:
        """Return a number that is another one after each change."""

    def make_uncertain(self) -> None:
        """Note that the state is no longer known."""


class Node(ABC):
    """A dataset object. `iterate` is called once for each iterator that TensorFlow makes of it.

    inputs: the nodes that it reads.
    lasting: what it holds that outlives an iterator.
    shape: the axes of an element, outermost first; an example has none.
    has_prefetch: whether its elements come out of a prefetch, as those of TFDS's reader do.
    """

    has_prefetch: bool = False
    inputs: tuple[Node, ...] = ()
    lasting: tuple[Lasting, ...] = ()
    shape: tuple[Axis, ...] = ()

    @abstractmethod
    def iterate(self) -> Iteration:
        """Return a new iterator; down to the first shuffle the ones below are made at once."""

    @property
    def child(self) -> Node:
        """The one node that it reads."""
        return self.inputs[0]

    @property
    def is_infinite(self) -> bool:
        """Whether its iterators never end."""
        return any(node.is_infinite for node in self.inputs)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        """Return the number of elements, INFINITE or UNKNOWN, of those of its inputs."""
        return counts[0]

    @property
    def cardinality(self) -> int:
        """What `ds.cardinality()` says: the number of elements, INFINITE or UNKNOWN."""
        return self.cardinality_of([node.cardinality for node in self.inputs])

    @property
    def num_elements(self) -> int:
        """As `cardinality`, but also where TensorFlow does not know it, as of record files."""
        return self.cardinality_of([node.num_elements for node in self.inputs])

    @property
    def is_counted(self) -> bool:
        """Whether `num_elements` is the number of elements, where it says one.

        TensorFlow calls a mixture infinite where one of its inputs is, also if it ends before.
        """
        return self.num_elements != UNKNOWN and all(node.is_counted for node in self.inputs)

    @property
    def never_ends(self) -> bool:
        """Whether its iterators have no end for certain; one that `is_infinite` may be empty."""
        return self.is_infinite and all(node.never_ends for node in self.inputs)

    @property
    def is_fixed(self) -> bool:
        """Whether all its iterators are alike, however many were made and read before."""
        return not self.lasting and all(node.is_fixed for node in self.inputs)


def shape_of_any(nodes: Sequence[Node]) -> tuple[Axis, ...]:
    """Return the axes of elements of several nodes, no longer exact where they differ."""
    axes = zip(*(node.shape for node in nodes), strict=False)
    return tuple(
        # Batches of several sizes in one stream: the largest bounds what one pull can bring.
        first._replace(
            size=max(axis.size for axis in (first, *others)),
            is_exact=first.is_exact and all(axis == first for axis in others),
        )
        for first, *others in axes
    )


class Repeating(Node):
    """A node whose iterators read its input `count` times, None until an epoch is empty."""

    def __init__(self, child: Node, count: int | None) -> None:
        self.inputs, self.shape, self.count = (child,), child.shape, count

    @property
    def is_infinite(self) -> bool:
        # tf.data ends a repeat without end at once if its first epoch is empty.
        return self.child.is_infinite or (self.count is None and self.child.num_elements != 0)

    @property
    def never_ends(self) -> bool:
        child = self.child
        is_some = child.is_counted and child.num_elements > 0
        return child.never_ends or (self.count is None and is_some)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        (count,) = counts
        if self.count is None and count != 0:
            return INFINITE
        # Negative: INFINITE or UNKNOWN, whatever the number of epochs.
        return count if count < 0 else count * (self.count or 0)


class Iteration(ABC):
    """One iterator, read so far to `pulled` elements; `ended` once it has said so.

    An element is an example, or several of them (a batch, a tuple of `zip`).
    """

    def __init__(self) -> None:
        self.pulled = 0
        self.ended = False

    def pull(self, count: int) -> int:
        """Read up to `count` elements more; return how many there were. Fewer means the end.

        It does to the iterators below what `count` calls of GetNext do, up to the first that says
        the end; so iterators are made, seeds are drawn and caches fill at the same point.
        """
        if self.ended or count <= 0:
            return 0
        # `_advance` never returns more than `count`. Fewer is the end, and is remembered: tf.data's
        # iterators do not start again either.
        got = self._advance(count)
        self.pulled += got
        self.ended = got < count
        return got

    @abstractmethod
    def _advance(self, count: int) -> int:
        """Do the work of `pull`, which counts what comes and knows the end."""

    @property
    @abstractmethod
    def width(self) -> int | None:
        """The number of examples of every element pulled so far, None where that differs."""

    def widths(self, elements: Int64s) -> Int64s:
        """Return the number of examples of each element (int64[q], all below `pulled`)."""
        return np.full(len(elements), self.width, np.int64)

    @abstractmethod
    def examples(self, elements: Int64s) -> Int64s:
        """Return the codes of the examples of each element, one element after the other."""

    @abstractmethod
    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, element), int64[r] each, for every time a code is yielded."""

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes of elements [start, stop), one element after the other, in pieces."""
        # Elements of a piece, so that it has about a million examples whatever their width.
        size = max(1, _EXAMPLES // (self.width or _WIDTH))
        for first in range(start, stop, size):
            yield self.examples(np.arange(first, min(first + size, stop)))

    # Examples are counted too: a place is that of an example among all of the iteration.

    @property
    def num_examples(self) -> int:
        """The number of examples of all elements pulled so far."""
        return int(self.before(np.array([self.pulled]))[0])

    def before(self, elements: Int64s) -> Int64s:
        """Return how many examples come before each element (all up to `pulled`)."""
        width = self.width
        return self._counts.before(elements) if width is None else elements * width

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        """Return (element, which of its examples), int64[q] each, of places of examples."""
        width = self.width
        return self._counts.at(places) if width is None else divmod(places, max(width, 1))

    def codes_between(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes of the examples at places [start, stop), in pieces."""
        if start >= stop:
            return
        # Whole elements are read, then the examples before `start` and from `stop` on are cut off.
        (first, last), (skipped, _) = self.at(np.array([start, stop - 1]))
        left, skip = stop - start, int(skipped)
        for chunk in self.chunks(int(first), int(last) + 1):
            part = chunk[skip : skip + left]
            skip, left = max(0, skip - len(chunk)), left - len(part)
            yield part

    def codes_at(self, places: Int64s) -> Int64s:
        """Return the codes of the examples at places (int64[q], below `num_examples`)."""
        if self.width == 1:
            return self.examples(places)
        elements, offsets = self.at(places)
        # Each element is looked up once, however many of its examples are asked for.
        distinct, where = np.unique(elements, return_inverse=True)
        widths = self.widths(distinct)
        within: Int64s = (np.cumsum(widths) - widths)[where] + offsets
        return self.examples(distinct)[within]

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, place), int64[r] each, for every time a code is yielded."""
        query, elements = self.elements_of(codes)
        if self.width == 1 or not len(query):
            return query, elements
        # An element that holds a code twice was found twice: its examples are searched once.
        query, elements = np.unique(np.stack((query, elements)), axis=1)
        widths = self.widths(elements)
        # int64[sum of widths]: which (query, element) pair each example below belongs to.
        rows = np.repeat(np.arange(len(query)), widths)
        found = np.flatnonzero(self.examples(elements) == np.asarray(codes)[query[rows]])
        within = found - (np.cumsum(widths) - widths)[rows[found]]
        return query[rows[found]], self.before(elements)[rows[found]] + within

    def readings_at(self, places: Int64s) -> Int64s:
        """Return which reading of its source each example is of, int64[q].

        They are counted from 0 in this iterator: each repetition of what is below is further ones,
        also where a cache yields what was read before.
        """
        with counted():
            return self.codes_at(places)

    @property
    def num_readings(self) -> int:
        """How many readings of one source there are at most in what was pulled."""
        return max((iteration.num_readings for iteration in self.inputs), default=1)

    @cached_property
    def _counts(self) -> Counts:
        return Counts(self)

    @property
    def inputs(self) -> Sequence[Iteration]:
        """The iterations that what was pulled comes from."""
        return ()

    def check(self) -> None:
        """Refuse to answer where what was pulled depends on timing or on unknown seeds.

        Raises:
            UnpredictableOrderError: it does; the text names the stage.
        """
        for iteration in self.inputs:
            iteration.check()

    def abandon(self) -> None:
        """Note that reading stops here; what threads that read ahead have changed is unknown."""
        for iteration in self.inputs:
            iteration.abandon()

    def cancel(self) -> None:
        """Note that threads above this iterator were still reading when the program stopped."""
        for iteration in self.inputs:
            iteration.cancel()


class Leaf(Iteration):
    """An iterator of a source: `size` elements, each an example."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def _advance(self, count: int) -> int:
        return min(count, self._size - self.pulled)

    @property
    def width(self) -> int:
        return 1

    def examples(self, elements: Int64s) -> Int64s:
        # Where readings are counted, a source is reading 0; repeats above it add theirs.
        return np.zeros(len(elements), np.int64) if are_counted() else self._codes(elements)

    @abstractmethod
    def _codes(self, elements: Int64s) -> Int64s: ...


class Derived(Iteration):
    """An iterator over some elements of one other, by their places in it.

    `_inputs_of` says which element of the input each one is, `_outputs_of` the other way; what it
    says is no element is below 0 or not pulled.
    """

    def __init__(self, child: Iteration) -> None:
        super().__init__()
        self._child = child

    @property
    def inputs(self) -> Sequence[Iteration]:
        return (self._child,)

    @property
    def width(self) -> int | None:
        return self._child.width

    def _inputs_of(self, elements: Int64s) -> Int64s:
        return elements

    def _outputs_of(self, inputs: Int64s) -> Int64s:
        return inputs

    def widths(self, elements: Int64s) -> Int64s:
        if self.width is not None:
            return super().widths(elements)
        return self._child.widths(self._inputs_of(elements))

    def examples(self, elements: Int64s) -> Int64s:
        return self._child.examples(self._inputs_of(elements))

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, inputs = self._child.elements_of(codes)
        elements = self._outputs_of(inputs)
        # -1 stands for "not kept", as of an element that a shard leaves out.
        kept = np.flatnonzero((elements >= 0) & (elements < self.pulled))
        return query[kept], elements[kept]


class Ending(Derived):
    """An iterator that may end before its input does, while threads below it read ahead."""

    def __init__(self, child: Iteration) -> None:
        super().__init__(child)
        self._is_over = False
        self._fault: UnpredictableOrderError | None = None  # of what was yielded until then

    def _end(self) -> None:
        """Note that what threads read beyond this point is never yielded: it need not be known."""
        self._is_over = True
        # Checked now: what was yielded until here may be certain even though the rest is not.
        try:
            self._child.check()
        except UnpredictableOrderError as fault:
            self._fault = fault

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault
        if not self._is_over:
            super().check()


class InPlace(Derived):
    """An iterator whose examples are those of its input, each at its place there."""

    def codes_at(self, places: Int64s) -> Int64s:
        return self._child.codes_at(places)

    def places_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, places = self._child.places_of(codes)
        kept = np.flatnonzero(places < self.num_examples)
        return query[kept], places[kept]

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        yield from self._child.chunks(start, stop)


class ByPlace(Iteration):
    """An iterator whose examples are found by their places, whatever elements they are in."""

    def widths(self, elements: Int64s) -> Int64s:
        return self.before(elements + 1) - self.before(elements)

    def examples(self, elements: Int64s) -> Int64s:
        return self.codes_at(ranges(self.before(elements), self.widths(elements)))

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        query, places = self.places_of(codes)
        return query, self.at(places)[0]


class Counts:
    """How many examples come before each element, where elements differ: one sum a `PIECE`."""

    def __init__(self, iteration: Iteration) -> None:
        self._iteration = iteration
        self._sums = [0]  # of the examples before every PIECE-th element

    def before(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for block, here in groups_of(np.asarray(elements) // PIECE):
            self._sum_up_to(block)
            found[here] = self._within(block)[elements[here] - block * PIECE]
        return found

    def at(self, places: Int64s) -> tuple[Int64s, Int64s]:
        elements, offsets = np.empty(len(places), np.int64), np.empty(len(places), np.int64)
        last = int(places.max(initial=0))
        # Sums are made only as far as the furthest place needs.
        while self._sums[-1] <= last and len(self._sums) * PIECE <= self._iteration.pulled:
            self._sum_up_to(len(self._sums))
        for block, here in groups_of(np.searchsorted(self._sums, places, "right") - 1):
            sums = self._within(block)
            local = np.searchsorted(sums, places[here], "right") - 1
            elements[here], offsets[here] = local + block * PIECE, places[here] - sums[local]
        return elements, offsets

    def _sum_up_to(self, block: int) -> None:
        while len(self._sums) <= block:
            self._sums.append(int(self._within(len(self._sums) - 1)[-1]))

    def _within(self, block: int) -> Int64s:
        """Return the examples before each element of a block, and before the next block."""
        stop = min((block + 1) * PIECE, self._iteration.pulled)
        widths = self._iteration.widths(np.arange(block * PIECE, stop))
        # int64[elements of the block + 1]
        return np.concatenate(([self._sums[block]], self._sums[block] + np.cumsum(widths)))


def lasting_below(node: Node) -> list[Lasting]:
    """Return what outlives the iterators of a node and of all nodes below it, each once."""
    found: dict[int, Lasting] = {}
    nodes, seen = [node], set[int]()
    while nodes:
        node = nodes.pop()
        # A node may be reached in several ways: it is an object, shared by all that read it.
        if id(node) not in seen:
            seen.add(id(node))
            found.update((id(lasting), lasting) for lasting in node.lasting)
            nodes.extend(node.inputs)
    return list(found.values())


def has_prefetch_below(node: Node) -> bool:
    """Return whether a node, or one below it, yields from a prefetch."""
    return node.has_prefetch or any(map(has_prefetch_below, node.inputs))


def read_ahead(node: Node, iteration: Iteration, count: int | None) -> None:
    """Mark what changes if threads read up to `count` elements more of an iteration of `node`.

    None: as many as there are. They may have read all of them, some, or none when a program stops
    reading, so that what differs between the first and the last of these is unknown.
    """
    if node.is_fixed or iteration.ended:
        return
    iteration.cancel()
    lasting = lasting_below(node)
    before = [each.state for each in lasting]
    if count is None and node.is_infinite:
        for each in lasting:
            each.make_uncertain()
        return
    # All of it is read, to see what could change. The iterator is given up, so nothing is lost.
    iteration.pull(EVERYTHING if count is None else count)
    for each, state in zip(lasting, before, strict=True):
        if each.state != state:
            each.make_uncertain()


# Whether iterations yield codes or numbers of readings; see `Iteration.readings_at`.

_COUNTED: ContextVar[bool] = ContextVar("counted", default=False)


def are_counted() -> bool:
    """Whether sources yield zeros, and each repetition adds the readings before it."""
    return _COUNTED.get()


@contextmanager
def counted(*, on: bool = True) -> Iterator[None]:
    """Yield numbers of readings in this block, or codes where it is not `on`."""
    # A context variable and not an argument: every stage passes it on, and few care.
    before = _COUNTED.set(on)
    try:
        yield
    finally:
        _COUNTED.reset(before)


# Sources: elements in a fixed order, each an example.


class Source(Node):
    """`Dataset.range` or `Dataset.from_tensor_slices`: each iterator yields the same codes.

    >>> iteration = Source(range(5)).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([4, 0])).tolist()
    (5, [4, 0])
    """

    def __init__(self, codes: Sequence[int] | Int64s) -> None:
        self.codes = codes if isinstance(codes, range) else np.asarray(codes, np.int64)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        return len(self.codes)

    def iterate(self) -> SourceIteration:
        return SourceIteration(self.codes)


NOTHING = Source(range(0))  # what an iterator reads that makes none below it


class SourceIteration(Leaf):
    """An iterator over codes; those of a range take no memory."""

    def __init__(self, codes: range | Int64s) -> None:
        super().__init__(len(codes))
        self._all = codes

    def _codes(self, elements: Int64s) -> Int64s:
        if isinstance(self._all, range):
            return np.asarray(elements, np.int64) * self._all.step + self._all.start
        return self._all[elements]

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        wanted = np.asarray(codes, np.int64)
        if isinstance(self._all, range):
            # The inverse of a range in closed form.
            elements, rest = np.divmod(wanted - self._all.start, self._all.step)
            found = np.flatnonzero((rest == 0) & (elements >= 0) & (elements < self.pulled))
            return found, elements[found]
        pulled = self._all[: self.pulled]
        order = np.argsort(pulled, kind="stable")
        # A code may come several times: [first, first + counts) of the sorted codes are equal to
        # it.
        first = np.searchsorted(pulled, wanted, "left", sorter=order)
        counts = np.searchsorted(pulled, wanted, "right", sorter=order) - first
        return np.repeat(np.arange(len(wanted)), counts), order[ranges(first, counts)]
