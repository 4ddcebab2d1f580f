"""The graph behind a `tf.data.Dataset` object, as a tree of what each node does to the elements."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from shardctl.base.text import quoted
from shardctl.tfds.imports import tensorflow
from shardctl.tfds.recognizing.graph import BATCHES, CACHES, LONGEST_RANGE, MAPS, SHUFFLES, Library

Kind = Literal["kept", "batch", "unbatch", "dropped", "order", "merged", "zipped", "leaf"]

_OPS: Mapping[Kind, tuple[str, ...]] = {
    "batch": (*BATCHES, "DenseToSparseBatchDataset"),
    "unbatch": ("UnbatchDataset",),
    "kept": (*MAPS, "ParallelMapDataset", "PrefetchDataset"),
    # What says something of the whole, or guards it.
    "dropped": (
        "OptionsDataset",
        "AssertCardinalityDataset",
        "AssertNextDataset",
        "FinalizeDataset",
        "ModelDataset",
        "MaxIntraOpParallelismDataset",
        "PrivateThreadPoolDataset",
    ),
    # What changes which elements come, and when, but none of them.
    "order": (
        *SHUFFLES,
        *CACHES,
        "ShuffleAndRepeatDataset",
        "ShuffleAndRepeatDatasetV2",
        "RepeatDataset",
        "TakeDataset",
        "SkipDataset",
        "ShardDataset",
        "FilterDataset",
    ),
    "merged": ("ConcatenateDataset", "DirectedInterleaveDataset"),
    "zipped": ("ZipDataset",),
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
        self._num_leaves = self.num_sources = 0  # sources, whose elements are counted by themselves
        root = next(node for node in self.definition.node if node.op == "_Retval").input[0]
        self.root = self._tree(_named(root))

    def _tree(self, name: str, source: int | None = None) -> GraphNode:
        """Return the tree below a dataset; `source` is that of all in it, told by their index."""
        node = self.nodes[name]
        kind = _KINDS.get(node.op, "leaf")
        indexed = source is not None
        if source is None and (kind == "leaf" or self._indexed(name, zipped_alone=True)):
            source, self.num_sources = self.num_sources, self.num_sources + 1
            indexed = True
        if indexed and kind not in ("zipped", "kept", "dropped"):
            self._num_leaves += 1
            return GraphNode(node=node, kind="leaf", leaf=self._num_leaves - 1, source=source)
        below = tuple(self._tree(each, source) for each in self._datasets(node, kind))
        size = self._size(node) if kind == "batch" else 1
        own = source if kind == "zipped" else None
        return GraphNode(node=node, kind=kind, inputs=below, size=size, source=own)

    @staticmethod
    def _datasets(node: Any, kind: Kind) -> list[str]:
        """Return the datasets that a node reads, the selector of a mixture left out."""
        names = [_named(text) for text in node.input]
        if kind == "zipped":
            return names[: node.attr["N"].i]
        if kind == "merged":
            return names[:2] if node.op == "ConcatenateDataset" else names[1:]
        return names[:1]

    def _indexed(
        self, name: str, *, zipped_alone: bool = False
    ) -> Literal["counted", "endless", ""]:
        """Return what elements of index i are: of a source, of one without end, or neither.

        What zips sources alone is counted where one of them has an end of its own: of numbers that
        count on, or of one element that repeats, elements are told apart by the others.
        """
        node = self.nodes[name]
        kind = _KINDS.get(node.op, "leaf")
        if kind == "zipped":
            kinds = {self._indexed(below) for below in self._datasets(node, kind)}
            return "counted" if "" not in kinds and "counted" in kinds else ""
        if zipped_alone:
            return ""
        if kind in ("kept", "dropped"):
            return self._indexed(_named(node.input[0]))
        if node.op == "RepeatDataset":
            return "endless" if self._is_constant(_named(node.input[0])) else ""
        if node.op == "RangeDataset":
            stop = self.nodes[_named(node.input[1])]
            counts_on = stop.op == "Const" and _number(stop) > LONGEST_RANGE
            return "endless" if counts_on else "counted"
        return "counted" if node.op in _SOURCES else ""

    def _is_constant(self, name: str) -> bool:
        node = self.nodes[name]
        if _KINDS.get(node.op) == "dropped":
            return self._is_constant(_named(node.input[0]))
        return bool(node.op == "TensorDataset")

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
