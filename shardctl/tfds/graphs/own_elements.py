"""The elements of a dataset object as its order predicts them, made from its own examples."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import choices, counted
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.build import build, iteration_of_pass
from shardctl.iteration.iteration import EVERYTHING, Iteration, Node
from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import stages_of
from shardctl.stages.pipelines import parts_of, sources_of
from shardctl.stages.stages import Read, Zip
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from shardctl.tfds.graphs.dataset_graph import (
    DatasetGraph,
    GraphNode,
    NotRebuildable,
    end_iterators_at_exit,
)
from shardctl.tfds.graphs.gather import PIECE_SIZE, EditedGraph, FileSource, NodeSource, Source
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.verbs.inspect.answer import Inspection

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
        node = self._node
        return node.num_elements if node.is_counted and not node.is_infinite else None

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

    def num_examples_before(self, element: int) -> int:
        """Return how many examples are handed out before an element."""
        if element == self.num_elements:
            return self.num_examples or 0
        return int(self._root.before(np.array([element]))[0])

    def place_of(self, consumed: int) -> tuple[int, int]:
        """Return (element, which of its examples) of an example that there is."""
        element, within = self._root.at(np.array([consumed]))
        return int(element[0]), int(within[0])


def _no_reader(read: Read) -> Node:
    raise UnpredictableOrderError(f"{read.name} reads no dataset that is known")


# A dataset object beside the prediction of its elements, and these made from its examples.


_INTERLEAVES = ("Interleave", "FlatMap")  # what a reader of files is
_MAX_WINDOW = 1 << 20

# Ops whose result is not a matter of their inputs alone, by a part of their names.
_RANDOM = (
    "Random",
    "Multinomial",
    "Rng",
    "StatefulUniform",
    "StatefulStandard",
    "TruncatedNormal",
    "SampleDistortedBoundingBox",
)
_OF_PYTHON = ("PyFunc",)
_OF_VARIABLES = ("Assign", "ResourceScatter", "VarIsInitialized")


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnElements:
    """A dataset object and what a pass of it hands out.

    order: None where it reads no files that are known.
    """

    dataset: Any
    elements: Elements
    order: Order | None

    @classmethod
    def of(cls, dataset: Any, inspection: Inspection, pass_index: int) -> OwnElements:
        """Return the elements of a pass of a dataset object that was inspected.

        Raises:
            UnpredictableOrderError: a stage leaves their order open.
        """
        if inspection.dataset is None:
            settings = replace(inspection.settings, pass_index=pass_index)
            return cls(dataset=dataset, elements=IndexElements(settings), order=None)
        return cls.of_order(dataset, inspection.order(pass_index).order)

    @classmethod
    def of_order(cls, dataset: Any, order: Order) -> OwnElements:
        """Return the elements of a dataset object whose order is known."""
        return cls(dataset=dataset, elements=Elements(order), order=order)

    def made(self, *, start: int = 0) -> Any:
        """Return the elements from `start` on, made by the object's own maps and batches.

        Raises:
            NotRebuildable: they cannot be made of examples one by one.
        """
        tf = tensorflow()
        made = self.rest(start).dataset().with_options(self.dataset.options())
        total = self.elements.num_elements
        if total is not None:
            made = made.apply(tf.data.experimental.assert_cardinality(total - start))
        return made.prefetch(tf.data.AUTOTUNE)

    def rest(self, start: int = 0) -> Rest:
        """Return what `made` is made by, with the counts of what it reads.

        Raises:
            NotRebuildable: see `made`.
        """
        return Rest(
            edited=self._edited,
            sources=self._sources(),
            elements=self.elements,
            start=start,
            window=self._window,
        )

    def state_warnings(self) -> Iterator[str]:
        """Yield what maps do that is no matter of their examples alone."""
        for kinds, what in (
            (_RANDOM, "draws random numbers: its examples are the same, its numbers are others"),
            (_OF_VARIABLES, "changes variables, which have the values of now"),
            (_OF_PYTHON, "calls Python, whose state nobody can see"),
        ):
            ops = self._ops(kinds)
            if ops:
                yield f"a map of the pipeline ({choices(sorted(ops), 4)}) {what}"

    @cached_property
    def random_ops(self) -> set[str]:
        """The ops of maps that draw random numbers."""
        return self._ops(_RANDOM)

    def _ops(self, parts: Sequence[str]) -> set[str]:
        graph = self._graph
        maps = (node for node in graph.root.walk() if node.node.op.endswith(("MapDataset", "V2")))
        ops = {op for here in maps for op in graph.ops_in_functions(here.node)}
        return {
            op for op in ops if any(part in op for part in parts) and not op.startswith("Stateless")
        }

    @cached_property
    def _graph(self) -> DatasetGraph:
        return DatasetGraph(self.dataset)

    @cached_property
    def _edited(self) -> EditedGraph:
        return EditedGraph(graph=self._graph)

    def _sources(self) -> list[Source]:
        leaves = self._graph.root.leaves
        if self._graph.num_sources != self.elements.num_sources:
            raise NotRebuildable("its sources are shared, or count what passes")
        if self.order is None and self._graph.num_sources > 1:
            raise NotRebuildable("its sources have no files, and each counts its elements from 0")
        return [self._source(leaf) for leaf in leaves]

    def _source(self, leaf: GraphNode) -> Source:
        order = self.order
        if order is None:
            return NodeSource(graph=self._graph, leaf=leaf)
        tf = tensorflow()
        kinds = [tf.dtypes.as_dtype(kind) for kind in leaf.node.attr["output_types"].list.type]
        is_reader = any(word in leaf.node.op for word in _INTERLEAVES)
        if not is_reader or kinds not in ([tf.string], [tf.string, tf.string]):
            raise NotRebuildable(f"{leaf.node.op} reads files in a way of its own")
        if " + " in order.dataset.file_format:
            raise NotRebuildable("its datasets have different file formats")
        return FileSource(dataset=order.dataset, codes=order.codes, with_ids=len(kinds) == 2)

    @property
    def _window(self) -> int:
        """Examples at a time: about a buffer, so that what lies in it is read once."""
        buffered = 0
        for size in self._graph.buffer_sizes():
            whole = self.elements.num_examples or self.elements.num_elements or 0
            buffered = max(buffered, whole if size == WHOLE_DATASET else size)
        return max(WINDOW_SIZE, min(buffered, _MAX_WINDOW))


# What a dataset object hands out from some element on, made by its own maps and batches.

# Examples whose order is looked up, and which are read, at a time.
WINDOW_SIZE = 1 << 13


@dataclass(kw_only=True, eq=False)
class Rest:
    """The elements of a pass from `start` on, each made of the predicted examples.

    window: examples at a time; a shuffle scatters examples over its buffer, so a window of that
        size reads each file about once.
    """

    edited: EditedGraph
    sources: Sequence[Source]
    elements: Elements
    start: int = 0
    window: int = WINDOW_SIZE
    _lock: Any = field(init=False, default_factory=threading.RLock)
    _latest: tuple[tuple[int, int], tuple[Int64s, Int64s]] | None = field(init=False, default=None)

    def dataset(self) -> Any:
        """Return the `tf.data.Dataset`; it may be iterated again, from `start`."""
        end_iterators_at_exit()
        tf = tensorflow()
        bounds = tf.TensorSpec([2], tf.int64)
        windows = tf.data.Dataset.from_generator(self.windows, output_signature=bounds)
        return windows.flat_map(without_autograph(self._made))

    def windows(self) -> Iterator[Int64s]:
        """Yield [start, stop) of elements that are formed in one go.

        A batch that is not full ends its window, since batches are formed anew in each.
        """
        full = self.edited.full_widths
        size = max(1, self.window // int(full.max(initial=1)))
        at = self.start
        while True:
            with self._lock:
                stop = self.elements.up_to(at + size)
                if stop <= at:
                    return
                leaves, _, widths = self.elements.examples(at, stop)
            firsts = np.cumsum(widths) - widths
            here = full[leaves[firsts]] if len(leaves) else widths
            cuts = np.flatnonzero(widths != here) + 1
            for begin, end in zip((0, *cuts.tolist()), (*cuts.tolist(), stop - at), strict=True):
                if begin < end:
                    yield np.array([at + begin, at + end], np.int64)
            at = stop

    def _made(self, bounds: Any) -> Any:
        tf = tensorflow()
        leaves = [self._leaf(number, bounds) for number in range(len(self.sources))]
        choices = [
            tf.data.Dataset.from_generator(
                lambda start, stop, merged=merged: self._choices(merged, int(start), int(stop)),
                output_signature=tf.TensorSpec([], tf.int64),
                args=(bounds[0], bounds[1]),
            )
            for merged in self.edited.merges
        ]
        made = self.edited.applied(leaves, choices)
        return made.apply(tf.data.experimental.assert_cardinality(bounds[1] - bounds[0]))

    def _leaf(self, number: int, bounds: Any) -> Any:
        tf = tensorflow()
        source = self.sources[number]
        of_source = self.edited.graph.root.leaves[number].source
        in_pieces = all(t.dtype == tf.string and t.shape.rank == 0 for t in source.types)

        def elements(start: Any, stop: Any) -> Iterator[Any]:
            with self._lock:  # never while something is yielded: another thread asks for the next
                leaves, codes = self._examples(int(start), int(stop))
                found = source.elements(codes[leaves == of_source])
            if not in_pieces:
                yield from found
                return
            for first in range(0, len(found), PIECE_SIZE):
                yield _columns(found[first : first + PIECE_SIZE])

        types = source.types
        if in_pieces:
            types = tuple(tf.TensorSpec([None], t.dtype) for t in types)
        found = tf.data.Dataset.from_generator(
            elements, output_signature=types, args=(bounds[0], bounds[1])
        )
        return found.unbatch() if in_pieces else found

    def _choices(self, merged: Any, start: int, stop: int) -> Iterator[int]:
        with self._lock:
            leaves, _ = self._examples(start, stop)
        yield from self.edited.choices(merged, leaves).tolist()

    def _examples(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        with self._lock:
            if self._latest is None or self._latest[0] != (start, stop):
                leaves, codes, _ = self.elements.examples(start, stop)
                self._latest = (start, stop), (leaves, codes)
            return self._latest[1]


def _columns(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(np.array(column, object) for column in zip(*rows, strict=True))
