"""The elements of a dataset object by its predicted order, made by its own maps and files."""

from __future__ import annotations

import atexit
import contextlib
import gc
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s, spans
from shardctl.base.by_name import provided
from shardctl.base.text import choices, counted
from shardctl.base.tfds_rules import POSITIONS, WHOLE_DATASET
from shardctl.errors import UsageError
from shardctl.iteration.regrouped import Kept
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.order import NONE, Order, Origin
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.staged import PaddingNode, ReaderNode, StagedOrder
from shardctl.settings.short_form import settings_of_read, stages_of
from shardctl.stages.pipelines import parts_of, readers_of
from shardctl.stages.stages import ByData, FlatMap, GroupByWindow, Zip
from shardctl.tfds.imports import tensorflow, without_autograph
from shardctl.tfds.inspecting.graph import Operation
from shardctl.tfds.inspecting.reader import function_of, rows_of
from shardctl.tfds.inspecting.walk import range_of
from shardctl.tfds.training.edited_graph import EditedGraph, GraphNode, NotRebuildable
from shardctl.tfds.training.records import FEWER, NumberedReader, OtherReader, piece_size
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.resume.rest_of_epoch import rest_of_reading


def num_examples_of(order: Order) -> int | None:
    """Return how many examples an order has, None without end or where that is not known yet."""
    return None if order.is_endless else order.num_examples


def element_after(order: Order, consumed: int) -> int:
    """Return the element that comes after so many examples were yielded.

    Raises:
        UsageError: there are fewer, or the number ends within an element.
    """
    if consumed and order.dataset.file_format == POSITIONS and _zips(order):
        raise UsageError(
            f"consumed={consumed}: zip puts elements of several orders into one, which count "
            "as one to a script and as several here; give steps=N batches"
        )
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


def _zips(order: Order) -> bool:
    stages = order.stages if isinstance(order, StagedOrder) else None
    return stages is not None and any(isinstance(part, Zip) for part in parts_of(stages))


def width_of(order: Order, element: int) -> int:
    """Return how many examples an element holds."""
    return len(order.positions_in_step(element))


def num_examples_before(order: Order, element: int) -> int:
    """Return how many examples are yielded before an element."""
    return order.positions_in_step(element - 1).stop if element else 0


# In which batches a source is read, and which of its elements come out after each of them.
#
# A source is read in its own order, as tf.data reads files quickest; its elements are wanted in
# that of the pipeline. What is read before its turn is kept in a table until then, as a shuffle
# keeps it.


class Opening(NamedTuple):
    """A source is opened at the element `key`, and read up to `stop`; nothing where they are equal.

    After its last batch comes an empty one.
    """

    key: int
    stop: int


class Step(NamedTuple):
    """What becomes of one batch.

    Elements are numbered as they are read, those of the batch from `first` on.

    keys: the elements of the batch. num_kept: how many go into the table, all or none. yielded: the
    numbers of what comes out of the table then, in order. gone: of what leaves it before.
    num_direct: 1 if the batch comes out as it is, past the table.
    """

    keys: Int64s
    first: int
    num_kept: int
    yielded: Int64s
    gone: Int64s
    num_direct: int


@dataclass(kw_only=True, eq=False)
class ReadPlan:
    """How one source is read, planned for a stretch of the order at a time.

    size: elements in a batch. end: up to where an opening at a key reads. What is read in a stretch
    and wanted in neither that nor the next one is dropped; if it is wanted later, the source is
    opened again.
    """

    size: int
    end: Callable[[int], int]
    _at: int = field(init=False, default=0)  # what is open is read from here ..
    _stop: int = field(init=False, default=0)  # .. to here
    _is_open: bool = field(init=False, default=False)  # its last, empty batch is still to come
    _num_read: int = field(init=False, default=0)
    # The table: keys, ascending, and their numbers.
    _held: Int64s = field(init=False, default_factory=lambda: NONE)
    _numbers: Int64s = field(init=False, default_factory=lambda: NONE)
    _gone: Int64s = field(init=False, default_factory=lambda: NONE)

    def events(self, stretches: Iterable[Int64s]) -> Iterator[Opening | Step]:
        """Yield what is done for the keys that are wanted, in order, stretch by stretch."""
        wanted: Int64s | None = None
        for later in chain(stretches, [NONE]):
            if wanted is not None and len(wanted):
                yield from self._stretch(wanted, later)
            wanted = later

    def _stretch(self, wanted: Int64s, later: Int64s) -> Iterator[Opening | Step]:
        # Each key once, with how often it is wanted.
        every, counts = np.unique(np.concatenate([wanted, later]), return_counts=True)
        openings, batches = self._batches(np.setdiff1d(wanted, self._held))
        yield from openings
        first, sizes = self._num_read, np.array([stop - at for at, stop in batches])
        read = np.concatenate([np.arange(*batch) for batch in batches])
        self._num_read += len(read)
        # The batch that each element is read in, and how often it is wanted.
        batch_of = np.repeat(np.arange(len(batches)), sizes)
        place = np.minimum(np.searchsorted(every, read), len(every) - 1)
        uses = np.where(every[place] == read, counts[place], 0)
        # A stretch that opens a source twice may read an element twice: the first one counts.
        fresh = np.zeros(len(read), bool)
        fresh[np.unique(read, return_index=True)[1]] = True
        fresh &= (uses > 0) & ~np.isin(read, self._held)
        table = np.concatenate([self._held, read[fresh]])
        numbers = np.concatenate([self._numbers, first + np.flatnonzero(fresh)])
        since = np.concatenate([np.zeros(len(self._held), np.int64), batch_of[fresh]])
        by_key = np.argsort(table)
        table, numbers, since = table[by_key], numbers[by_key], since[by_key]
        where = np.searchsorted(table, wanted)
        yielded = numbers[where]
        # What is wanted waits for all that comes before it.
        after = np.maximum.accumulate(since[where])
        bounds = np.searchsorted(after, np.arange(len(batches) + 1))
        # The last use of each in this stretch; of equal indices the last assignment counts.
        last = np.zeros(len(table), np.int64)
        last[where] = after
        still = np.isin(table, later)
        done = np.flatnonzero(~still)
        done = done[np.argsort(last[done], kind="stable")]
        gone_bounds = np.searchsorted(last[done], np.arange(len(batches) + 1))
        start = 0
        for index, size in enumerate(sizes.tolist()):
            here, number = slice(start, start + size), first + start
            out = yielded[bounds[index] : bounds[index + 1]]
            is_direct = bool(
                size
                and len(out) == size
                and (uses[here] == 1).all()
                and (out == np.arange(number, number + size)).all()
            )
            is_kept = not is_direct and bool(fresh[here].any())
            yield Step(
                keys=read[here],
                first=number,
                num_kept=size * is_kept,
                yielded=NONE if is_direct else out,
                gone=self._gone,
                num_direct=int(is_direct),
            )
            self._gone = numbers[done[gone_bounds[index] : gone_bounds[index + 1]]]
            if is_kept:
                # What nobody wants was in the batch, too.
                unwanted = number + np.flatnonzero(~fresh[here])
                self._gone = np.concatenate([self._gone, unwanted])
            start += size
        self._held, self._numbers = table[still], numbers[still]

    def _batches(self, needed: Int64s) -> tuple[list[Opening], list[tuple[int, int]]]:
        """Return what is opened so that these keys (ascending) are read, and [start, stop) of each
        batch, at least one."""
        openings: list[Opening] = []
        batches: list[tuple[int, int]] = []

        def opened(key: int, stop: int) -> None:
            openings.append(Opening(key=key, stop=stop))
            self._at, self._stop, self._is_open = key, stop, True

        def read_to(until: int) -> None:
            while self._at < until:
                stop = min(self._at + self.size, self._stop)
                batches.append((self._at, stop))
                self._at = stop
            if self._is_open and self._at == self._stop:
                batches.append((self._at, self._at))
                self._is_open = False

        while len(needed):
            is_ahead = (needed >= self._at) & (needed < self._stop)
            if is_ahead.any():
                read_to(int(needed[is_ahead][-1]) + 1)
                needed = needed[~is_ahead]
            else:
                # What is open ends first; whatever it still has is not wanted.
                read_to(self._stop)
                key = int(needed[0])
                opened(key, self.end(key))
        if not batches:
            # All is in the table. A batch gives the occasion for it to come out.
            if not self._is_open:
                opened(self._at, self._at)
            read_to(min(self._at + 1, self._stop))
        return openings, batches


# The sources of a graph, read in their own order by tf.data itself.


@dataclass(frozen=True, kw_only=True, eq=False)
class FileSource:
    """What TFDS's reader yields before it decodes: serialized examples, and their tfds_ids.

    An element is known by the key that the order gives to the example. What is open is read as
    TFDS reads it: the files that are left, interleaved.
    """

    node: ReaderNode
    reader: NumberedReader
    is_endless: bool

    def end(self, key: int) -> int:
        """Return where what is opened at a key ends: with the reading of the files."""
        number, position = self._place(key)
        iterations, size = self.node.iterations, self._reading(key).num_examples
        # A pipeline without end is followed as far as was asked: only where its next reading has
        # begun, this one is over.
        if not self.is_endless or any(one.pulled for one in iterations[number + 1 : number + 2]):
            size = min(size, iterations[number].pulled)
        return key + max(size - position, 1)

    def rows(self, opening: Opening) -> tuple[Any, ...]:
        """Return what `opened` takes, as arrays."""
        reads, (_, position) = self.node.reader.reads, self._place(opening.key)
        if opening.stop == opening.key:
            left = reads.select(slice(0, 0))
        else:
            left = rest_of_reading(reads, self._reading(opening.key), position)
        return (*map(np.asarray, self.reader.columns(left)), opening.stop - opening.key)

    @property
    def signature(self) -> tuple[Any, ...]:
        """The types of `rows`."""
        tf = tensorflow()
        kinds = (tf.string, tf.string, tf.int64, tf.int64, tf.int64)
        return (*(tf.TensorSpec([None], kind) for kind in kinds), tf.TensorSpec([], tf.int64))

    def opened(self, *rows: Any) -> Any:
        """Return the elements, each with its code before it."""
        *columns, count = rows
        files = tensorflow().data.Dataset.from_tensor_slices(tuple(columns))
        records = self.reader.interleaved(files)
        return records.take(count)

    @property
    def num_texts(self) -> int:
        """How many texts an element is."""
        return 1 + self.reader.with_ids

    def _place(self, key: int) -> tuple[int, int]:
        tickets, keys = self.node.tickets, np.array([key])
        return int(tickets.reading(keys)[0]), int(tickets.position(keys)[0])

    def _reading(self, key: int) -> EpochReading:
        number, position = self._place(key)
        return self.node.reading(number, stop=position + 1)

    def components(self, texts: Any) -> Any:
        """Return the elements of their texts."""
        return texts


@dataclass(frozen=True, kw_only=True, eq=False)
class OtherSource(FileSource):
    """What any other source yields: a reader of other files, or a node that reads none.

    Its components are texts while they wait for their turn. types: what they are, as TensorSpecs.
    """

    types: tuple[Any, ...]

    @property
    def num_texts(self) -> int:
        """How many texts an element is."""
        return len(self.types)

    def components(self, texts: Any) -> Any:
        """Return the elements of their texts."""
        tf = tensorflow()

        def parsed(*parts: Any) -> tuple[Any, ...]:
            return tuple(
                tf.ensure_shape(tf.io.parse_tensor(part, kind.dtype), kind.shape)
                for part, kind in zip(parts, self.types, strict=True)
            )

        return texts.map(without_autograph(parsed))


_MOST_BYTES, _AT_ONCE = 1 << 31, 256  # of a source that is read at once; elements looked up
_SKIPPED = ("TensorSliceDataset", "ListDataset")  # at once, to any element
_ORDER_BELOW = ("Shuffle", "Repeat", "Random", "Generator", "Shard", "Take", "Skip", "Filter")
_COUNTS = ("Batch", "batch", "Window")  # an element is no element of its source


def indexed(here: Operation) -> Any:
    """Return the dataset of a node whose elements are told by their index, as those of a range.

    Raises:
        NotRebuildable: what it reads has an order of its own, or is no plain tensor.
    """
    if not here.types or tensorflow().variant in (one.dtype for one in here.types):
        raise NotRebuildable(f"{here.op} yields what is no plain tensor")
    # One element that repeats is the same at each index.
    is_one = here.op in ("RepeatDataset", "ScanDataset")
    for below in () if is_one else here.graph.below(here.node):
        is_dataset = below.op.endswith("Dataset") or "DatasetV" in below.op
        if is_dataset and any(word in below.op for word in (*_ORDER_BELOW, *_COUNTS)):
            raise NotRebuildable(f"{here.op} reads what has an order of its own")
    return here.graph.dataset([here.node], here.types)


class NodeSource:
    """What a node of a graph yields in a fixed order, as `Dataset.range`; a key is its place there.

    Elements of padding are all alike.

    Raises:
        NotRebuildable: what it reads has an order of its own, or is no plain tensor.
    """

    def __init__(
        self, leaf: GraphNode, node: ReaderNode | PaddingNode, *, is_padding: bool = False
    ) -> None:
        here, self.node = leaf.operation, node
        # One element that repeats is the same at each index.
        self._is_one = here.op == "RepeatDataset" or is_padding
        self.dataset = indexed(here)
        kinds, shapes = [one.dtype for one in here.types], [one.shape for one in here.types]
        self._kind = kinds[0]
        # All elements as one batch; None where they are too many, or of several shapes.
        self._whole: tuple[Any, ...] | None = None
        # Numbers in steps are not read at all, since there may be very many.
        counts = here.op == "RangeDataset" and not self._is_one
        self._numbers = range_of(here) if counts else None
        if self._is_one:
            self._whole = self.dataset.take(1).batch(1).get_single_element()
        elif self._numbers is None and all(shape.is_fully_defined() for shape in shapes):
            size, of_one = int(self.dataset.cardinality()), zip(kinds, shapes, strict=True)
            width = sum((kind.size or 64) * shape.num_elements() for kind, shape in of_one)
            if 0 < size * width <= _MOST_BYTES:
                self._whole = self.dataset.batch(size).get_single_element()
        if self._whole is None and not counts and here.op not in _SKIPPED:
            raise NotRebuildable(f"{here.op} has no elements by their index")

    def chosen(self, keys: Any) -> Any:
        """Return the elements of a dataset of keys."""
        tf, whole, numbers = tensorflow(), self._whole, self._numbers
        if numbers is not None:
            return keys.map(
                without_autograph(
                    lambda key: (tf.cast(numbers.start + numbers.step * key, self._kind),)
                )
            )
        if whole is None:
            one = without_autograph(lambda key: self.dataset.skip(key).take(1))
            return keys.flat_map(one)

        def found(keys: Any) -> Any:
            return tuple(tf.gather(part, keys * (not self._is_one)) for part in whole)

        return keys.batch(_AT_ONCE).map(without_autograph(found)).unbatch()


Source = FileSource | NodeSource


# A dataset object beside the prediction of its elements, and these made from its examples.


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
    elements: Order

    @classmethod
    def of(cls, dataset: Any, inspection: Inspection, pass_index: int) -> OwnElements:
        """Return the elements of a pass of a dataset object that was inspected.

        Raises:
            UnpredictableOrderError: a stage leaves their order open.
        """
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
        return Rest(self, start)

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
            if here.op.endswith(
                ("MapDataset", "MapAndBatchDataset", "InterleaveDataset", "V2", "V4")
            )
            # Of TFDS's Parquet files Python reads the records alone.
            and getattr(function_of(here), "file_format", None) != "parquet"
            for op in here.graph.ops_in_functions(here.node)
        }
        return {
            op for op in ops if any(part in op for part in parts) and not op.startswith("Stateless")
        }

    @cached_property
    def _edited(self) -> EditedGraph:
        scanned = self._scanned(FlatMap)
        if any(kept.by != "lengths" for kept in scanned):
            raise NotRebuildable("flat_map makes several elements of one example")
        edited = EditedGraph(self.dataset, packs=bool(scanned))
        if edited.num_packers != len(scanned):
            raise NotRebuildable("unbatch takes apart what maps have made of batches")
        return edited

    def _scanned(self, kind: type[ByData]) -> list[Kept]:
        """Return what stages of a kind do to each example."""
        codes = getattr(self.elements, "codes", None)
        stages = parts_of(stages_of(self.elements.settings))
        found = (stage for stage in stages if isinstance(stage, kind) and stage.kept)
        return [provided("kept")(stage.name, stage.kept, codes) for stage in found]

    def _sources(self, keyed: StagedOrder) -> list[Source]:
        num_sources = self._edited.num_sources
        # A mismatch means that one object is read twice, or that something counts elements on its
        # way.
        if num_sources != (len(self.elements.sources) or 1):
            raise NotRebuildable("its sources are shared, or count what passes")
        return [self._source(leaf, keyed) for leaf in self._edited.root.leaves]

    def _source(self, leaf: GraphNode, order: StagedOrder) -> Source:
        here, node = leaf.operation, order.nodes[leaf.source or 0]
        if isinstance(node, PaddingNode):
            return NodeSource(leaf, node, is_padding=True)
        settings, types = node.reader.settings, here.types
        how: dict[str, Any] = {
            "codes": order.codes,
            "cycle": settings.cycle_length(ordered=node.reader.dataset.ordered),
            "block": settings.block,
        }
        function, string = function_of(here), tensorflow().string
        # TFDS's reader yields a record, or a record and its id, before it decodes.
        is_record = len(types) < 3 and {one.dtype for one in types} == {string}
        if function is not None and function.opened is None and is_record:
            reader = NumberedReader(
                **how, with_ids=len(types) == 2, file_format=function.file_format
            )
            return FileSource(node=node, reader=reader, is_endless=order.is_endless)
        if function is not None:
            made = _opener(here) if here.inputs else function.opened
            assert made is not None
            other = OtherReader(**how, made=made, skips=function.skips)
        else:
            with contextlib.suppress(NotRebuildable):
                return NodeSource(leaf, node)
            # What is opened is the whole, whatever the file: of several it would be read again.
            if len(node.reader.given) > 1:
                raise NotRebuildable(f"{here.op} reads several files in one go")
            # Captured where it is opened: within a function TensorFlow would fold it to a constant.
            elements = indexed(here)
            other = OtherReader(**how, made=lambda path: elements)
        return OtherSource(node=node, reader=other, is_endless=order.is_endless, types=types)

    @property
    def _stretch(self) -> int:
        """Examples for which reading is planned at a time: what is read comes out within two."""
        whole = num_examples_of(self.elements) or self.elements.num_steps or 0
        # A whole-dataset buffer counts as the number of examples.
        sizes = self._edited.buffer_sizes()
        held = sum(whole if size == WHOLE_DATASET else size * width for size, width in sizes)
        # After 16 times the size of a buffer one of 10 million examples is still in it.
        return min(max(_STRETCH, 16 * held), _MAX_STRETCH)


def _opener(here: Operation) -> Callable[[Any], Any]:
    """Return what makes the elements of a file, given its path, as the reader's own function does.

    Raises:
        NotRebuildable: that takes more than the path.
    """
    if len(rows_of(here.input).columns) != 1:
        raise NotRebuildable(f"{here.op} reads files in a way of its own")
    tf = tensorflow()
    of_path = EditedGraph(top=here.mapped("f", tf.variant), leaf=here.input)
    elements = without_autograph(lambda one: tf.data.experimental.from_variant(one, here.types))
    return lambda path: of_path.applied([tf.data.Dataset.from_tensors(path)], []).flat_map(elements)


def _keyed(elements: Order) -> StagedOrder:
    """Return the same order, asked for keys: which reading an example is of, and where in it."""
    if not isinstance(elements, ReaderOrder):
        assert isinstance(elements, StagedOrder)
        return elements
    (read,) = readers_of(stages_of(elements.settings))
    own = replace(settings_of_read(elements.settings, read), pass_index=0, loop="python")
    if own.host_mode.reads_all:
        own = replace(own, host=None)  # a stage shares what is read
    return StagedOrder(
        elements.dataset,
        {read: ReaderOrder(elements.dataset, elements.ranges, own)},
        elements.settings,
        origins={read: Origin(name="", dataset=elements.dataset, spec="")},
    )


# What a dataset object yields from some element on, made by its own maps and batches.

_STRETCH, _MAX_STRETCH = 1 << 13, 1 << 21
_GROUPS = 1 << 10  # elements of one, where they are groups
_LONGEST = 1 << 20  # elements of a section, of which all but the last are full


class Rest:
    """The elements of a pass from `start` on, each made of the predicted examples.

    keyed: the order by the keys of its sources. stretch: examples that are planned at a time.
    groups: what the stages that group do to each example.
    """

    def __init__(self, own: OwnElements, start: int) -> None:
        self.elements, self.start = own.elements, start
        self.keyed, self.edited = _keyed(own.elements), own._edited
        self.sources, self.stretch = own._sources(self.keyed), own._stretch
        self.groups = own._scanned(GroupByWindow)
        # Reentrant, and never held while something is yielded: another thread asks for the next.
        self._lock = threading.RLock()
        # What was looked up last: every leaf and every mixture asks for the same stretches.
        self._latest: dict[tuple[int, int], Int64s] = {}

    def dataset(self) -> Any:
        """Return the `tf.data.Dataset`; it may be iterated again, from `start`."""
        end_iterators_at_exit()
        tf = tensorflow()
        bounds = tf.TensorSpec([2], tf.int64)
        sections = tf.data.Dataset.from_generator(self.sections, output_signature=bounds)
        return sections.flat_map(without_autograph(self._made))

    def sections(self) -> Iterator[Int64s]:
        """Yield [start, stop) of elements that are formed in one go.

        A batch that is not full ends its section, since batches are formed anew in each.
        """
        full, at = self.edited.full_width, self.start
        before = partial(num_examples_before, self.elements)
        # An order without end is followed as far as it is asked for: not far for the first element.
        longest = max(self.stretch // full, 1) if self.elements.is_endless else _LONGEST
        while True:
            with self._lock:
                most = self.elements.steps_up_to(at + longest)
                if most <= at:
                    return
                if self.edited.is_formed:
                    most = self._formed(at, most)
                first = before(at)
                # The number of elements before the first that is not full.
                stop = bisect_right(
                    range(at, most),
                    0,
                    key=lambda last: before(last + 1) - first != full * (last + 1 - at),
                )
                stop = most if self.edited.is_formed else min(at + stop + 1, most)
            yield np.array([at, stop], np.int64)
            at, longest = stop, min(2 * longest, _LONGEST)

    def _formed(self, start: int, stop: int) -> int:
        """Return where elements end that are formed together: groups that are full, and one more.

        A full group comes out of its stage when it is complete; any other, and a packed row, is
        formed alone.
        """
        if self.edited.num_packers or len(self.groups) != 1:
            return start + 1
        windows, stop = self.groups[0].windows, min(stop, start + _GROUPS)
        _, codes, widths = self.elements.examples_in_steps(start, stop)
        keys = self.groups[0].values(codes[np.cumsum(widths) - widths]).tolist()
        groups = enumerate(zip(keys, widths.tolist(), strict=True))
        ends = (at for at, (key, width) in groups if windows[key] != (width, width))
        return min(start + next(ends, _GROUPS) + 1, stop)

    def _made(self, bounds: Any) -> Any:
        tf = tensorflow()
        leaves = [self._leaf(number, bounds) for number in range(len(self.sources))]
        choices = [
            self._numbers(partial(self._choices, merged), bounds) for merged in self.edited.merges
        ]
        made = self.edited.applied(leaves, choices)
        # A section yields exactly its elements, or tf.data fails: a wrong count is never silent.
        return made.apply(tf.data.experimental.assert_cardinality(bounds[1] - bounds[0]))

    def _numbers(self, pieces: Callable[[int, int], Iterator[Int64s]], bounds: Any) -> Any:
        """Return a dataset of the numbers that a function of [start, stop) yields in pieces."""
        tf = tensorflow()
        found = tf.data.Dataset.from_generator(
            lambda start, stop: pieces(int(start), int(stop)),
            output_signature=tf.TensorSpec([None], tf.int64),
            args=(bounds[0], bounds[1]),
        )
        return found.unbatch()

    def _leaf(self, number: int, bounds: Any) -> Any:
        """Return the elements of a leaf in a section, in the order in which they are wanted."""
        source = self.sources[number]
        keys_of = partial(self._keys_of, self.edited.root.leaves[number].source or 0)
        if isinstance(source, NodeSource):
            indices_of = source.node.tickets.position
            return source.chosen(self._numbers(lambda *of: map(indices_of, keys_of(*of)), bounds))
        return self._read(source, keys_of, bounds)

    def _read(
        self, source: FileSource, keys_of: Callable[[int, int], Iterator[Int64s]], bounds: Any
    ) -> Any:
        """Return the records of files, read as TFDS reads them."""
        tf, ops = tensorflow(), tensorflow().raw_ops
        sets, size = tf.data.Dataset, piece_size(source.node.reader.dataset)

        def planned(kind: Any, start: Any, stop: Any) -> Iterator[Any]:
            # Two generators plan the same: one for what is opened, the other for its batches.
            events = ReadPlan(size=size, end=source.end).events(keys_of(int(start), int(stop)))
            while True:
                with self._lock:
                    event = next(events, None)
                    if event is None:
                        return
                    if not isinstance(event, kind):
                        continue
                    if isinstance(event, Opening):
                        found = source.rows(event)
                    else:
                        # The numbers that elements have where they are read.
                        found = source.node.codes_of(event.keys), *event[1:]
                yield found

        def of_plan(kind: Any, signature: Any) -> Any:
            return sets.from_generator(
                lambda *bounds: planned(kind, *bounds),
                output_signature=signature,
                args=(bounds[0], bounds[1]),
            )

        numbers, one = tf.TensorSpec([None], tf.int64), tf.TensorSpec([], tf.int64)
        steps = of_plan(Step, (numbers, one, one, numbers, numbers, one))
        kinds = tf.int64, *[tf.string] * source.num_texts
        nothing = sets.from_tensors(tuple(tf.zeros([0], kind) for kind in kinds))
        batches = of_plan(Opening, source.signature).flat_map(
            without_autograph(lambda *rows: source.opened(*rows).batch(size).concatenate(nothing))
        )
        # Tables without a name belong to this iterator alone, and go with it.
        tables = [
            ops.AnonymousMutableHashTable(key_dtype=tf.int64, value_dtype=tf.string)
            for _ in range(source.num_texts)
        ]

        def step(batch: Any, planned: Any) -> Any:
            codes, *texts = batch
            expected, first, num_kept, yielded, gone, num_direct = planned
            # What is read is what was planned, or tf.data fails.
            # `Equal` fails, in words of its own, where sizes differ.
            some = tf.minimum(tf.size(codes), tf.size(expected))
            same = tf.reduce_all(tf.equal(codes[:some], expected[:some]))
            same &= tf.size(codes) == tf.size(expected)
            with tf.control_dependencies([tf.debugging.Assert(same, [FEWER])]):
                done = [ops.LookupTableRemoveV2(table_handle=t, keys=gone) for t in tables]
            kept = tf.range(first, first + num_kept)
            with tf.control_dependencies(done):
                done = [
                    ops.LookupTableInsertV2(table_handle=table, keys=kept, values=text[:num_kept])
                    for table, text in zip(tables, texts, strict=True)
                ]
            with tf.control_dependencies(done):
                yielded = tf.identity(yielded)

            def found(numbers: Any) -> Any:
                return tuple(
                    ops.LookupTableFindV2(table_handle=table, keys=numbers, default_value="")
                    for table in tables
                )

            # A batch that comes out as it was read is not copied.
            direct = sets.from_tensors(tuple(texts)).take(num_direct)
            looked_up = sets.from_tensor_slices(yielded).batch(size).map(without_autograph(found))
            return direct.concatenate(looked_up)

        read = sets.zip((batches.prefetch(2), steps)).flat_map(without_autograph(step))
        return source.components(read.prefetch(1).unbatch())

    def _keys_of(self, source: int, start: int, stop: int) -> Iterator[Int64s]:
        for keys, sources in self._stretches(start, stop):
            yield keys[sources == source]

    def _choices(self, merged: GraphNode, start: int, stop: int) -> Iterator[Int64s]:
        for _, sources in self._stretches(start, stop):
            yield self.edited.choices(merged, sources)

    def _stretches(self, start: int, stop: int) -> Iterator[tuple[Int64s, Int64s]]:
        """Yield the keys of the examples of elements, and the source of each, piece by piece."""
        size = max(1, self.stretch // self.edited.full_width)
        before = partial(num_examples_before, self.elements)
        for bounds in spans(start, stop, size):
            with self._lock:
                if bounds not in self._latest:
                    for old in [*self._latest][:-4]:
                        del self._latest[old]
                    self._latest[bounds] = self.keyed.keys(*map(before, bounds))
                keys = self._latest[bounds]
            yield keys, self.keyed.sources_of(keys)


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
