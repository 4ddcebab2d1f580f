"""Nodes over several inputs: `zip`, `sample_from_datasets`, `choose_from_datasets`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cached_property, reduce
from itertools import accumulate
from math import prod

import numpy as np

from shardctl.base.arrays import Int64s, ranges
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import (
    EVERYTHING,
    INFINITE,
    PIECE,
    UNKNOWN,
    Axis,
    Iteration,
    Lasting,
    Node,
    lasting_below,
    shape_of_any,
)
from shardctl.iteration.repeat import Concatenate, Gathered, Repeat, in_order
from shardctl.iteration.selection import Cache, Strided
from shardctl.iteration.shuffle import Shuffle
from shardctl.tfdata.mixture import BLOCK, Float64s, MixtureSchedule, SampledChoices
from shardctl.tfdata.shuffle_seeds import SeedGenerator, TakenSeeds

# Several inputs that are read in turn, and what two of them share; `zip`, one element of each.
#
# Counts are played many elements at a time, each input on its own. That is exact as long as no
# input ends before it is known, and as long as no two inputs change one thing by turns: the seed
# generator of a shuffle, or the memory of a cache, of a dataset object that is used twice.


def certain_left(node: Node, iteration: Iteration) -> int:
    """Return how many elements an iteration has left for certain, without reading any.

    >>> from shardctl.iteration.iteration import Source
    >>> node = Source(range(5))
    >>> iteration = node.iterate()
    >>> iteration.pull(2), certain_left(node, iteration)
    (2, 3)
    """
    if iteration.ended:
        return 0
    if node.never_ends:
        return EVERYTHING
    known = getattr(iteration, "certain_left", None)  # of a mixture, which has no cardinality
    if known is not None:
        return int(known)
    return node.num_elements - iteration.pulled if node.is_counted else 0


class Sharing:
    """What several inputs share that reading them changes, by the order in which they are read.

    by_turns: two of them at least change such a thing while they are read, so that every single
        element has to be played in its turn.

    >>> from shardctl.iteration.iteration import Source
    >>> cache = Cache(Repeat(Source(range(3)), 2))
    >>> Sharing((cache, cache)).by_turns  # what it holds is the same, whoever fills it
    False
    """

    def __init__(self, inputs: Sequence[Node]) -> None:
        # By identity: two generators with equal seeds are still two objects, which advance
        # separately.
        below = [{id(one): one for one in lasting_below(node)} for node in inputs]
        everything = {key: one for each in below for key, one in each.items()}
        self.by_turns = False
        self._uncertain: list[Lasting] = []
        for key, lasting in everything.items():
            # Below one input only: no other can change it in between.
            if sum(key in each for each in below) < 2:
                continue
            ways = [_ways(node, lasting) for node in inputs]
            changing = [way for way in ways if way is not None]
            # One input that changes it is harmless: its own reads come in their order in any case.
            if len(changing) > 1:
                self.by_turns = True
                if "threads" in changing:
                    self._uncertain.append(lasting)

    def iterators_made(self) -> None:
        """Say that the iterators of all inputs are there: what threads change now is unknown."""
        for lasting in self._uncertain:
            lasting.make_uncertain()


def _ways(node: Node, lasting: Lasting, *, threads: bool = False, late: bool = False) -> str | None:
    """Return how reading a node changes what lasts: "turns", "threads", None where it does not.

    Not where it changes only as iterators are made: all of them are made at once, in their order.

    threads: a stage above reads ahead. late: one above makes iterators while it is read.
    """
    threads = threads or (isinstance(node, Strided) and node.reads_ahead != 0)
    found: set[str | None] = set()
    # A plain shuffle takes its seeds when its iterator is made; then playing by turns is not
    # needed.
    changes = late or isinstance(node, Cache) or _goes_on_taking(node)
    if changes and any(one is lasting for one in node.lasting):
        found.add("threads" if threads else "turns")
    for index, below in enumerate(node.inputs):
        # Concatenate makes its second input late, its first one at once.
        makes_late = Repeat | Shuffle | Concatenate if index else Repeat | Shuffle
        is_late = late or isinstance(node, makes_late)
        found.add(_ways(below, lasting, threads=threads, late=is_late))
    # "threads" counts more than "turns": what threads do cannot be followed at all.
    return "threads" if "threads" in found else "turns" if "turns" in found else None


def _goes_on_taking(node: Node) -> bool:
    """Whether an iterator takes seeds not only as it is made."""
    # A fused repeat takes a pair for each epoch; an infinite reader a pair for each list of files.
    return node.count != 1 if isinstance(node, Shuffle) else node.is_infinite


class Zip(Node):
    """`tf.data.Dataset.zip(inputs)`, as long as the shortest.

    Its iterator makes those of all inputs at once. When one says the end it asks the others once
    more, so that caches of the same length fill (tensorflow/core/kernels/data/zip_dataset_op.cc).

    >>> from shardctl.iteration.iteration import Source
    >>> iteration = Zip((Source(range(5)), Source(range(10, 13)))).iterate()
    >>> iteration.pull(9), iteration.examples(np.array([2, 0])).tolist()
    (3, [2, 12, 0, 10])
    """

    def __init__(self, inputs: Sequence[Node]) -> None:
        self.inputs = tuple(inputs)
        # The parts of a tuple stay together in what groups tuples, as if they were a batch.
        sizes = [prod(axis.size for axis in node.shape) for node in inputs]
        is_exact = all(axis.is_exact for node in inputs for axis in node.shape)
        self.shape = (Axis(sum(sizes), is_exact, is_batch=False),)
        self.sharing = Sharing(self.inputs)

    @property
    def is_infinite(self) -> bool:
        return all(node.is_infinite for node in self.inputs)

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # zip_dataset_op.cc: unknown if any input is; else the shortest, infinite ones left out.
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)

    def iterate(self) -> ZipIteration:
        return ZipIteration(self)


class ZipIteration(Iteration):
    """An iterator: one of each input, each read as far as TensorFlow has read it."""

    def __init__(self, node: Zip) -> None:
        super().__init__()
        self._node = node
        self.sources = [one.iterate() for one in node.inputs]
        node.sharing.iterators_made()

    def _advance(self, count: int) -> int:
        done, has_ended = 0, False
        while done < count and not has_ended:
            got, has_ended = self._read(count - done)
            done += got
        if has_ended:
            self.abandon()
        return done

    def _read(self, wanted: int) -> tuple[int, bool]:
        """Read tuples, many where only one input may end; return how many, and whether one did."""
        pairs = list(zip(self._node.inputs, self.sources, strict=True))
        left = [certain_left(node, source) for node, source in pairs]
        # `first` may end; all others have at least `many` elements left for certain.
        first, *others = np.argsort(left, kind="stable").tolist()
        many = min([left[number] for number in others], default=wanted)
        if self._node.sharing.by_turns or many < 2:
            got = [source.pull(1) for source in self.sources]
            return min(got), not all(got)
        many = min(many, wanted)
        done = self.sources[first].pull(many)
        for number in others:
            self.sources[number].pull(done)
            if done < many:
                # The element that TensorFlow asks of the others after one has ended.
                self.sources[number].pull(1)
        return done, done < many

    @property
    def inputs(self) -> Sequence[Iteration]:
        return self.sources

    @property
    def width(self) -> int | None:
        widths = [source.width for source in self.sources]
        return None if None in widths else sum(width or 0 for width in widths)

    def widths(self, elements: Int64s) -> Int64s:
        return reduce(np.add, (source.widths(elements) for source in self.sources))

    def examples(self, elements: Int64s) -> Int64s:
        widths = [source.widths(elements) for source in self.sources]
        # Where in its tuple the part of each input begins: int64[q] for each input; `total` is the
        # size of the tuples.
        *starts, total = accumulate(widths, initial=np.zeros(len(elements), np.int64))
        firsts = np.cumsum(total) - total
        found = np.empty(int(total.sum()), np.int64)
        for source, width, start in zip(self.sources, widths, starts, strict=True):
            found[ranges(firsts + start, width)] = source.examples(elements)
        return found

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        # An example may be in several inputs, and so several times in one tuple.
        queries, elements = zip(*(one.elements_of(codes) for one in self.sources), strict=True)
        query, element = np.concatenate(queries), np.concatenate(elements)
        kept = np.flatnonzero(element < self.pulled)
        return in_order(query[kept], element[kept])


_MOST_DRAWS_IN_VAIN = 1 << 28  # half a minute here, hours in TensorFlow
_MOST_READ_IN_VAIN = 1 << 22


class Sampled:
    """Choices drawn by weights, those of `sample_from_datasets`.

    cumulative: running totals of the weights, as in `cumulative_of`.
    """

    inputs: tuple[Node, ...] = ()
    is_infinite = True
    most_in_vain = _MOST_DRAWS_IN_VAIN

    def __init__(self, generator: SeedGenerator, cumulative: Float64s) -> None:
        self.generator, self.cumulative = generator, cumulative
        self.lasting: tuple[Lasting, ...] = () if generator.is_fixed else (generator,)

    @property
    def stage(self) -> str:
        """The stage as a script writes it."""
        return self.generator.stage

    def ever(self, num_inputs: int) -> Sequence[int]:
        """Return the inputs that are chosen at some time."""
        # A weight so small that the running total does not grow is never drawn.
        chosen: list[int] = np.flatnonzero(np.diff(self.cumulative, prepend=0) > 0).tolist()
        return chosen

    def iterate(self) -> SampledIterator:
        return SampledIterator(self.generator.take(), self.cumulative)


class SampledIterator:
    """The choices of one iterator; any of them costs only itself."""

    inputs: tuple[Iteration, ...] = ()

    def __init__(self, seeds: TakenSeeds, cumulative: Float64s) -> None:
        self._seeds, self._cumulative = seeds, cumulative

    @cached_property
    def _choices(self) -> SampledChoices:
        return SampledChoices(seeds=self._seeds.seeds, cumulative=self._cumulative)

    def between(self, start: int, stop: int) -> Int64s:
        """Return choices [start, stop)."""
        return self._choices.between(start, stop)

    def expected_choices(self, numbers: Int64s) -> float:
        """Return how many choices there are on average until one of these inputs."""
        share = float(np.diff(self._cumulative, prepend=0)[numbers].sum())
        return float(self._cumulative[-1]) / share if share else np.inf

    def made(self, num_choices: int) -> None:
        """Say that so many choices were asked for in all."""

    def end(self) -> None:
        raise AssertionError("choices that are drawn never end")


class Chosen:
    """Choices read from a dataset of whole numbers, those of `choose_from_datasets`.

    Raises:
        UsageError: its elements are no single numbers.
    """

    lasting: tuple[Lasting, ...] = ()  # its node has it
    stage = "choose_from_datasets"
    most_in_vain = _MOST_READ_IN_VAIN

    def __init__(self, node: Node) -> None:
        self.node, self.inputs = node, (node,)
        if node.shape:
            raise UsageError("choose_from_datasets: a choice is one number, not a batch or tuple")

    @property
    def is_infinite(self) -> bool:
        return self.node.is_infinite

    def ever(self, num_inputs: int) -> Sequence[int]:
        """Return the inputs that are among the first 65,536 choices."""
        return [number for number in self._first if 0 <= number < num_inputs]

    @cached_property
    def _first(self) -> list[int]:
        # Of a copy, so that reading draws no seeds of the dataset itself.
        first = deepcopy(self.node).iterate()
        first.pull(PIECE)
        with readings.counted(on=False):
            found: list[int] = np.unique(first.examples(np.arange(first.pulled))).tolist()
        return found

    def iterate(self) -> ChosenIterator:
        return ChosenIterator(self.node)


class ChosenIterator:
    """The choices of one iterator.

    To see which input is next it must be read further than TensorFlow has read it by then. Where
    that would change what later iterators read, a copy is read ahead in its place.
    """

    def __init__(self, node: Node) -> None:
        self._exact = node.iterate()
        # A copy has its own generators: what is read ahead in it draws no seeds of the real
        # dataset.
        self._ahead = self._exact if node.is_fixed else deepcopy(self._exact)
        self.inputs = (self._exact,)

    def between(self, start: int, stop: int) -> Int64s:
        """Return choices [start, stop), fewer where they end."""
        self._ahead.pull(stop - self._ahead.pulled)
        with readings.counted(on=False):
            return self._ahead.examples(np.arange(start, min(stop, self._ahead.pulled)))

    def expected_choices(self, numbers: Int64s) -> float:
        """Return 0: how many there are until one of these inputs is not known."""
        return 0

    def made(self, num_choices: int) -> None:
        """Say that so many choices were asked for in all."""
        if self._exact is not self._ahead:
            self._exact.pull(num_choices - self._exact.pulled)

    def end(self) -> None:
        """Say that a choice was asked for behind the last one."""
        if self._exact is not self._ahead:
            self._exact.pull(1)


class Directed(Node):
    """`sample_from_datasets` (`choices` are `Sampled`) or `choose_from_datasets` (`Chosen`).

    Its iterator makes those of the choices and of all inputs at once, in their order
    (tensorflow/core/kernels/data/experimental/directed_interleave_dataset_op.cc).

    >>> from shardctl.iteration.iteration import Source
    >>> inputs = (Source(range(10)), Source(range(20, 22)))
    >>> node = Directed(inputs, Chosen(Source([1, 0, 1, 1, 0])), stop_on_empty=False)
    >>> iteration = node.iterate()
    >>> iteration.pull(9), iteration.examples(np.arange(4)).tolist()
    (4, [20, 0, 21, 1])
    """

    def __init__(
        self, data: Sequence[Node], choices: Sampled | Chosen, *, stop_on_empty: bool
    ) -> None:
        self.data, self.choices, self.stop_on_empty = tuple(data), choices, stop_on_empty
        self.inputs = (*self.data, *choices.inputs)
        self.lasting = choices.lasting
        self.shape = shape_of_any(self.data)
        self.sharing = Sharing(self.data)
        # True > False: only the choices make it a matter of turns.
        if Sharing((*choices.inputs, *self.data)).by_turns > self.sharing.by_turns:
            raise UsageError(
                f"{choices.stage}: one dataset object is both its choices and an input; make the "
                "choices of an object of their own"
            )

    @property
    def is_infinite(self) -> bool:
        return self._goes_on([node.is_infinite for node in self.data])

    @property
    def never_ends(self) -> bool:
        return self._goes_on([node.never_ends for node in self.data])

    def _goes_on(self, ends_not: Sequence[bool]) -> bool:
        taken = [ends_not[number] for number in self.choices.ever(len(self.data))]
        # stop_on_empty: the first end is the end of all; else one endless input keeps it going.
        return self.choices.is_infinite and (all if self.stop_on_empty else any)(taken)

    @property
    def is_counted(self) -> bool:
        return False

    def cardinality_of(self, counts: Sequence[int]) -> int:
        # directed_interleave_dataset_op.cc: infinite if any input is, also where it may end before.
        return INFINITE if INFINITE in counts[: len(self.data)] else UNKNOWN

    def iterate(self) -> DirectedIteration:
        return DirectedIteration(self)


class DirectedIteration(Gathered):
    """An iterator: those of its data inputs, and whose turn it was."""

    def __init__(self, node: Directed) -> None:
        super().__init__()
        self._node = node
        self._choices = node.choices.iterate()
        self.sources = [one.iterate() for one in node.data]
        node.sharing.iterators_made()
        self._is_active = np.ones(len(self.sources), bool)
        self._turns = MixtureSchedule(self._choices.between, len(self.sources))
        # How many choices are tried at once; it shrinks where inputs end and doubles where none
        # does.
        self._window = BLOCK
        self._barren = 0
        self._is_over = False

    def _advance(self, count: int) -> int:
        done = 0
        while done < count and not self._is_over:
            done += self._play(count - done)
        return done

    def _play(self, wanted: int) -> int:
        """Make some of the next choices, at most until `wanted` elements or the end of an input."""
        choices = self._next_choices(wanted)
        if not len(choices):
            self._choices.end()
            self._finish()
            return 0
        # Choices of inputs that have ended are skipped; each of the others is one element.
        live = np.flatnonzero(self._is_active[choices])[:wanted]
        self._look_out(len(choices), len(live))
        whose = choices[live]
        # Up to `cut` at most one input, `doubtful`, may end. It is pulled first; if it ends, the
        # others are read only as far as their turns before that point.
        cut, doubtful = self._safe(whose)
        self._window = max(64, 4 * cut) if cut < len(whose) else min(2 * self._window, BLOCK)
        counts = self._count(whose[:cut])
        ended_at = None
        if doubtful is not None:
            got = self.sources[doubtful].pull(int(counts[doubtful]))
            if got < counts[doubtful]:
                # The turn at which the end was met: the one after its `got` turns that yielded
                # something.
                ended_at = int(np.flatnonzero(whose == doubtful)[got])
                cut, counts = ended_at, self._count(whose[:ended_at])
        for number in np.flatnonzero(counts).tolist():
            if number != doubtful:
                got = self.sources[number].pull(int(counts[number]))
                assert got == counts[number], "an input ends before its cardinality says so"
        if ended_at is not None:
            assert doubtful is not None
            # The choice that met the end is used up as well: `_end` records it as one without an
            # element.
            self._record(int(live[ended_at]), counts)
            self._end(doubtful)
        else:
            # If all turns were taken, the dead choices behind the last one are used up too.
            is_more = cut == wanted or cut < len(whose)
            self._record(int(live[cut - 1]) + 1 if is_more else len(choices), counts)
        return cut

    def _next_choices(self, wanted: int) -> Int64s:
        """Return the next choices that are in range.

        Raises:
            UsageError: not even the first is.
        """
        choices = self._turns.next_choices(min(2 * wanted + 64, self._window, BLOCK))
        wrong = np.flatnonzero((choices < 0) | (choices >= len(self.sources)))
        if len(wrong) and wrong[0] == 0:
            raise UsageError(
                f"{self._node.choices.stage}: choice {int(choices[0])} is none of its "
                f"{len(self.sources)} inputs, which count from 0; TensorFlow fails there, after "
                f"{self._turns.num_elements:,} elements"
            )
        return choices[: wrong[0]] if len(wrong) else choices

    def _look_out(self, num_choices: int, num_live: int) -> None:
        """Refuse to search indefinitely for an input that is never chosen, as TensorFlow would."""
        self._barren = 0 if num_live else self._barren + num_choices
        most = self._node.choices.most_in_vain
        expected = 0.0
        if self._barren:
            expected = self._choices.expected_choices(np.flatnonzero(self._is_active))
        if self._barren > most or expected > most:
            left = ", ".join(map(str, np.flatnonzero(self._is_active).tolist()))
            raise UsageError(
                f"{self._node.choices.stage}: after {self._turns.num_elements:,} elements only "
                f"inputs that are (nearly) never chosen are left ({left}, counted from 0); "
                f"TensorFlow would make more than {most:,} choices for the next element: leave "
                "them out, or set stop_on_empty_dataset=True"
            )

    def _safe(self, whose: Int64s) -> tuple[int, int | None]:
        """Return how many turns may be taken at once, and the one input that may end in them."""
        counts = self._count(whose)
        by_turns = self._node.sharing.by_turns
        ends = []
        for number in np.flatnonzero(counts).tolist():
            left = 0 if by_turns else certain_left(self._node.data[number], self.sources[number])
            if counts[number] > left:
                # The first turn of this input that is not certain to yield.
                ends.append((int(np.flatnonzero(whose == number)[left]), number))
        ends.sort()
        # Up to the first doubtful turn of the second such input.
        cut = ends[1][0] if len(ends) > 1 else len(whose)
        return cut, ends[0][1] if ends else None

    def _count(self, whose: Int64s) -> Int64s:
        return np.bincount(whose, minlength=len(self.sources)).astype(np.int64)

    def _record(self, num_choices: int, counts: Int64s) -> None:
        self._turns.record(num_choices, counts)
        self._choices.made(self._turns.num_choices)

    def _end(self, number: int) -> None:
        self._turns.end(number)
        self._record(1, np.zeros(len(self.sources), np.int64))
        self._is_active[number] = False
        if self._node.stop_on_empty or not self._is_active.any():
            self._finish()

    def _finish(self) -> None:
        self.abandon()
        self._is_over = True

    def abandon(self) -> None:
        if not self._is_over:
            super().abandon()

    @property
    def certain_left(self) -> int:
        """How many elements there are for certain; 0 where that is not known."""
        if self._is_over or not self._node.choices.is_infinite:
            return 0
        active = np.flatnonzero(self._is_active).tolist()
        left = [certain_left(self._node.data[number], self.sources[number]) for number in active]
        # A lower bound: turns go to other inputs as well, which only adds elements.
        return min(left) if self._node.stop_on_empty else max(left)

    @property
    def inputs(self) -> Sequence[Iteration]:
        return (*self.sources, *self._choices.inputs)

    @property
    def num_readings(self) -> int:
        return max(source.num_readings for source in self.sources)

    def _of(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        return self._turns.of(elements)

    def _elements(self, number: int, places: Int64s) -> Int64s:
        return self._turns.elements(number, places)


# `interleave` and `flat_map` whose function makes known datasets.


class Interleaved(Node):
    """`order.interleave(f)`: `cycle` datasets in turn, `block` elements of each.

    data: what the function makes of each number. It makes it anew for each iterator, so that
        nothing of it outlives one.

    >>> from shardctl.iteration.iteration import Source
    >>> data = (Source(range(3)), Source(range(10, 15)))
    >>> iteration = Interleaved(data, Chosen(Source([1, 0, 1])), 2, 2).iterate()
    >>> iteration.pull(99), iteration.examples(np.arange(13)).tolist()
    (13, [10, 11, 0, 1, 12, 13, 2, 14, 10, 11, 12, 13, 14])
    """

    def __init__(self, data: Sequence[Node], order: Chosen, cycle: int, block: int) -> None:
        self.data, self.order, self.cycle, self.block = tuple(data), order.node, cycle, block
        self.inputs = (order.node,)
        # A reader is one object however often it is opened, since it knows all its iterators.
        self._sources = {id(leaf): leaf for node in self.data for leaf in _leaves(node)}
        if not all(leaf.is_fixed for leaf in self._sources.values()):
            raise UnpredictableOrderError(
                "the function of an interleave or a flat_map shuffles files for each dataset that "
                "it makes; shuffle what it is called with"
            )
        self.shape = shape_of_any(self.data)

    @property
    def is_infinite(self) -> bool:
        return any(node.is_infinite for node in (self.order, *self.data))

    def cardinality_of(self, counts: Sequence[int]) -> int:
        return UNKNOWN  # what a function makes is not known before

    def iterate(self) -> InterleavedIteration:
        return InterleavedIteration(self)

    def opened(self, number: int) -> Iteration:
        """Return an iterator of the dataset that the function makes of a number."""
        if not 0 <= number < len(self.data):
            raise UsageError(f"interleave: {number} is none of its {len(self.data)} datasets")
        node = self.data[number]
        return (node if node.is_fixed else deepcopy(node, dict(self._sources))).iterate()


def _leaves(node: Node) -> Iterator[Node]:
    """Yield the sources below a node, also of what functions make."""
    below = (*node.inputs, *getattr(node, "data", ()))
    for each in below:
        yield from _leaves(each)
    if not below:
        yield node


class InterleavedIteration(Gathered):
    """An iterator: visits of slots, each a run of elements of one dataset.

    It follows tensorflow/core/kernels/data/interleave_dataset_op.cc.
    """

    def __init__(self, node: Interleaved) -> None:
        super().__init__()
        self._node, self._order = node, node.order.iterate()
        self._slots: list[int | None] = [None] * node.cycle  # pieces, by their numbers
        self._slot, self._in_block = 0, 0
        self.sources: list[Iteration] = []
        self._numbers: list[int] = []  # of the dataset that each piece is of
        # The piece of each run, its first element there, and here.
        self._runs: list[tuple[int, int, int]] = []

    def _advance(self, count: int) -> int:
        done = 0
        while done < count:
            piece = self._slots[self._slot]
            if piece is None:
                if self._order.ended and self._slots.count(None) == self._node.cycle:
                    break
                if not self._open():
                    self._next_slot()
                continue
            asked = min(self._node.block - self._in_block, count - done)
            first = self.sources[piece].pulled
            got = self.sources[piece].pull(asked)
            if got:
                self._runs.append((piece, first, self.pulled + done))
            done, self._in_block = done + got, self._in_block + got
            if got < asked:
                self._slots[self._slot] = None
            if got < asked or self._in_block == self._node.block:
                self._next_slot()
        return done

    def _next_slot(self) -> None:
        self._slot, self._in_block = (self._slot + 1) % self._node.cycle, 0

    def _open(self) -> bool:
        """Put the next dataset into the slot; return whether there is one."""
        if not self._order.pull(1):
            return False
        with readings.counted(on=False):
            (number,) = self._order.examples(np.array([self._order.pulled - 1])).tolist()
        self._slots[self._slot] = len(self.sources)
        self.sources.append(self._node.opened(number))
        self._numbers.append(number)
        return True

    @property
    def inputs(self) -> Sequence[Iteration]:
        return (self._order, *self.sources)

    @property
    def num_readings(self) -> int:
        totals = Counter(dict.fromkeys(self._numbers, 0))
        for number, source in zip(self._numbers, self.sources, strict=True):
            totals[number] += source.num_readings
        return max(totals.values(), default=1)

    def _counted_from(self, number: int, codes: Int64s) -> Int64s:
        if not readings.are_counted():
            return codes
        # They go on from those of the same dataset that were opened before.
        before = zip(self._numbers[:number], self.sources, strict=False)
        return codes + sum(s.num_readings for n, s in before if n == self._numbers[number])

    def _of(self, elements: Int64s) -> tuple[Int64s, Int64s]:
        runs = np.array(self._runs, np.int64).reshape(-1, 3)
        found = runs[np.searchsorted(runs[:, 2], elements, "right") - 1]
        return found[:, 0], found[:, 1] + elements - found[:, 2]

    def _elements(self, number: int, places: Int64s) -> Int64s:
        runs = np.array([run for run in self._runs if run[0] == number], np.int64).reshape(-1, 3)
        found = runs[np.searchsorted(runs[:, 1], places, "right") - 1]
        return found[:, 2] + places - found[:, 1]
