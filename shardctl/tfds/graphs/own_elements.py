"""A dataset object beside the prediction of its elements, and these made from its examples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from shardctl.core.order.order import Order
from shardctl.core.text import choices
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.planning.inspect import Inspection
from shardctl.tfds.graphs.dataset_graph import DatasetGraph, GraphNode, NotRebuildable
from shardctl.tfds.graphs.edited import EditedGraph
from shardctl.tfds.graphs.gather import FileSource, NodeSource, Source
from shardctl.tfds.graphs.predicted import Elements, IndexElements, elements_of
from shardctl.tfds.graphs.rest import WINDOW_SIZE, Rest
from shardctl.tfds.imports import tensorflow

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
        return cls(dataset=dataset, elements=elements_of(order), order=order)

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
        return {
            op
            for op in self._ops_of_maps
            if any(part in op for part in parts) and not op.startswith("Stateless")
        }

    @cached_property
    def _ops_of_maps(self) -> set[str]:
        graph = self._graph
        maps = (node for node in graph.root.walk() if node.node.op.endswith(("MapDataset", "V2")))
        return {op for here in maps for op in graph.ops_in_functions(here.node)}

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
