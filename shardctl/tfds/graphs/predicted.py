"""The elements that a pass of a dataset object hands out, as its order predicts them."""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.iteration.build import build, iteration_of_pass
from shardctl.core.iteration.iteration import EVERYTHING, Iteration, Node
from shardctl.core.order.order import Order
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import stages_of
from shardctl.core.shuffle.generator import ScriptSeeds
from shardctl.core.stages.pipelines import parts_of, sources_of
from shardctl.core.stages.stages import Read, Zip
from shardctl.core.text import counted
from shardctl.errors import UnpredictableOrderError, UsageError

_COUNTED_AHEAD = 1 << 16  # elements; beyond them a pipeline is followed as far as it is asked about


class Elements:
    """The predicted elements of a pass of an order: examples, batches, or tuples of such."""

    def __init__(self, order: Order) -> None:
        self._order = order

    @property
    def num_sources(self) -> int:
        """The leaves of the graph that examples come from."""
        return len(self._order.sources) or 1

    @property
    def num_elements(self) -> int | None:
        """How many there are, None without end."""
        return self._order.num_steps

    @property
    def num_examples(self) -> int | None:
        """How many examples they hold, None without end."""
        return None if self._order.is_endless else self._order.num_examples

    def up_to(self, stop: int) -> int:
        """Return `stop`, or how many elements there are where those are fewer."""
        return self._order.steps_up_to(stop)

    def examples(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (leaf, code) of each example of elements [start, stop), and their widths."""
        return self._order.examples_in_steps(start, stop)

    def place_of(self, consumed: int) -> tuple[int, int]:
        """Return (element, which of its examples) of an example that there is."""
        element, within = self._order.steps_of(np.array([consumed]))
        return int(element[0]), int(within[0])

    def element_after(self, consumed: int) -> int:
        """Return the element that comes after so many examples were handed out.

        Raises:
            UsageError: there are fewer, or the number ends within an element.
        """
        total = self.num_examples
        if consumed < 0 or (total is not None and consumed > total):
            raise UsageError(
                f"consumed={consumed}: the pipeline hands out {counted(total or 0, 'example')}"
            )
        if consumed == total:
            return self.num_elements or 0
        element, within = self.place_of(consumed)
        if not within:
            return element
        width = self.width_of(element)
        before = consumed - within
        raise UsageError(
            f"consumed={consumed} is in the middle of step {element}, whose batch holds examples "
            f"{before} to {before + width - 1}; whole steps end after {before} and "
            f"{before + width} examples"
        )

    def width_of(self, element: int) -> int:
        """Return how many examples an element holds."""
        return int(self.examples(element, element + 1)[2][0])

    def num_examples_before(self, element: int) -> int:
        """Return how many examples are handed out before an element."""
        if element == self.num_elements:
            return self.num_examples or 0
        return self._position_of(element)

    def _position_of(self, element: int) -> int:
        return self._order.positions_in_step(element).start

    def check_steps(self, steps: int) -> None:
        """Refuse a number of elements that there are not.

        Raises:
            UsageError: there are fewer.
        """
        if steps < 0 or self.up_to(steps) < steps:
            raise UsageError(f"steps={steps}: the pipeline has {self.num_elements} steps")


class IndexElements(Elements):
    """Those of a pipeline without files, whose one source counts its elements from 0.

    Raises:
        UnpredictableOrderError: what it hands out depends on timing.
    """

    def __init__(self, settings: ReadSettings) -> None:
        stages = stages_of(settings)
        node = build(stages, _no_reader, seeds=ScriptSeeds(settings.global_seed))
        self._num_sources = len(list(sources_of(stages)))
        self._zips = any(isinstance(part, Zip) for part in parts_of(stages))
        self._node = node
        self._root: Iteration = iteration_of_pass(node, settings.pass_index, loop=settings.loop)
        # An end may be as far off as none: repeat(10**9), or zip with range(2**60).
        if not node.is_infinite:
            self._root.pull(EVERYTHING if settings.pass_index else _COUNTED_AHEAD)
        self._root.check()

    @property
    def num_sources(self) -> int:
        """The leaves of the graph that elements come from."""
        return self._num_sources

    @property
    def num_elements(self) -> int | None:
        """How many there are, None without end or where that is not known yet."""
        if self._root.ended:
            return self._root.pulled
        return self._node.num_elements if self._has_counted_end else None

    @property
    def _has_counted_end(self) -> bool:
        return self._node.is_counted and not self._node.is_infinite

    @property
    def num_examples(self) -> int | None:
        """How many examples they hold, None without end or where that is not known yet."""
        return self._root.num_examples if self._root.ended else None

    def up_to(self, stop: int) -> int:
        """Return `stop`, or how many elements there are where those are fewer."""
        if stop > self._root.pulled:
            self._root.pull(stop - self._root.pulled)
            self._root.check()
        return min(stop, self._root.pulled)

    def examples(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (leaf, code) of each example of elements [start, stop), and their widths."""
        elements = np.arange(start, stop)
        codes = self._root.examples(elements)
        return np.zeros_like(codes), codes, self._root.widths(elements)

    def element_after(self, consumed: int) -> int:
        """Return the element after so many examples, see `Elements.element_after`.

        Raises:
            UsageError: as there, or elements hold several examples that `zip` has put together.
        """
        if self._zips and consumed:
            raise UsageError(
                f"consumed={consumed}: zip puts elements of several orders into one, which count "
                "as one to a script and as several here; give steps=N batches"
            )
        while not self._root.ended and self._root.num_examples <= consumed:
            self.up_to(2 * self._root.pulled + 1)
        return super().element_after(consumed)

    def _position_of(self, element: int) -> int:
        return int(self._root.before(np.array([element]))[0])

    def place_of(self, consumed: int) -> tuple[int, int]:
        """Return (element, which of its examples) of an example that there is."""
        element, within = self._root.at(np.array([consumed]))
        return int(element[0]), int(within[0])


def _no_reader(read: Read) -> Node:
    raise UnpredictableOrderError(f"{read.name} reads no dataset that is known")
