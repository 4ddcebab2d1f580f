"""`sample_from_datasets` and `choose_from_datasets`: choices say which input is next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from functools import cached_property

import numpy as np

from shardctl.base.arrays import Int64s, groups_of
from shardctl.errors import UsageError
from shardctl.iteration import iteration as readings
from shardctl.iteration.iteration import (
    INFINITE,
    PIECE,
    UNKNOWN,
    Iteration,
    Lasting,
    Node,
    shape_of_any,
)
from shardctl.iteration.repeat import common_width, gathered, in_order
from shardctl.iteration.zipped import Sharing, certain_left
from shardctl.tfdata.mixture import BLOCK, Float64s, MixtureSchedule, SampledChoices
from shardctl.tfdata.shuffle_seeds import SeedGenerator, TakenSeeds

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


_NONE = np.empty(0, np.int64)


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
        return self.choices.is_infinite and (all if self.stop_on_empty else any)(taken)

    @property
    def is_counted(self) -> bool:
        return False

    def cardinality_of(self, counts: Sequence[int]) -> int:
        return INFINITE if INFINITE in counts[: len(self.data)] else UNKNOWN

    def iterate(self) -> DirectedIteration:
        return DirectedIteration(self)


class DirectedIteration(Iteration):
    """An iterator: the iterators of its inputs, and whose turn it was.

    sources: those of the data inputs, each read as far as TensorFlow has read it.
    """

    def __init__(self, node: Directed) -> None:
        super().__init__()
        self._node = node
        self._choices = node.choices.iterate()
        self.sources = [one.iterate() for one in node.data]
        node.sharing.iterators_made()
        self._is_active = np.ones(len(self.sources), bool)
        self._turns = MixtureSchedule(self._choices.between, len(self.sources))
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
        live = np.flatnonzero(self._is_active[choices])[:wanted]
        self._look_out(len(choices), len(live))
        whose = choices[live]
        cut, doubtful = self._safe(whose)
        self._window = max(64, 4 * cut) if cut < len(whose) else min(2 * self._window, BLOCK)
        counts = self._count(whose[:cut])
        ended_at = None
        if doubtful is not None:
            got = self.sources[doubtful].pull(int(counts[doubtful]))
            if got < counts[doubtful]:
                ended_at = int(np.flatnonzero(whose == doubtful)[got])
                cut, counts = ended_at, self._count(whose[:ended_at])
        for number in np.flatnonzero(counts).tolist():
            if number != doubtful:
                got = self.sources[number].pull(int(counts[number]))
                assert got == counts[number], "an input ends before its cardinality says so"
        if ended_at is not None:
            assert doubtful is not None
            self._record(int(live[ended_at]), counts)
            self._end(doubtful)
        else:
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
        """Refuse to look for ever for an input that is never chosen, as TensorFlow would."""
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
                ends.append((int(np.flatnonzero(whose == number)[left]), number))
        ends.sort()
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
        """How many elements there are for certain; none where nobody can tell."""
        if self._is_over or not self._node.choices.is_infinite:
            return 0
        active = np.flatnonzero(self._is_active).tolist()
        left = [certain_left(self._node.data[number], self.sources[number]) for number in active]
        return min(left) if self._node.stop_on_empty else max(left)

    @property
    def inputs(self) -> Sequence[Iteration]:
        return (*self.sources, *self._choices.inputs)

    @property
    def num_readings(self) -> int:
        return max(source.num_readings for source in self.sources)

    @property
    def width(self) -> int | None:
        return common_width(self.sources)

    def widths(self, elements: Int64s) -> Int64s:
        found = np.empty(len(elements), np.int64)
        for here, source, places in self._split(*self._turns.of(elements)):
            found[here] = source.widths(places)
        return found

    def examples(self, elements: Int64s) -> Int64s:
        numbers, places = self._turns.of(elements)
        widths = np.ones(len(elements), np.int64) if self.width == 1 else self.widths(elements)
        parts = self._split(numbers, places)
        return gathered(((here, each.examples(local)) for here, each, local in parts), widths)

    def _split(
        self, numbers: Int64s, places: Int64s
    ) -> Iterator[tuple[Int64s | slice, Iteration, Int64s]]:
        for number, here in groups_of(numbers):
            yield here, self.sources[number], places[here]

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        queries, elements = [_NONE], [_NONE]
        for number, source in enumerate(self.sources):
            query, places = source.elements_of(codes)
            queries.append(query)
            elements.append(self._turns.elements(number, places))
        return in_order(np.concatenate(queries), np.concatenate(elements))
