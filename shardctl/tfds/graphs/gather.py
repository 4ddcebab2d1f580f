"""Elements of a source by their places in it, read in the order of its files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.errors import DatasetError
from shardctl.tfds.graphs.dataset_graph import DatasetGraph, GraphNode, NotRebuildable
from shardctl.tfds.imports import tensorflow, tensorflow_datasets

PIECE_SIZE = 256
_MAX_OPEN = 64  # files that are read on where the last look-up ended
_ORDER_BELOW = ("Shuffle", "Repeat", "Random", "Generator", "Shard", "Take", "Skip", "Filter")


@dataclass(kw_only=True)
class _Opened:
    """A file that is read up to `at`."""

    rows: Iterator[Any]
    at: int


@dataclass(kw_only=True, eq=False)
class Source(ABC):
    """The elements that a leaf of a graph yields, before any map, by their code.

    types: the components of an element, as TensorSpecs.
    num_read: elements read so far; num_skipped: those passed over to get there, not decoded.
    """

    num_read: int = field(init=False, default=0)
    num_skipped: int = field(init=False, default=0)
    _opened: dict[int, _Opened] = field(init=False, default_factory=dict)

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
        opened = self._opened.pop(file, None)
        for index in indices:
            if opened is None or not 0 <= index - opened.at < PIECE_SIZE:
                self.num_skipped += index
                opened = _Opened(rows=_rows(self._open(file, index)), at=index)
            while True:
                row = next(opened.rows, None)
                if row is None:
                    raise DatasetError("the files hold fewer examples than the metadata says")
                opened.at += 1
                self.num_read += 1
                if opened.at > index:
                    break
            yield row
        if opened is not None:
            self._opened[file] = opened
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
