"""The graph behind a `tf.data.Dataset` object, as a tree of what each node does to the elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from shardctl.core.text import quoted
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.recognizing.graph import Library

Kind = Literal["kept", "batch", "unbatch", "dropped", "order", "merged", "zipped", "leaf"]

_BATCHES = {
    "BatchDataset": 1,
    "BatchDatasetV2": 1,
    "ParallelBatchDataset": 1,
    "PaddedBatchDataset": 1,
    "PaddedBatchDatasetV2": 1,
    "DenseToSparseBatchDataset": 1,
}
_KEPT = ("MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "PrefetchDataset")
# What says something of the whole, or guards it.
_DROPPED = (
    "OptionsDataset",
    "AssertCardinalityDataset",
    "AssertNextDataset",
    "FinalizeDataset",
    "ModelDataset",
    "MaxIntraOpParallelismDataset",
    "PrivateThreadPoolDataset",
)
# What changes which elements come, and when, but none of them.
_ORDER = (
    "ShuffleDataset",
    "ShuffleDatasetV2",
    "ShuffleDatasetV3",
    "ShuffleAndRepeatDataset",
    "ShuffleAndRepeatDatasetV2",
    "RepeatDataset",
    "TakeDataset",
    "SkipDataset",
    "ShardDataset",
    "FilterDataset",
    "CacheDataset",
    "CacheDatasetV2",
)


class NotRebuildable(Exception):  # noqa: N818  # a reason that callers put into words of theirs
    """Why the elements of a dataset cannot be made again, of other examples; a clause."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphNode:
    """A dataset in a graph, and the datasets that it reads.

    A tree: a dataset that two read is there twice. `leaf` numbers the leaves from the left, the
    selector of a mixture left out; size is that of a batch.
    """

    node: Any
    kind: Kind
    inputs: tuple[GraphNode, ...] = ()
    leaf: int | None = None
    size: int = 1

    def walk(self) -> Iterator[GraphNode]:
        """Yield this node and those below, from the root down and from the left."""
        yield self
        for below in self.inputs:
            yield from below.walk()

    @property
    def leaves(self) -> list[GraphNode]:
        """The sources below, from the left."""
        return [node for node in self.walk() if node.kind == "leaf"]


class DatasetGraph:
    """The graph of a dataset object; what it holds beside datasets is as it was at this call.

    Raises:
        NotRebuildable: TensorFlow makes no graph of the dataset.
    """

    def __init__(self, dataset: Any) -> None:
        tf = tensorflow()
        variant = tf.data.experimental.to_variant(dataset)
        try:
            text = tf.raw_ops.DatasetToGraphV2(
                input_dataset=variant, external_state_policy=1, strip_device_assignment=False
            ).numpy()
        except tf.errors.OpError as error:
            line = (str(error).splitlines() or [""])[0]
            raise NotRebuildable(
                f"TensorFlow makes no graph of it ({quoted(line, 200)})"
            ) from error
        self.element_spec = dataset.element_spec
        self.definition = tf.compat.v1.GraphDef.FromString(text)
        self.nodes: dict[str, Any] = {node.name: node for node in self.definition.node}
        self._num_leaves = 0
        root = next(node for node in self.definition.node if node.op == "_Retval").input[0]
        self.root = self._tree(_named(root))

    def _tree(self, name: str) -> GraphNode:
        node = self.nodes[name]
        datasets = [_named(text) for text in node.input]
        if node.op in _BATCHES:
            below = self._tree(datasets[0])
            return GraphNode(node=node, kind="batch", inputs=(below,), size=self._size(node))
        if node.op == "UnbatchDataset":
            return GraphNode(node=node, kind="unbatch", inputs=(self._tree(datasets[0]),))
        for kind, names in (("kept", _KEPT), ("dropped", _DROPPED), ("order", _ORDER)):
            if node.op in names:
                return GraphNode(node=node, kind=kind, inputs=(self._tree(datasets[0]),))  # type: ignore[arg-type]
        several: Kind | None = None
        if node.op == "ConcatenateDataset":
            several, datasets = "merged", datasets[:2]
        elif node.op == "DirectedInterleaveDataset":
            several, datasets = "merged", datasets[1:]
        elif node.op == "ZipDataset":
            several = "zipped"
        if several is not None:
            inputs = tuple(self._tree(name) for name in datasets)
            return GraphNode(node=node, kind=several, inputs=inputs)
        self._num_leaves += 1
        return GraphNode(node=node, kind="leaf", leaf=self._num_leaves - 1)

    def buffer_sizes(self) -> Iterator[int]:
        """Yield the sizes of the shuffle buffers above the leaves."""
        for here in self.root.walk():
            if here.node.op.startswith("Shuffle"):
                yield self._size(here.node)

    def _size(self, node: Any) -> int:
        size = self.nodes[_named(node.input[1])]
        if size.op != "Const":
            raise NotRebuildable(f"the size of {node.op} is not written in its graph")
        return int(tensorflow().make_ndarray(size.attr["value"].tensor))

    def ops_in_functions(self, node: Any) -> set[str]:
        """Return the names of all ops in the functions of a node, and in those that these call."""
        library = {f.signature.name: f for f in self.definition.library.function}
        found: set[str] = set()
        ahead = [attr.func.name for attr in node.attr.values() if attr.HasField("func")]
        seen: set[str] = set()
        while ahead:
            name = ahead.pop()
            if name in seen or name not in library:
                continue
            seen.add(name)
            for inner in library[name].node_def:
                found.add(inner.op)
                ahead.append(inner.op)  # a call of a function is an op of its name
                for attr in inner.attr.values():
                    ahead += [attr.func.name, *(f.name for f in attr.list.func)]
        return found - library.keys()

    def is_identity(self, node: Any) -> bool:
        """Whether a map returns its elements as they are; `unbatch` puts such a map below it."""
        functions = {f.signature.name: f for f in self.definition.library.function}
        function = Library(functions).function(node.attr["f"].func.name)
        return function is not None and function.is_identity

    def below(self, node: Any) -> Iterator[Any]:
        """Yield a node and every node that it needs."""
        ahead, seen = [node.name], set()
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                yield self.nodes[name]
                ahead += map(_named, self.nodes[name].input)


def _named(text: str) -> str:
    """Return the name of the node of an input, which may name an output of it."""
    return text.removeprefix("^").partition(":")[0]
