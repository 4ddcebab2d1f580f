"""Elements of a source by their places in it, read in the order of its files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError
from shardctl.order.example_codes import ExampleCodes
from shardctl.tfds.graphs.dataset_graph import DatasetGraph, GraphNode, NotRebuildable
from shardctl.tfds.imports import tensorflow, tensorflow_datasets

PIECE_SIZE = 256
_MAX_OPEN = 64  # files that are read on where the last look-up ended
_ORDER_BELOW = ("Shuffle", "Repeat", "Random", "Generator", "Shard", "Take", "Skip", "Filter")


@dataclass(kw_only=True, eq=False)
class Source(ABC):
    """The elements that a leaf of a graph yields, before any map, by their code.

    types: the components of an element, as TensorSpecs.
    """

    # Files that are read up to some element.
    _opened: dict[int, tuple[Iterator[Any], int]] = field(init=False, default_factory=dict)

    @property
    @abstractmethod
    def types(self) -> tuple[Any, ...]:
        """The components of an element."""

    @abstractmethod
    def _places(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (number of the file, index in it), int64[q] each; both ascend with the code."""

    @abstractmethod
    def _open(self, file: int, start: int) -> Any:
        """Return the elements of a file from `start` on, a `tf.data.Dataset`."""

    def elements(self, codes: Int64s) -> list[tuple[Any, ...]]:
        """Return the elements of any codes, each read once."""
        wanted, place = np.unique(codes, return_inverse=True)
        store = list(self._read(wanted))
        return [store[index] for index in place.tolist()]

    def _read(self, wanted: Int64s) -> Iterator[tuple[Any, ...]]:
        files, indices = self._places(wanted)
        cuts = np.flatnonzero(np.diff(files)) + 1
        for here in np.split(np.arange(len(wanted)), cuts):
            if len(here):
                yield from self._read_file(int(files[here[0]]), indices[here].tolist())

    def _read_file(self, file: int, indices: list[int]) -> Iterator[tuple[Any, ...]]:
        rows, at = self._opened.pop(file, (iter(()), -1 - PIECE_SIZE))
        for index in indices:
            if not 0 <= index - at < PIECE_SIZE:
                rows, at = _rows(self._open(file, index)), index
            for row in islice(rows, index - at, index - at + 1):
                at = index + 1
                yield row
            if at != index + 1:
                raise DatasetError("the files hold fewer examples than the metadata says")
        self._opened[file] = rows, at
        while len(self._opened) > _MAX_OPEN:
            del self._opened[next(iter(self._opened))]


@dataclass(kw_only=True, eq=False)
class FileSource(Source):
    """What TFDS's reader yields before it decodes: serialized examples, and their tfds_ids."""

    dataset: Dataset
    codes: ExampleCodes
    with_ids: bool

    @property
    def types(self) -> tuple[Any, ...]:
        tf = tensorflow()
        return (tf.TensorSpec([], tf.string),) * (2 if self.with_ids else 1)

    def elements(self, codes: Int64s) -> list[tuple[Any, ...]]:
        """Return the records of any codes, behind their tfds_ids where TFDS adds those."""
        found = super().elements(codes)
        if not self.with_ids or not found:
            return found
        names = self.codes.tfds_ids(codes)
        return [(name.encode(), *record) for name, record in zip(names, found, strict=True)]

    def _places(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        split, shard, index = self.codes.places(codes)
        return self._first_files[split] + shard, index

    def _open(self, file: int, start: int) -> Any:
        split = int(np.searchsorted(self._first_files, file, side="right")) - 1
        folder, name = self.dataset.splits[split].location(file - int(self._first_files[split]))
        path = name if folder is None else os.path.join(folder, name)
        return self._adapter.make_tf_data(path).skip(start)

    @cached_property
    def _first_files(self) -> Int64s:
        counts = [split.num_shards for split in self.dataset.splits]
        return np.cumsum([0, *counts[:-1]]).astype(np.int64)

    @cached_property
    def _adapter(self) -> Any:
        adapters = tensorflow_datasets("core.file_adapters")
        kind = adapters.FileFormat.from_value(self.dataset.file_format)
        return adapters.ADAPTER_FOR_FORMAT[kind]


@dataclass(kw_only=True, eq=False)
class NodeSource(Source):
    """A source of a fixed order, as `Dataset.range`: the elements of the very node of a graph.

    Raises:
        NotRebuildable: what it reads has an order of its own, or is no plain tensor.
    """

    graph: DatasetGraph
    leaf: GraphNode

    def __post_init__(self) -> None:
        tf = tensorflow()
        node = self.leaf.node
        # One element that repeats is the same at each index.
        for below in () if node.op == "RepeatDataset" else self.graph.below(node):
            is_dataset = below.op.endswith("Dataset") or "DatasetV" in below.op
            if is_dataset and any(word in below.op for word in _ORDER_BELOW):
                raise NotRebuildable(f"{node.op} reads what has an order of its own")
        if not self.types or tf.variant in (t.dtype for t in self.types):
            raise NotRebuildable(f"{node.op} yields what is no plain tensor")

    @property
    def types(self) -> tuple[Any, ...]:
        tf = tensorflow()
        attr = self.leaf.node.attr
        name = "output_types" if "output_types" in attr else "Toutput_types"
        types = map(tf.dtypes.as_dtype, attr[name].list.type)
        shapes = map(tf.TensorShape, attr["output_shapes"].list.shape)
        return tuple(tf.TensorSpec(s, t) for s, t in zip(shapes, types, strict=True))

    def _places(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        return np.zeros_like(codes), codes

    def _open(self, file: int, start: int) -> Any:
        tf = tensorflow()
        definition = tf.compat.v1.GraphDef()
        definition.library.CopyFrom(self.graph.definition.library)
        for node in self.graph.below(self.leaf.node):
            definition.node.add().CopyFrom(node)
        end = definition.node.add(name="dataset", op="_Retval", input=[self.leaf.node.name])
        end.attr["T"].type = tf.variant.as_datatype_enum
        end.attr["index"].i = 0
        variant = tf.raw_ops.DatasetFromGraph(graph_def=definition.SerializeToString())
        return tf.data.experimental.from_variant(variant, self.types).skip(start)


def _rows(elements: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the elements of a dataset as tuples of their components."""
    elements = _in_own_threads(elements)
    spec = elements.element_spec
    if isinstance(spec, tuple):
        yield from elements.as_numpy_iterator()
        return
    for batch in elements.batch(PIECE_SIZE).as_numpy_iterator():
        for record in batch.tolist():
            yield (record,)


def _in_own_threads(elements: Any) -> Any:
    """Return a dataset that another one may read from within its Python code.

    Parquet files are read by Python too, as TFDS does it. In the threads that all datasets share,
    it may wait for the very call that waits for it; and read ahead of that call, it may still run
    Python when the dataset is left, for which the interpreter then waits at its end.
    """
    options = tensorflow().data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    options.threading.private_threadpool_size = 1
    return elements.with_options(options)


# The maps and batches of a dataset's graph over other elements, its shuffles and repeats gone.


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
