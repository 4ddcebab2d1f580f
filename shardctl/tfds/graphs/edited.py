"""The maps and batches of a dataset's graph over other elements, its shuffles and repeats gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.tfds.graphs.dataset_graph import DatasetGraph, GraphNode, NotRebuildable
from shardctl.tfds.imports import tensorflow


@dataclass(frozen=True, kw_only=True)
class Window:
    """Elements that are made in one go: which leaf each example comes from, in their order."""

    leaves: Int64s
    num_elements: int


@dataclass(frozen=True, kw_only=True, eq=False)
class EditedGraph:
    """A graph of which only what makes elements of examples is left, its leaves open.

    Batches are formed anew, so a window may end with a batch that is not full and has none before
    its end; see `full_widths`.

    Raises:
        NotRebuildable: batches that were formed, mixed and parted again would come out otherwise.
    """

    graph: DatasetGraph
    _cancelled: set[int] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        self._cancel(self.graph.root)
        self._check_batches(self.graph.root, outer=False, mixed=False)
        self._check_widths(self.graph.root)

    @cached_property
    def merges(self) -> list[GraphNode]:
        """The mixtures and concatenations, from the root down."""
        return [node for node in self.graph.root.walk() if node.kind == "merged"]

    @cached_property
    def full_widths(self) -> Int64s:
        """How many examples an element has whose first is of leaf i, where its batches are full."""
        of_source = {leaf.source: leaf for leaf in self.graph.root.leaves}
        return np.array(
            [self._width_for(self.graph.root, leaf) for leaf in of_source.values()], np.int64
        )

    def choices(self, merged: GraphNode, leaves: Int64s) -> Int64s:
        """Return which input of a mixture each of its elements in a window comes from."""
        branches = {
            leaf.source: index
            for index, branch in enumerate(merged.inputs)
            for leaf in branch.leaves
        }
        table = np.full(self.graph.num_sources, -1, np.int64)
        for leaf, index in branches.items():
            table[leaf] = index
        found = table[leaves]
        found = found[found >= 0]
        widths = [self._width(branch) for branch in merged.inputs]
        if len(set(widths)) == 1:
            return found[:: widths[0]]
        picked, at = [], 0
        while at < len(found):
            picked.append(int(found[at]))
            at += widths[picked[-1]] or 1
        return np.array(picked, np.int64)

    def applied(self, leaves: Sequence[Any], choices: Sequence[Any]) -> Any:
        """Return the dataset of elements made of those that `leaves` yield, one dataset a leaf.

        To be called where a function is made a graph, as that of `flat_map` is.

        `choices` yield, for each of `merges`, which of its inputs comes next.
        """
        tf = tensorflow()
        given = {f"leaf_{i}:0": tf.data.experimental.to_variant(d) for i, d in enumerate(leaves)}
        for index, chosen in enumerate(choices):
            given[f"choices_{index}:0"] = tf.data.experimental.to_variant(chosen)
        definition, root = self._definition
        (made,) = tf.graph_util.import_graph_def(
            definition, input_map=given, return_elements=[f"{root}:0"], name="own"
        )
        return tf.data.experimental.from_variant(made, self.graph.element_spec)

    @cached_property
    def _definition(self) -> tuple[Any, str]:
        tf = tensorflow()
        old, new = self.graph, tf.compat.v1.GraphDef()
        new.versions.CopyFrom(old.definition.versions)
        new.library.CopyFrom(old.definition.library)
        copied: set[str] = set()

        def placeholder(name: str) -> str:
            node = new.node.add(name=name, op="Placeholder")
            node.attr["dtype"].type = tf.variant.as_datatype_enum
            node.attr["shape"].shape.SetInParent()
            return name

        def copy_of_value(text: str) -> str:
            for node in old.below(old.nodes[text.removeprefix("^").partition(":")[0]]):
                if node.name not in copied:
                    copied.add(node.name)
                    new.node.add().CopyFrom(node)
            return text

        number = 0

        def made(here: GraphNode) -> str:
            nonlocal number
            if here.kind == "leaf":
                return placeholder(f"leaf_{here.leaf}")
            if here.kind in ("dropped", "order") or id(here) in self._cancelled:
                return made(here.inputs[0])
            name = f"stage_{number}"
            number += 1
            inputs = [made(below) for below in here.inputs]
            if here.kind == "merged":
                which = next(i for i, node in enumerate(self.merges) if node is here)
                node = new.node.add(name=name, op="DirectedInterleaveDataset")
                node.input.extend([placeholder(f"choices_{which}"), *inputs])
                for key in ("output_types", "output_shapes"):
                    node.attr[key].CopyFrom(here.node.attr[key])
                node.attr["N"].i = len(inputs)
                return name
            others = map(copy_of_value, here.node.input[len(inputs) :])
            node = new.node.add()
            node.CopyFrom(here.node)
            node.name = name
            del node.input[:]
            node.input.extend([*inputs, *others])
            return name

        return new, made(old.root)

    def _cancel(self, node: GraphNode) -> None:
        """Mark every `unbatch` and the batch below it, which undo each other."""
        if node.kind == "unbatch":
            below = node.inputs[0]
            while self._keeps_batches(below):
                below = below.inputs[0]
            if below.kind != "batch":
                raise NotRebuildable("unbatch takes apart what maps have made of batches")
            self._cancelled.update((id(node), id(below)))
        for below in node.inputs:
            self._cancel(below)

    def _keeps_batches(self, node: GraphNode) -> bool:
        """Whether batches pass a node as they were made, whatever their order."""
        if node.kind in ("dropped", "order") or node.node.op == "PrefetchDataset":
            return True
        return node.kind == "kept" and self.graph.is_identity(node.node)

    def _check_batches(self, node: GraphNode, *, outer: bool, mixed: bool) -> None:
        """Refuse a batch of batches that were reordered: the inner ones cannot be told apart."""
        if node.kind == "batch" and id(node) not in self._cancelled:
            if outer and mixed:
                raise NotRebuildable("batches are reordered and then batched again")
            outer, mixed = True, False
        mixed = mixed or node.kind in ("order", "merged")
        for below in node.inputs:
            self._check_batches(below, outer=outer, mixed=mixed)

    def _check_widths(self, node: GraphNode) -> None:
        for below in node.inputs:
            self._check_widths(below)
        live = node.kind == "batch" and id(node) not in self._cancelled
        if (live or node.kind == "zipped") and None in map(self._width, node.inputs):
            raise NotRebuildable("a mixture of batches of several sizes is batched or zipped")

    def _width(self, node: GraphNode) -> int | None:
        """Return how many examples a full element has, None where that depends on the input."""
        widths = [self._width(below) for below in node.inputs]
        if not widths:
            return 1
        if node.source is not None:
            return 1  # of an index of its source
        if node.kind == "zipped":
            return None if None in widths else sum(width or 0 for width in widths)
        width = widths[0] if len(set(widths)) == 1 else None
        if node.kind == "batch" and id(node) not in self._cancelled:
            return None if width is None else width * node.size
        return width

    def _width_for(self, node: GraphNode, leaf: GraphNode) -> int:
        width = self._width(node)
        if width is not None:
            return width
        branch = next(b for b in node.inputs if any(leaf is found for found in b.leaves))
        return self._width_for(branch, leaf)
