"""The graph behind a `tf.data.Dataset` object, as a tree of what each node does to the elements."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from shardctl.core.text import quoted
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.recognizing.graph import LONGEST_RANGE, Library

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

    node: Any
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
        self._num_leaves = self._num_sources = 0
        root = next(node for node in self.definition.node if node.op == "_Retval").input[0]
        self.root = self._tree(_named(root))

    @property
    def num_sources(self) -> int:
        """How many sources there are, whose elements are counted each by itself."""
        return self._num_sources

    def _tree(self, name: str) -> GraphNode:
        node = self.nodes[name]
        if self._is_indexed(name):
            self._num_sources += 1
            return self._of_source(name, self._num_sources - 1)
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
        self._num_sources += 1
        return self._leaf(node, self._num_sources - 1)

    def _leaf(self, node: Any, source: int) -> GraphNode:
        self._num_leaves += 1
        return GraphNode(node=node, kind="leaf", leaf=self._num_leaves - 1, source=source)

    def _is_indexed(self, name: str) -> bool:
        """Whether this zips what is made of sources alone, one of each element of index i.

        At least one of them has an end of its own: of numbers that count on, or of one element that
        repeats, elements are told apart by what they are zipped with.
        """
        if self.nodes[name].op != "ZipDataset":
            return False
        kinds = {self._indexed(below) for below in self._zipped(name)}
        return "" not in kinds and "counted" in kinds

    def _indexed(self, name: str) -> Literal["counted", "endless", ""]:
        """Return what elements of index i are: of a source, of one without end, or neither."""
        node = self.nodes[name]
        if node.op in (*_KEPT, *_DROPPED):
            return self._indexed(_named(node.input[0]))
        if node.op == "RepeatDataset":
            return "endless" if self._is_constant(_named(node.input[0])) else ""
        if node.op == "RangeDataset":
            stop = self.nodes[_named(node.input[1])]
            counts_on = stop.op == "Const" and _number(stop) > LONGEST_RANGE
            return "endless" if counts_on else "counted"
        if node.op in _SOURCES:
            return "counted"
        return "counted" if self._is_indexed(name) else ""

    def _is_constant(self, name: str) -> bool:
        node = self.nodes[name]
        if node.op in _DROPPED:
            return self._is_constant(_named(node.input[0]))
        return bool(node.op == "TensorDataset")

    def _zipped(self, name: str) -> list[str]:
        node = self.nodes[name]
        return [_named(text) for text in node.input[: node.attr["N"].i]]

    def _of_source(self, name: str, source: int) -> GraphNode:
        """Return the tree of what `_indexed` is about; what repeats one element is a leaf."""
        node = self.nodes[name]
        if node.op == "ZipDataset":
            inputs = tuple(self._of_source(below, source) for below in self._zipped(name))
            return GraphNode(node=node, kind="zipped", inputs=inputs, source=source)
        for kind, names in (("kept", _KEPT), ("dropped", _DROPPED)):
            if node.op in names:
                below = self._of_source(_named(node.input[0]), source)
                return GraphNode(node=node, kind=kind, inputs=(below,))  # type: ignore[arg-type]
        return self._leaf(node, source)

    def buffer_sizes(self) -> Iterator[int]:
        """Yield the sizes of the shuffle buffers above the leaves."""
        for here in self.root.walk():
            if here.node.op.startswith("Shuffle"):
                yield self._size(here.node)

    def _size(self, node: Any) -> int:
        size = self.nodes[_named(node.input[1])]
        if size.op != "Const":
            raise NotRebuildable(f"the size of {node.op} is not written in its graph")
        return _number(size)

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


def _number(constant: Any) -> int:
    return int(tensorflow().make_ndarray(constant.attr["value"].tensor))


def _named(text: str) -> str:
    """Return the name of the node of an input, which may name an output of it."""
    return text.removeprefix("^").partition(":")[0]


# Iterators that a script leaves early, ended before its interpreter is.


@cache
def end_iterators_at_exit() -> None:
    """Let the iterators of tf.data that are still there end before the interpreter does.

    What reads ahead for an iterator may be in a generator of ours, or in TFDS's reader of Parquet
    files. Once the interpreter ends, no thread gets back into Python, and TensorFlow, which waits
    for its threads where an iterator goes, would wait for ever.
    """
    atexit.register(_end_iterators)


def _end_iterators() -> None:
    kind = tensorflow().data.Iterator
    for found in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
        vars(found).pop("_iterator_resource", None)  # the last that holds on to it
