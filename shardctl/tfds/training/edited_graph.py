"""The maps and batches of a dataset's graph, applied to other examples than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.tfds_rules import LONGEST_RANGE
from shardctl.errors import UsageError
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.inspecting import graph
from shardctl.tfds.inspecting.graph import Graph, Operation, node_name, operation_of
from shardctl.tfds.inspecting.reader import reads_files
from shardctl.tfds.inspecting.stage_of import batched_window

Kind = Literal["kept", "batch", "unbatch", "dropped", "order", "merged", "zipped", "formed", "leaf"]

# What becomes of each op when the graph is rebuilt. Every op that is missing here is a leaf: its
# elements are taken as the source of examples.
_OPS: Mapping[Kind, tuple[str, ...]] = {
    "batch": (*graph.BATCHES, "DenseToSparseBatchDataset"),
    "unbatch": ("UnbatchDataset",),
    "kept": (*graph.MAPS, "ParallelMapDataset", "ParseExampleDatasetV2", "PrefetchDataset"),
    "dropped": graph.GUARDS,
    "order": graph.CHOOSES,
    "merged": ("ConcatenateDataset", "DirectedInterleaveDataset"),
    "zipped": ("ZipDataset",),
    "formed": ("GroupByWindowDataset",),
}
_KINDS: Mapping[str, Kind] = {op: kind for kind, ops in _OPS.items() for op in ops}
# Whose elements are known by their index.
_SOURCES = ("TensorSliceDataset", "TensorDataset", "ListDataset")


class NotRebuildable(Exception):  # noqa: N818  # a reason that callers put into words of theirs
    """Why the elements of a dataset cannot be made again, of other examples; a clause."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphNode:
    """A dataset in a graph, and the datasets that it reads.

    A tree: a dataset that two read is there twice. `leaf` numbers the leaves from the left, the
    selector of a mixture left out; size is that of a batch. Leaves that are zipped before anything
    shuffles them have one `source`: their elements of one index come together.
    """

    operation: Operation
    kind: Kind
    inputs: tuple[GraphNode, ...] = ()
    leaf: int | None = None
    size: int = 1
    source: int | None = None

    def walk(self) -> Iterator[GraphNode]:
        """Yield this node and those below, from the root down and from the left."""
        yield self
        for below in self.inputs:
            yield from below.walk()

    @property
    def leaves(self) -> list[GraphNode]:
        """The sources below, from the left."""
        return [node for node in self.walk() if node.kind == "leaf"]


def _datasets(here: Operation, kind: Kind) -> tuple[Operation, ...]:
    """Return the datasets that an operation reads, the selector of a mixture left out."""
    if kind == "merged":
        # A DirectedInterleave reads its selector first, and then the datasets that are mixed.
        return here.inputs if here.op == "ConcatenateDataset" else here.inputs[1:]
    return here.inputs if kind == "zipped" else here.inputs[:1]


def _indexed(here: Operation) -> Literal["counted", "endless", ""]:
    """Return what elements of index i are: of a source, of one without end, or neither.

    What zips sources alone is counted where one of them has an end of its own: of numbers that
    count on, or of one element that repeats, elements are told apart by the others.
    """
    kind = _KINDS.get(here.op, "leaf")
    if kind == "zipped":
        # A zip has an index if all its inputs have one and at least one of them ends.
        kinds = set(map(_indexed, here.inputs))
        return "counted" if "" not in kinds and "counted" in kinds else ""
    if kind in ("kept", "dropped"):
        return _indexed(here.input)
    if here.op == "RepeatDataset":
        # Guards pass their elements on unchanged, so they are looked through.
        below = here.input
        while _KINDS.get(below.op) == "dropped":
            below = below.input
        # A single element that repeats is the same at every index; anything else that repeats is
        # not told apart by index.
        return "endless" if below.op == "TensorDataset" else ""
    if here.op == "RangeDataset":
        # A range of `enumerate` counts on without an end.
        stop = here.value("stop")
        return "endless" if stop is not None and stop > LONGEST_RANGE else "counted"
    return "counted" if here.op in _SOURCES else ""


def size_of(here: Operation) -> int:
    """Return the size of a batch or of a buffer.

    Raises:
        NotRebuildable: TensorFlow computes it anew.
    """
    # By its name, since what a map of `map_and_batch` captures comes before it.
    given = here.arguments
    size = graph.constant(given.get("batch_size", given.get("buffer_size")))
    if size is None:
        raise NotRebuildable(f"the size of {here.op} is not written in its graph")
    return int(size)


def _keeps_batches(here: Operation) -> bool:
    """Whether batches pass an operation as they were made, whatever their order."""
    is_same = _KINDS.get(here.op) in ("dropped", "order") or here.op == "PrefetchDataset"
    return is_same or here.is_identity


class EditedGraph:
    """A graph of which only what makes elements of examples is left, its leaves open.

    Batches are formed anew, so a window may end with a batch that is not full and has none before
    its end; see `full_width`. What the graph holds beside datasets is as it was at this call.

    top: an operation of the graph whose elements are meant, and not those of the dataset.
    leaf: the one leaf, where it is no source. packs: `unbatch` and `flat_map` are packers of rows.

    Raises:
        NotRebuildable: TensorFlow makes no graph of the dataset; or batches of several sizes, or
            that were formed, mixed and parted again, would come out otherwise.
    """

    def __init__(
        self,
        dataset: Any = None,
        *,
        top: Operation | None = None,
        leaf: Operation | None = None,
        packs: bool = False,
    ) -> None:
        try:
            operation = operation_of(dataset) if top is None else top
        except UsageError as error:
            raise NotRebuildable(str(error)) from error
        self._leaf, self._packs = leaf, packs
        # The order of these steps matters: the tree comes first, then pairs of batch and unbatch
        # are marked, and both last lines rely on the marks.
        self.graph: Graph = operation.graph
        self.element_spec = operation.types if dataset is None else dataset.element_spec
        self._num_leaves = self.num_sources = 0  # sources, whose elements are counted each
        self.root = self._tree(operation)
        self._cancelled: set[int] = set()
        self._cancel(self.root)
        # Whether an element is made of its examples alone, one after the other.
        self.is_formed = any(node.kind == "formed" for node in self.root.walk())
        self._check_batches(self.root, outer=False, mixed=False)
        # How many examples an element has where its batches are full.
        self.full_width = self._width(self.root)

    def _tree(self, here: Operation, source: int | None = None) -> GraphNode:
        """Return the tree below a dataset; `source` is that of all in it, told by their index."""
        kind = self._kind(here)
        if (
            here is not self._leaf
            and kind != "formed"
            and (batched_window(here) or (not reads_files(here) and here.made is not None))
        ):
            raise NotRebuildable("the function of a flat_map or an interleave makes its elements")
        # A counter is a scan, too; any other one is no source, and keeps a state.
        if here.op == "ScanDataset" and not graph.is_counter(here):
            raise NotRebuildable("scan makes an element of all that come before it")
        indexed = source is not None
        # A leaf, or a zip of sources that count alike, is one source. Below such a zip every leaf
        # belongs to it.
        if source is None and (kind == "leaf" or (kind == "zipped" and _indexed(here))):
            source, self.num_sources = self.num_sources, self.num_sources + 1
            indexed = True
        # Within a source, whatever is no zip, map or guard is a leaf.
        if indexed and kind not in ("zipped", "kept", "dropped"):
            self._num_leaves += 1
            return GraphNode(operation=here, kind="leaf", leaf=self._num_leaves - 1, source=source)
        return GraphNode(
            operation=here,
            kind=kind,
            inputs=tuple(self._tree(below, source) for below in _datasets(here, kind)),
            size=size_of(here) if kind == "batch" else 1,
            source=source if kind == "zipped" else None,
        )

    def _kind(self, here: Operation) -> Kind:
        if here is self._leaf:
            return "leaf"
        if self._packs and here.op == "FlatMapDataset" and not reads_files(here):
            return "formed"
        if self._packs and here.op == "UnbatchDataset" and not self._undoes(here):
            return "formed"
        return _KINDS.get(here.op, "leaf")

    @property
    def num_packers(self) -> int:
        """How many `unbatch` and `flat_map` make packed rows."""
        ops = [node.operation.op for node in self.root.walk() if node.kind == "formed"]
        return len(ops) - ops.count("GroupByWindowDataset")

    def buffer_sizes(self) -> Iterator[tuple[int, int]]:
        """Yield (size of a shuffle buffer above the leaves, examples of an element in it)."""
        for here in self.root.walk():
            if here.operation.op.startswith("Shuffle"):
                yield size_of(here.operation), self._width(here)

    @cached_property
    def merges(self) -> list[GraphNode]:
        """The mixtures and concatenations, from the root down."""
        return [node for node in self.root.walk() if node.kind == "merged"]

    def choices(self, merged: GraphNode, leaves: Int64s) -> Int64s:
        """Return which input of a mixture each of its elements in a window comes from."""
        # Each branch of the mixture is known by the sources of its leaves.
        branches = {
            leaf.source: index
            for index, branch in enumerate(merged.inputs)
            for leaf in branch.leaves
        }
        # -1 for the sources of other branches, which are dropped below.
        table = np.full(self.num_sources, -1, np.int64)
        for leaf, index in branches.items():
            table[leaf] = index
        found = table[leaves]
        # A batch below the mixture gives several examples of one choice, so every width-th example
        # tells which it was.
        return found[found >= 0][:: self._width(merged)]

    def applied(self, leaves: Sequence[Any], choices: Sequence[Any]) -> Any:
        """Return the dataset of elements made of those that `leaves` yield, one dataset a leaf.

        To be called where a function is made a graph, as that of `flat_map` is.

        `choices` yield, for each of `merges`, which of its inputs comes next.
        """
        tf = tensorflow()
        # The names are those of the placeholders in `_definition`.
        variants = map(tf.data.experimental.to_variant, leaves)
        # An identity, so that a dataset from outside becomes a tensor of the function.
        given = {f"leaf_{i}:0": tf.identity(one) for i, one in enumerate(variants)}
        for index, chosen in enumerate(choices):
            given[f"choices_{index}:0"] = tf.identity(tf.data.experimental.to_variant(chosen))
        definition, root = self._definition
        (made,) = tf.graph_util.import_graph_def(
            definition, input_map=given, return_elements=[f"{root}:0"], name="own"
        )
        return tf.data.experimental.from_variant(made, self.element_spec)

    def dataset(self, leaves: Sequence[Any], choices: Sequence[Any] = ()) -> Any:
        """Return what `applied` does, where no function is made."""
        applied = without_autograph(lambda _: self.applied(leaves, choices))
        return tensorflow().data.Dataset.from_tensors(0).flat_map(applied)

    @cached_property
    def _definition(self) -> tuple[Any, str]:
        tf = tensorflow()
        old, new = self.graph, tf.compat.v1.GraphDef()
        new.versions.CopyFrom(old.definition.versions)
        new.library.CopyFrom(old.definition.library)
        # Constants and captured values are copied once, although several stages may use them.
        copied: set[str] = set()

        def placeholder(name: str) -> str:
            node = new.node.add(name=name, op="Placeholder")
            # A dataset is a scalar variant to a graph.
            node.attr["dtype"].type = tf.variant.as_datatype_enum
            node.attr["shape"].shape.SetInParent()
            return name

        def copy_of_value(text: str) -> str:
            # All that a value needs, from the old graph. "^" marks a control dependency, ":" an
            # output number.
            for node in old.below(old.nodes[node_name(text)]):
                if node.name not in copied:
                    copied.add(node.name)
                    new.node.add().CopyFrom(node)
            return text

        number = 0

        def made(here: GraphNode) -> str:
            nonlocal number
            if here.kind == "leaf":
                return placeholder(f"leaf_{here.leaf}")
            # Shuffles, repeats and guards vanish, as do pairs that cancel; their first input takes
            # their place.
            if here.kind in ("dropped", "order") or id(here) in self._cancelled:
                return made(here.inputs[0])
            name = f"stage_{number}"
            number += 1
            inputs = [made(below) for below in here.inputs]
            if here.kind == "merged":
                # By identity: two mixtures may have equal nodes.
                which = next(i for i, node in enumerate(self.merges) if node is here)
                # A concatenation becomes a mixture by choices, as its order is known from the
                # prediction.
                node = new.node.add(name=name, op="DirectedInterleaveDataset")
                node.input.extend([placeholder(f"choices_{which}"), *inputs])
                for key in ("output_types", "output_shapes"):
                    node.attr[key].CopyFrom(here.operation.attributes[key])
                node.attr["N"].i = len(inputs)
                return name
            # Inputs of a node: datasets come first, then its other arguments.
            others = map(copy_of_value, here.operation.node.input[len(inputs) :])
            node = new.node.add()
            node.CopyFrom(here.operation.node)
            node.name = name
            del node.input[:]
            node.input.extend([*inputs, *others])
            return name

        return new, made(self.root)

    def _cancel(self, node: GraphNode) -> None:
        """Mark every `unbatch` and the batch below it, which undo each other."""
        if node.kind == "unbatch":
            # Everything between the two must leave batches as they are.
            below = node.inputs[0]
            while _keeps_batches(below.operation):
                below = below.inputs[0]
            if below.kind != "batch" or below.operation.function is not None:
                raise NotRebuildable("unbatch takes apart what maps have made of batches")
            self._cancelled.update((id(node), id(below)))
        for below in node.inputs:
            self._cancel(below)

    def _undoes(self, unbatch: Operation) -> bool:
        """Whether an `unbatch` takes batches apart as they were made."""
        below = unbatch.input
        while _keeps_batches(below):
            below = below.input
        return _KINDS.get(below.op) == "batch"

    def _check_batches(self, node: GraphNode, *, outer: bool, mixed: bool) -> None:
        """Refuse a batch of batches that were reordered: the inner ones cannot be told apart."""
        # Going down from the end. `outer` is a batch above, `mixed` something that reorders between
        # that batch and here.
        if node.kind == "formed" and outer:
            raise NotRebuildable(f"{graph.call_name(node.operation.op)} makes rows of a batch")
        if node.kind == "batch" and id(node) not in self._cancelled:
            if outer and mixed:
                raise NotRebuildable("batches are reordered and then batched again")
            outer, mixed = True, False
        if node.kind == "formed":  # whatever is below, an element is made of its examples
            outer, mixed = False, False
        mixed = mixed or node.kind in ("order", "merged")
        for below in node.inputs:
            self._check_batches(below, outer=outer, mixed=mixed)

    def _width(self, node: GraphNode) -> int:
        """Return how many examples a full element has."""
        # A leaf, or a zip of one index, is one example.
        if not node.inputs or node.source is not None or node.kind == "formed":
            return 1  # of an index of its source, or of as many as there are
        widths = [self._width(below) for below in node.inputs]
        # A zip of different sources has the examples of all in each element.
        if node.kind == "zipped":
            return sum(widths)
        if len(set(widths)) > 1:
            raise NotRebuildable("it mixes batches of several sizes")
        is_batch = node.kind == "batch" and id(node) not in self._cancelled
        return widths[0] * (node.size if is_batch else 1)
