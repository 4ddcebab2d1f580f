"""The elements of a dataset object by its predicted order, made by its own maps and files."""

from __future__ import annotations

import atexit
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.hooks import provided
from shardctl.base.text import choices, counted
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.dataset.dataset import Dataset
from shardctl.errors import DatasetError, UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.settings.short_form import stages_of
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import FlatMap
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.inspecting.graph import Graph
from shardctl.tfds.training.edited_graph import EditedGraph, GraphNode, NotRebuildable, spec_of
from shardctl.tfds.training.records import file_adapter, path_of_shard
from shardctl.verbs.inspect.answer import CountedElements, Inspection

# What has elements, each an example or several.
Elements = Order | CountedElements


def num_examples_of(order: Elements) -> int | None:
    """Return how many examples an order has, None without end or where that is not known yet."""
    return None if order.is_endless else order.num_examples


def element_after(order: Elements, consumed: int) -> int:
    """Return the element that comes after so many examples were yielded.

    Raises:
        UsageError: there are fewer, or the number ends within an element.
    """
    if isinstance(order, CountedElements):
        # How many elements there are may be known only as far as was counted.
        order.reach(consumed)
    total = num_examples_of(order)
    if consumed < 0 or (total is not None and consumed > total):
        raise UsageError(
            f"consumed={consumed}: the pipeline yields {counted(total or 0, 'example')}"
        )
    # The end of the order: `steps_of` has no step for it.
    if consumed == total:
        return order.num_steps or 0
    element, within = (int(found[0]) for found in order.steps_of([consumed]))
    if within:
        before = consumed - within
        after = before + width_of(order, element)
        raise UsageError(
            f"consumed={consumed} is in the middle of step {element}, whose batch holds examples "
            f"{before} to {after - 1}; whole steps end after {before} and {after} examples"
        )
    return element


def width_of(order: Elements, element: int) -> int:
    """Return how many examples an element holds."""
    return len(order.positions_in_step(element))


def num_examples_before(order: Elements, element: int) -> int:
    """Return how many examples are yielded before an element."""
    # Past the last element there is no range of positions.
    if element == order.num_steps:
        return num_examples_of(order) or 0
    return order.positions_in_step(element).start


# Elements of a source by their places in it, read in the order of its files.

PIECE_SIZE = 256
_MAX_OPEN = 64  # files that are read on where the last look-up ended
_ORDER_BELOW = ("Shuffle", "Repeat", "Random", "Generator", "Shard", "Take", "Skip", "Filter")


@dataclass(kw_only=True, eq=False)
class Source:
    """The elements that a leaf of a graph yields, before any map, by their code.

    types: the components of an element, as TensorSpecs.
    places: (number of the file, index in it) of codes, int64[q] each; both ascend with the code.
    open: the elements of a file from some index on, a `tf.data.Dataset`.
    names: the tfds_ids of codes, which come before the records where TFDS adds those.
    """

    types: tuple[Any, ...]
    places: Callable[[Int64s], tuple[Int64s, Int64s]]
    open: Callable[[int, int], Any]
    names: Callable[[Int64s], Sequence[str]] | None = None
    # Files that are read up to some element.
    _opened: dict[int, tuple[Iterator[Any], int]] = field(init=False, default_factory=dict)

    def elements(self, codes: Int64s) -> list[tuple[Any, ...]]:
        """Return the elements of any codes, each read once."""
        # `np.unique` returns ascending values, and the inverse that restores the order asked for.
        wanted, place = np.unique(codes, return_inverse=True)
        store = list(self._read(wanted))
        found = [store[index] for index in place.tolist()]
        if self.names is None or not found:
            return found
        names = self.names(codes)
        return [(name.encode(), *record) for name, record in zip(names, found, strict=True)]

    def _read(self, wanted: Int64s) -> Iterator[tuple[Any, ...]]:
        files, indices = self.places(wanted)
        # Files ascend in `wanted`, so each change is the start of another file.
        cuts = np.flatnonzero(np.diff(files)) + 1
        for here in np.split(np.arange(len(wanted)), cuts):
            if len(here):
                yield from self._read_file(int(files[here[0]]), indices[here].tolist())

    def _read_file(self, file: int, indices: list[int]) -> Iterator[tuple[Any, ...]]:
        # (iterator, next index) where a file was left. The default is so far away that the file is
        # opened.
        rows, at = self._opened.pop(file, (iter(()), -1 - PIECE_SIZE))
        for index in indices:
            # Ahead by less than a piece: reading on is cheaper than opening the file again. Behind:
            # a new iterator.
            if not 0 <= index - at < PIECE_SIZE:
                rows, at = _rows(self.open(file, index)), index
            # Records before the wanted one are read and dropped; `at` is the index of the next
            # record.
            for row in islice(rows, index - at, index - at + 1):
                at = index + 1
                yield row
            # The iterator ended early.
            if at != index + 1:
                raise DatasetError("the files hold fewer examples than the metadata says")
        self._opened[file] = rows, at
        # A dict keeps its order of insertion, and `pop` above moves a file to the end: the one used
        # longest ago is closed.
        while len(self._opened) > _MAX_OPEN:
            del self._opened[next(iter(self._opened))]


def file_source(dataset: Dataset, codes: ExampleCodes, *, with_ids: bool) -> Source:
    """Return what TFDS's reader yields before it decodes: serialized examples, and tfds_ids."""
    counts = [split.num_shards for split in dataset.splits]
    # Files are numbered over all splits: first_files[s] is the first of split s.
    first_files = np.cumsum([0, *counts[:-1]]).astype(np.int64)

    def places(wanted: Int64s) -> tuple[Int64s, Int64s]:
        split, shard, index = codes.places(wanted)
        return first_files[split] + shard, index

    def opened(file: int, start: int) -> Any:
        # The last split that begins at or before the file; "right" skips splits without shards.
        split = int(np.searchsorted(first_files, file, side="right")) - 1
        path = path_of_shard(dataset.splits[split], file - int(first_files[split]))
        return file_adapter(dataset.file_format).make_tf_data(path).skip(start)

    tf = tensorflow()
    return Source(
        types=(tf.TensorSpec([], tf.string),) * (2 if with_ids else 1),
        places=places,
        open=opened,
        names=codes.tfds_ids if with_ids else None,
    )


def node_source(graph: Graph, leaf: GraphNode) -> Source:
    """Return a source of a fixed order, as `Dataset.range`: the elements of a node of a graph.

    Raises:
        NotRebuildable: what it reads has an order of its own, or is no plain tensor.
    """
    tf, node = tensorflow(), leaf.node
    # One element that repeats is the same at each index.
    # Whatever is below the leaf must yield elements by their index alone.
    for below in () if node.op == "RepeatDataset" else graph.below(node):
        is_dataset = below.op.endswith("Dataset") or "DatasetV" in below.op
        if is_dataset and any(word in below.op for word in _ORDER_BELOW):
            raise NotRebuildable(f"{node.op} reads what has an order of its own")
    types = spec_of(leaf.operation)
    if not types or tf.variant in (t.dtype for t in types):
        raise NotRebuildable(f"{node.op} yields what is no plain tensor")

    def opened(file: int, start: int) -> Any:
        # A graph of the node and all below it, with the library of functions, ending in the _Retval
        # that TensorFlow expects.
        definition = tf.compat.v1.GraphDef()
        definition.library.CopyFrom(graph.definition.library)
        definition.node.extend(graph.below(node))
        end = definition.node.add(name="dataset", op="_Retval", input=[node.name])
        end.attr["T"].type = tf.variant.as_datatype_enum
        end.attr["index"].i = 0
        variant = tf.raw_ops.DatasetFromGraph(graph_def=definition.SerializeToString())
        return tf.data.experimental.from_variant(variant, types).skip(start)

    # One file, number 0, whose index is the code.
    return Source(types=types, places=lambda wanted: (np.zeros_like(wanted), wanted), open=opened)


def _rows(elements: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the elements of a dataset as tuples of their components."""
    elements = _in_own_threads(elements)
    spec = elements.element_spec
    if isinstance(spec, tuple):
        # Components as they are; a single one is read in batches, which is quicker.
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
# And those that read or keep a state besides: of variables, of Python.
_STATEFUL = (*_RANDOM, "Assign", "ResourceScatter", "VarIsInitialized", "PyFunc")


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnElements:
    """A dataset object and what a pass of it yields."""

    dataset: Any
    elements: Elements

    @classmethod
    def of(cls, dataset: Any, inspection: Inspection, pass_index: int) -> OwnElements:
        """Return the elements of a pass of a dataset object that was inspected.

        Raises:
            UnpredictableOrderError: a stage leaves their order open.
        """
        if inspection.dataset is None:
            settings = replace(inspection.settings, pass_index=pass_index)
            return cls(dataset=dataset, elements=CountedElements(settings))
        return cls(dataset=dataset, elements=inspection.order(pass_index).order)

    def made(self, *, start: int = 0) -> Any:
        """Return the elements from `start` on, made by the object's own maps and batches.

        Raises:
            NotRebuildable: they cannot be made of examples one by one.
        """
        tf = tensorflow()
        # The options of the user's object are those of the result.
        made = self.rest(start).dataset().with_options(self.dataset.options())
        total = self.elements.num_steps
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

    @property
    def state_warning(self) -> str | None:
        """What maps do that is no matter of their examples alone, None where they do not."""
        if not (ops := self._ops(_STATEFUL)):
            return None
        return (
            f"a map of the pipeline ({choices(sorted(ops), 4)}) draws random numbers, keeps "
            "variables or calls Python; its input is the same, its output may differ"
        )

    @cached_property
    def random_ops(self) -> set[str]:
        """The ops of maps that draw random numbers."""
        return self._ops(_RANDOM)

    def _ops(self, parts: Sequence[str]) -> set[str]:
        maps = (node.operation for node in self._edited.root.walk())
        ops = {
            op
            for here in maps
            if here.op.endswith(("MapDataset", "V2"))
            for op in here.graph.ops_in_functions(here.node)
        }
        return {
            op for op in ops if any(part in op for part in parts) and not op.startswith("Stateless")
        }

    @cached_property
    def _edited(self) -> EditedGraph:
        scanned = [
            provided("kept")(stage.name, stage.kept, getattr(self.elements, "codes", None))
            for stage in parts_of(stages_of(self.elements.settings))
            if isinstance(stage, FlatMap)
        ]
        if any(kept.by != "lengths" for kept in scanned):
            raise NotRebuildable("flat_map makes several elements of one example")
        edited = EditedGraph(self.dataset, packs=bool(scanned))
        if edited.num_packers != len(scanned):
            raise NotRebuildable("unbatch takes apart what maps have made of batches")
        return edited

    def _sources(self) -> list[Source]:
        num_sources = self._edited.num_sources
        # A mismatch means that one object is read twice, or that something counts elements on its
        # way.
        if num_sources != (len(self.elements.sources) or 1):
            raise NotRebuildable("its sources are shared, or count what passes")
        if isinstance(self.elements, CountedElements) and num_sources > 1:
            raise NotRebuildable("its sources have no files, and each counts its elements from 0")
        return list(map(self._source, self._edited.root.leaves))

    def _source(self, leaf: GraphNode) -> Source:
        order = self.elements
        if isinstance(order, CountedElements):
            return node_source(self._edited.graph, leaf)
        tf = tensorflow()
        kinds = [tf.dtypes.as_dtype(kind) for kind in leaf.node.attr["output_types"].list.type]
        is_reader = any(word in leaf.node.op for word in _INTERLEAVES)
        # TFDS's reader yields a record, or a record and its id, as strings. Any other reader has
        # records of its own kind.
        if not is_reader or kinds not in ([tf.string], [tf.string, tf.string]):
            raise NotRebuildable(f"{leaf.node.op} reads files in a way of its own")
        if " + " in order.dataset.file_format:
            raise NotRebuildable("its datasets have different file formats")
        return file_source(order.dataset, order.codes, with_ids=len(kinds) == 2)

    @property
    def _window(self) -> int:
        """Examples at a time: about a buffer, so that what lies in it is read once."""
        whole = num_examples_of(self.elements) or self.elements.num_steps or 0
        # A whole-dataset buffer counts as the number of examples.
        sizes = self._edited.buffer_sizes()
        buffered = max((whole if size == WHOLE_DATASET else size for size in sizes), default=0)
        return max(WINDOW_SIZE, min(buffered, _MAX_WINDOW))


# What a dataset object yields from some element on, made by its own maps and batches.

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
    # Reentrant: `_leaf` holds it and calls `_examples`.
    _lock: Any = field(init=False, default_factory=threading.RLock)
    # The last window that was looked up; every leaf and every mixture asks for the same one.
    _latest: tuple[tuple[int, int], tuple[Int64s, Int64s]] | None = field(init=False, default=None)
    _span: tuple[int, int] = field(init=False, default=(0, 0))  # elements that are read together
    _read: dict[int, Any] = field(init=False, default_factory=dict)  # those of each leaf

    def dataset(self) -> Any:
        """Return the `tf.data.Dataset`; it may be iterated again, from `start`."""
        end_iterators_at_exit()
        tf = tensorflow()
        bounds = tf.TensorSpec([2], tf.int64)
        # Python generators: the order is predicted in Python, window by window.
        windows = tf.data.Dataset.from_generator(self.windows, output_signature=bounds)
        return windows.flat_map(without_autograph(self._made))

    def windows(self) -> Iterator[Int64s]:
        """Yield [start, stop) of elements that are formed in one go.

        A batch that is not full ends its window, since batches are formed anew in each.
        """
        full, at = self.edited.full_width, self.start
        is_formed = self.edited.is_formed
        while True:
            with self._lock:
                if self.elements.steps_up_to(at + 1) <= at:
                    return
                # At least one element, in about `window` examples.
                width = width_of(self.elements, at) if is_formed else full
                stop = self.elements.steps_up_to(at + max(1, self.window // max(width, 1)))
                widths = self.elements.examples_in_steps(at, stop)[2]
                self._span = (at, stop)
            # After each element that is not full a window ends. Batches are formed anew in a
            # window, so a partial one must come last. A group or a packed row is formed alone.
            cuts = np.flatnonzero(is_formed | (widths != full)) + 1
            # Consecutive cuts; an empty one arises where the last element is partial.
            for begin, end in zip((0, *cuts.tolist()), (*cuts.tolist(), stop - at), strict=True):
                if begin < end:
                    yield np.array([at + begin, at + end], np.int64)
            at = stop

    def _made(self, bounds: Any) -> Any:
        tf = tensorflow()
        leaves = [self._leaf(number, bounds) for number in range(len(self.sources))]
        choices = [
            # `merged=merged` binds this round's value, not the last one of the loop.
            tf.data.Dataset.from_generator(
                lambda start, stop, merged=merged: self._choices(merged, int(start), int(stop)),
                output_signature=tf.TensorSpec([], tf.int64),
                args=(bounds[0], bounds[1]),
            )
            for merged in self.edited.merges
        ]
        made = self.edited.applied(leaves, choices)
        # A window yields exactly its elements, or tf.data fails: a wrong count is never silent.
        return made.apply(tf.data.experimental.assert_cardinality(bounds[1] - bounds[0]))

    def _leaf(self, number: int, bounds: Any) -> Any:
        tf = tensorflow()
        source = self.sources[number]
        of_source = self.edited.root.leaves[number].source
        # Strings are sent from Python in pieces of PIECE_SIZE, since a call for each costs more
        # than the record.
        in_pieces = all(t.dtype == tf.string and t.shape.rank == 0 for t in source.types)

        def elements(start: Any, stop: Any) -> Iterator[Any]:
            with self._lock:  # never while something is yielded: another thread asks for the next
                found = self._found(number, of_source, int(start), int(stop))
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

    def _found(self, number: int, of_source: int | None, start: int, stop: int) -> list[Any]:
        """Return what a leaf yields for elements of a window, in their order."""
        if not self.edited.is_formed:
            leaves, codes = self._examples(start, stop)
            return self.sources[number].elements(codes[leaves == of_source])
        span = self._span
        if self._read.get(number, (None,))[0] != span:
            leaves, codes, widths = self.elements.examples_in_steps(*span)
            of_leaf = leaves == of_source
            # How many examples of the leaf come before each element, all read in one go.
            ends = np.cumsum(of_leaf)[np.cumsum(widths) - 1]
            found = self.sources[number].elements(codes[of_leaf])
            self._read[number] = span, np.append(0, ends), found
        _, before, rows = self._read[number]
        return rows[before[start - span[0]] : before[stop - span[0]]]

    def _choices(self, merged: GraphNode, start: int, stop: int) -> list[int]:
        chosen: list[int] = self.edited.choices(merged, self._examples(start, stop)[0]).tolist()
        return chosen

    def _examples(self, start: int, stop: int) -> tuple[Int64s, Int64s]:
        with self._lock:
            if self._latest is None or self._latest[0] != (start, stop):
                leaves, codes, _ = self.elements.examples_in_steps(start, stop)
                self._latest = (start, stop), (leaves, codes)
            return self._latest[1]


def _columns(rows: list[Any]) -> tuple[Any, ...]:
    return tuple(np.array(column, object) for column in zip(*rows, strict=True))


# Iterators that a script leaves early, ended before its interpreter is.


@cache
def end_iterators_at_exit() -> None:
    """Let the iterators of tf.data that are still there end before the interpreter does.

    What reads ahead for an iterator may be in a generator of ours, or in TFDS's reader of Parquet
    files. Once the interpreter ends, no thread gets back into Python, and TensorFlow, which waits
    for its threads where an iterator goes, would wait indefinitely.
    """
    atexit.register(_end_iterators)


def _end_iterators() -> None:
    kind = tensorflow().data.Iterator
    for found in [each for each in gc.get_objects() if issubclass(type(each), kind)]:
        vars(found).pop("_iterator_resource", None)  # the last that holds on to it
