"""What says which input of a mixture is next: drawn by weights, or read from a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.iteration import iteration as readings
from shardctl.core.iteration.iteration import PIECE, Iteration, Lasting, Node
from shardctl.core.mixture.turns import SampledChoices
from shardctl.core.mixture.weights import Float64s
from shardctl.core.shuffle.generator import SeedGenerator, TakenSeeds
from shardctl.errors import UsageError

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
