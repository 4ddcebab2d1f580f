"""The order of a pipeline with stages as a script has them, also of mixtures of several readers.

It is followed in counts, as tf.data would run it (`iteration/`), not in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, groups_of
from shardctl.base.by_name import provided
from shardctl.base.tfds_rules import INT64_MAX, POSITIONS, WHOLE_DATASET
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.iteration.build import build, iteration_of_pass
from shardctl.iteration.iteration import EVERYTHING, UNKNOWN, Leaf, Node, Source, SourceIteration
from shardctl.iteration.regrouped import Kept
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import (
    CHUNK_SIZE,
    ENDLESS,
    MAX_POSITIONS,
    NONE,
    Order,
    Origin,
    Over,
    ignore,
)
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import stages_of
from shardctl.spec.reads import joined
from shardctl.stages.pipelines import extent, parts_of, readers_of, sources_of
from shardctl.stages.stages import (
    ByData,
    FlatMap,
    GroupByWindow,
    Padding,
    Pipeline,
    Read,
    Repeat,
    SampleFromDatasets,
    Shuffle,
)
from shardctl.tfdata.shuffle_buffer import shuffled_in_turn
from shardctl.tfdata.shuffle_seeds import ScriptSeeds, SeedGenerator, TakenSeeds

_FAR, _MOST_TIMES = 1 << 32, 1 << 20  # elements, and repetitions, that are not followed
_AT_ONCE = 1 << 22  # elements that are pulled between two reports


class StagedOrder(Order):
    """Every example of one pass over a pipeline with stages, from 0, batches taken apart.

    `readers` are the orders of one epoch of what each reader of the stages reads, all over the
    splits of `dataset`. The epoch of an example is which reading of its source it comes from,
    counted in this pass from 0; what a cache yields again counts as read again. A step is an
    element of the pipeline, where elements are batches.

    A pipeline without end is followed as far as it is asked about; `num_examples` is then no more
    than a bound of that. `origins` say what each reader reads, `advance` is called as elements
    are counted.

    Raises:
        UnpredictableOrderError: a stage makes the order nondeterministic; the text names it.
        UsageError: what TensorFlow refuses as well; the text names the stage.
    """

    continued_by = "shardctl.tfds"
    why_empty = "--stages leave nothing of what is read"
    why_no_steps = "--step: the --stages make no batches; a step is a batch"

    def __init__(
        self,
        dataset: Dataset,
        readers: Mapping[Read, ReaderOrder],
        settings: ReadSettings,
        *,
        origins: Mapping[Read, Origin],
        advance: Callable[[int], None] | None = None,
    ) -> None:
        self.stages = stages_of(settings)
        self.dataset = dataset
        self.settings = settings
        reads = readers_of(self.stages)
        self.origins = dict(origins)
        sources = [*sources_of(self.stages)]
        names = (origins[one].name if isinstance(one, Read) else one.name for one in sources)
        self.sources = tuple(names)
        self.readers = dict(readers)
        # In the order in which the stages mention them: that is the numbering of `sources` and of
        # keys.
        orders = [readers[read] for read in reads]
        self._orders = orders
        self.ranges = tuple(piece for order in orders for piece in order.ranges)
        # All readers index the splits of the whole dataset; their copies of it differ in `ordered`
        # alone, so one `files` for all lets their columns be joined.
        given = [replace(order.given, files=dataset) for order in orders]
        splits = [piece.split.name for piece in self.ranges]
        self.codes = ExampleCodes(dataset, splits, *given, pads=len(sources) > len(reads))
        # One numbering for all readers: a code names an example of any of them.
        for order in orders:
            order.codes = self.codes
        # What all readers are given, one after the other.
        self.given = joined(given)
        self.reads = joined([replace(order.reads, files=dataset) for order in orders])
        self._seeds = ScriptSeeds(settings.global_seed)
        self.nodes: list[ReaderNode | PaddingNode] = []
        # Building has side effects on `_seeds`: each stage without a seed draws one, in the order
        # in which a script would build the stages.
        self._node = build(self.stages, self._source_node, seeds=self._seeds, kept=self._kept)
        self.is_endless = self._node.is_infinite or self._ends_far_off
        # One reader reads, and nothing behind a repeat mixes its epochs.
        stages = self.stages.stages
        repeat = next((i for i, one in enumerate(stages) if isinstance(one, Repeat)), len(stages))
        mixes = any(isinstance(one, Shuffle | GroupByWindow) for one in stages[repeat:])
        is_one = len(self.sources) == 1 and isinstance(self.stages.source, Read)
        self.has_epochs = is_one and not mixes
        self._root = iteration_of_pass(self._node, settings.pass_index, loop=settings.loop)
        # An order with an end is followed once to its end, in counts only: no example is listed.
        if not self.is_endless:
            at_once = EVERYTHING if advance is None else _AT_ONCE
            # `pull` returns fewer than asked for at the end.
            while self._root.pull(at_once) == at_once:
                (advance or ignore)(at_once)
            if self._root.num_examples > INT64_MAX:
                raise UsageError(f"the pipeline has more than {INT64_MAX} examples")
        # Without an end there is but a bound of what can be asked for.
        self.num_examples = ENDLESS if self.is_endless else self._root.num_examples
        self.shuffles = any(order.shuffles for order in orders) or any(
            isinstance(part, SampleFromDatasets) or (isinstance(part, Shuffle) and part.buffer != 1)
            for part in parts_of(self.stages)
        )
        # More than 0 means that an assumption about the script's other random ops must be stated.
        self.num_drawn_seeds = self._seeds.op_index
        self._root.check()

    def _source_node(self, source: Read | Padding) -> ReaderNode | PaddingNode:
        keys = {"reader": len(self.nodes), "num_readers": len(self.sources)}
        node: ReaderNode | PaddingNode
        if isinstance(source, Padding):
            tickets = ElementKeys(size=source.count, **keys)
            node = PaddingNode(tickets, source.count, self.codes.num_codes - 1)
        else:
            order = self.readers[source]
            size = None if order.settings.repeat_files else order.epoch_size
            tickets, known = ElementKeys(size=size, **keys), source.has_cardinality
            node = ReaderNode(order, tickets, self._seeds, has_cardinality=known)
        self.nodes.append(node)
        return node

    def _kept(self, stage: ByData) -> Kept:
        """Return what a stage does to the examples of tickets, by its file."""
        kept: Kept = provided("kept")(stage.name, stage.kept, self.codes)
        return replace(kept, values=lambda tickets: kept.values(self._codes(tickets)))

    @property
    def _ends_far_off(self) -> bool:
        """Whether elements of sources without files have an end to which nobody follows them."""
        if self.dataset.file_format != POSITIONS:
            return False
        repeats = (part.count or 0 for part in parts_of(self.stages) if isinstance(part, Repeat))
        node, sizes = self._node, {read: one.epoch_size for read, one in self.readers.items()}
        most: float = node.num_elements
        if not node.is_counted:
            # What may repeat without end is bounded by its sources alone.
            most = min(extent(self.stages, sizes)[0], max(sizes.values()))
        return most > _FAR or max(repeats, default=0) > _MOST_TIMES

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on although no setting states it, of all readers."""
        return tuple(dict.fromkeys(text for one in self._orders for text in one.assumptions))

    @cached_property
    def epoch_size(self) -> int:  # type: ignore[override]  # counted when it is asked for
        """Number of examples of an epoch: what comes to the first repeat in the row of stages.

        Of mixtures it is what all readers read at once; no more than the order has.
        """
        if any(isinstance(part, FlatMap) for part in parts_of(self.stages)):
            # Elements of one example count each.
            return -(-self.num_examples // max(self.num_epochs or 1, 1))
        most = min(sum(order.epoch_size for order in self._orders), self.num_examples)
        node = self._unrepeated
        if node is None or node.is_infinite:
            return most
        # A separate pipeline with separate seeds: counting must not take seeds from the real
        # one.
        root = node.iterate()
        root.pull(EVERYTHING)
        return min(most, root.num_examples)

    @property
    def _unrepeated(self) -> Node | None:
        """The stages of one reader up to the first repeat as a node, None where that is unknown."""
        source, stages = self.stages.source, self.stages.stages
        repeat = next((i for i, s in enumerate(stages) if isinstance(s, Repeat)), None)
        if repeat is None or not isinstance(source, Read) or len(self.sources) > 1:
            return None
        if any(isinstance(stage, ByData) for stage in stages[:repeat]):
            return None
        seeds = ScriptSeeds(self.settings.global_seed)

        def reader(read: Read) -> ReaderNode:
            return ReaderNode(self.readers[read], self.nodes[0].tickets, seeds)

        pipeline = Pipeline(source=source, stages=stages[:repeat])
        return build(pipeline, reader, seeds=seeds)

    @property
    def num_buffered(self) -> int | None:
        """Size of the largest shuffle buffer in the row of stages, None without one."""
        sizes = [stage.buffer for stage in self.stages.stages if type(stage) is Shuffle]
        if WHOLE_DATASET in sizes:
            return max(1, self.epoch_size)
        return max(sizes, default=None)

    @property
    def num_epochs(self) -> int | None:
        """Number of readings of one source in the pass, None without end."""
        return None if self.is_endless else self._root.num_readings

    def _chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        return map(self._codes, self._tickets(start, stop))

    def _tickets(self, start: int, stop: int) -> Iterator[Int64s]:
        self._reach(stop)
        for piece in self._root.codes_between(start, stop):
            for begin in range(0, len(piece), CHUNK_SIZE):
                yield piece[begin : begin + CHUNK_SIZE]

    def keys(self, start: int, stop: int) -> Int64s:
        """Return the keys of the examples at positions: the reader, which reading, and where."""
        return np.concatenate([NONE, *self._tickets(start, stop)])

    def sources_of(self, keys: Int64s) -> Int64s:
        """Return which of `sources` keys are of."""
        return self.nodes[0].tickets.readers(keys)

    def _codes_at(self, positions: Int64s) -> Int64s:
        self._reach(int(positions.max()) + 1)
        return self._codes(self._root.codes_at(positions))

    def _found(self, codes: Int64s, over: Over) -> Iterator[tuple[Int64s, Int64s]]:
        if self.is_endless:
            raise UsageError(
                "the pipeline has no end, so an example comes again and again; end it with a "
                "stage, as in 'repeat | take(10_000)', or ask for positions"
            )
        nodes = self.nodes
        # Iterators that were made but never read yield nothing, such as the last one of a repeat.
        readings = [(node, one.number) for node in nodes for one in node.iterations if one.pulled]
        if len(readings) * len(codes) > MAX_POSITIONS:
            raise UsageError(
                f"{len(codes)} examples in {len(readings)} readings have more than "
                f"{MAX_POSITIONS} positions; ask for fewer"
            )
        found = [(NONE, NONE)]
        for node, number in (readings[place] for place in over(range(len(readings)))):
            found.append(node.tickets_of(number, codes))
        queries, tickets = (np.concatenate(column) for column in zip(*found, strict=True))
        # Keys make positions without reading: each node computes where it puts what it gets.
        which, position = self._root.places_of(tickets)
        return iter([(queries[which], position)])

    def _epochs_at(self, positions: Int64s) -> Int64s:
        self._reach(int(positions.max()) + 1)
        return self._root.readings_at(positions)

    @checked
    def consumed(self, stop: int, advance: Callable[[int], None] = ignore) -> list[int]:
        """Return how many of the first `stop` examples come from each of `sources`."""
        self._check_range(0, stop)
        counts = np.zeros(len(self.sources), np.int64)
        for tickets in self._tickets(0, stop) if stop else ():
            advance(len(tickets))
            sources = self.sources_of(tickets)
            counts += np.bincount(sources, minlength=len(counts))
        return [int(count) for count in counts]

    @property
    def has_second_epoch(self) -> bool:
        """Whether the pass has as many examples again as its first epoch."""
        return self.num_examples >= 2 * self.epoch_size

    @property
    def batch_size(self) -> int | None:
        """Number of examples in the first batch, None where elements are examples."""
        if not self.has_steps or self.num_steps == 0:
            return None
        return len(self.positions_in_step(0))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes of the batches around an example, outermost first; None for tuples."""
        axes = self._node.shape
        return tuple(axis.size for axis in axes) if all(axis.is_batch for axis in axes) else None

    @property
    def has_steps(self) -> bool:
        """Whether elements are batches, or hold several examples."""
        return bool(self._node.shape) or self._root.width != 1

    @property
    def num_steps(self) -> int | None:
        """Number of elements of the pass, None without end."""
        return None if self.is_endless else self._root.pulled

    def _steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        self._reach(int(positions.max()) + 1)
        return self._root.at(positions)

    def _in_step(self, step: int) -> range:
        if self.is_endless and step >= self._root.pulled:
            self._root.pull(step + 1 - self._root.pulled)
            self._root.check()
        start, stop = self._root.before(np.array([step, step + 1])).tolist()
        return range(start, stop)

    @checked
    def steps_up_to(self, stop: int) -> int:
        """Return `stop`, or how many elements there are where those are fewer."""
        self._check_count(stop)
        root = self._root
        if self.is_endless and root.pulled < stop:
            root.pull(stop - root.pulled)
            root.check()
        return min(stop, root.pulled)

    @checked
    def examples_in_steps(self, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which of `sources`, code) of the examples of elements [start, stop).

        And how many each element has, int64[stop - start].
        """
        self._check_count(start, stop)
        tickets = np.concatenate([NONE, *self._root.chunks(start, self.steps_up_to(stop))])
        sources = self.sources_of(tickets)
        return sources, self._codes(tickets), self._root.widths(np.arange(start, stop))

    def _reach(self, stop: int) -> None:
        """Follow a pipeline without end until it has yielded so many examples."""
        root = self._root
        if not self.is_endless or root.num_examples >= stop:
            return
        # Where widths vary, the largest possible one, so that no element too many is pulled.
        most = max(1, int(np.prod([axis.size for axis in self._node.shape])))
        while root.num_examples < stop:
            # So many whole elements at once; a width that is too large only takes more rounds.
            width = root.width or most
            if not root.pull(max(1, (stop - root.num_examples) // width)):
                raise UsageError(
                    f"position {stop - 1}: the pipeline yields {root.num_examples} examples"
                )
        root.check()

    def _codes(self, tickets: Int64s) -> Int64s:
        """Return the codes of the examples with these tickets, int64[q]."""
        if len(self.nodes) == 1:
            return self.nodes[0].codes_of(tickets)
        readers = self.sources_of(tickets)
        codes = np.empty_like(tickets)
        for index, here in groups_of(readers):
            codes[here] = self.nodes[index].codes_of(tickets[here])
        return codes

    def forget_readings(self) -> None:
        """Give back the memory of the readings; they are built anew when they are asked for."""
        for node in self.nodes:
            node.forget()


# TFDS's reader as the source of a pipeline with stages: each iterator reads the files once.

# ElementKeys: one int64 that says which reader an example comes from, in which reading, and where.
#
# Nodes of a pipeline pass them on as they are. So an example is known by how it was read, and what
# it is called is looked up at the end, for all of a reading at once.

_TICKET_BITS = 63
_READING_BITS = 20  # each reading is an iterator with seeds of its own, a kilobyte
_ENDLESS = 42  # bits for the positions of a reading without end


class ElementKeys:
    """How the bits of one reader's element keys, called tickets in the code, are shared out.

    Its number among all readers is in the topmost bits, the position in a reading in the lowest,
    and the number of the reading between the two.

    >>> tickets = ElementKeys(size=1000, reader=1, num_readers=2)
    >>> made = tickets.first(3) + 41
    >>> tickets.position(made), tickets.reading(made), tickets.readers(made)
    (41, 3, 1)
    """

    def __init__(self, *, size: int | None, reader: int, num_readers: int) -> None:
        """Share the bits for `size` examples, None where they have no end."""
        # From the top: reader | reading | position. 63 bits, since the sign bit must stay 0.
        self._reader_shift = _TICKET_BITS - (num_readers - 1).bit_length()
        self._position_bits = _ENDLESS if size is None else max(size - 1, 0).bit_length()
        # What reader and position leave is for the number of the reading; 20 bits of it are enough.
        bits = max(self._reader_shift - self._position_bits, 0)
        self._readings = 1 << min(bits, _READING_BITS)
        self._base = reader << self._reader_shift

    def first(self, reading: int) -> int:
        """Return the ticket at position 0 of a reading.

        Raises:
            UsageError: there are more readings than the bits for them can count.
        """
        if reading >= self._readings:
            raise UsageError(
                f"a pipeline that reads a dataset {reading:,} times and more is not followed; "
                "repeat it less often"
            )
        return self._base + (reading << self._position_bits)

    def position(self, tickets: Int64s) -> Int64s:
        """Return the positions in their readings, int64[q]."""
        return tickets & ((1 << self._position_bits) - 1)

    def reading(self, tickets: Int64s) -> Int64s:
        """Return the numbers of the readings, int64[q]."""
        return (tickets >> self._position_bits) & (self._readings - 1)

    def readers(self, tickets: Int64s) -> Int64s:
        """Return the number of the reader of each, int64[q]; also of tickets of the others."""
        return tickets >> self._reader_shift


_ALL = 1 << 62  # positions of a reading without end
_MOST_READINGS, _MOST_KEPT = 8, 1 << 21  # that are kept whole, and codes of one of these
_TIMES_NEARER = 16  # positions that are looked up one by one in the time in which one is read


class ReaderNode(Node):
    """What `builder.as_dataset` returns, of which every iterator reads the files anew.

    `reader` is the order of one epoch of the spec on its own. An iterator takes the next pair of
    seeds of the file shuffle when it is made, whether or not it is read: the shuffle is the first
    from the top below the interleave (TFDS core/reader.py, _read_files). With `repeat_files` an
    iterator takes a pair for each time the files are listed, of which threads may take some ahead,
    so that only the first iterator is certain.

    has_cardinality: whether TFDS asserts it, as it does by itself.
    """

    has_prefetch = True

    def __init__(
        self,
        reader: ReaderOrder,
        tickets: ElementKeys,
        seeds: ScriptSeeds,
        *,
        has_cardinality: bool = True,
    ) -> None:
        self.reader = reader
        self._has_cardinality = has_cardinality
        self.tickets = tickets
        # Every iterator ever made stays known, since its keys must be looked up at the end.
        self.iterations: list[ReaderIteration] = []
        self._kept: dict[int, Int64s] = {}  # codes of whole readings, the latest last
        self._asked: dict[int, int] = {}  # how many codes of readings that are not kept
        self._listed: dict[tuple[int, int], EpochReading] = {}
        settings = reader.settings
        self.files: SeedGenerator | None = None
        if settings.shuffles_files:
            # The shuffle of one file is drawn a seed as well, though it changes nothing.
            kernel = seeds.kernel(settings.shuffle_seed)
            if len(reader.reads) > 1:
                stage = "TFDS's shuffle of the files"
                self.files = SeedGenerator(kernel, settings.reshuffle, stage=stage)
                # Only a generator that moves on outlives an iterator; a fixed one is the same for
                # all.
                self.lasting = () if self.files.is_fixed else (self.files,)

    @property
    def is_infinite(self) -> bool:
        """Whether the files repeat indefinitely."""
        return self.reader.settings.repeat_files and bool(self.reader.epoch_size)

    @property
    def cardinality(self) -> int:
        """The number that TFDS asserts."""
        return self.num_elements if self._has_cardinality else UNKNOWN

    def cardinality_of(self, counts: Sequence[int]) -> int:
        """Return the number of examples: none where TFDS knows less than the files do."""
        settings = self.reader.settings
        if settings.repeat_files or not (settings.host is None or settings.host_mode.knows_length):
            return UNKNOWN
        return self.reader.epoch_size

    @property
    def is_alike(self) -> bool:
        """Whether every reading has the same order."""
        return self.files is None or self.files.is_fixed

    def iterate(self) -> ReaderIteration:
        """Return a new iterator, which takes the next pair of the file shuffle."""
        # At once and not at the first read: tf.data makes the chain down to the first shuffle
        # eagerly.
        taken = None if self.files is None else self.files.take()
        if self.files is not None and self.is_infinite:
            self.files.make_uncertain()
        iteration = ReaderIteration(self, len(self.iterations), taken)
        self.iterations.append(iteration)
        return iteration

    def codes_at(self, number: int, positions: Int64s) -> Int64s:
        """Return the codes at positions of one reading, int64[q]."""
        if not len(positions):
            return positions
        # Three ways, by what they cost: a kept reading, single lookups, or a whole reading to keep.
        low, stop = int(positions.min()), int(positions.max()) + 1
        # Readings of one order share one entry.
        key = 0 if self.is_alike else number
        # Taken out and put back below, so that the dict is in the order of latest use.
        kept = self._kept.pop(key, NONE)
        if stop > len(kept):
            reading = self.reading(number, stop=stop)
            # What shuffles behind a reader asks for a window that moves on, and for a few far away.
            if self.is_infinite or reading.num_examples > _MOST_KEPT:
                if len(positions) * _TIMES_NEARER < stop - low:
                    return reading.codes_at(positions)
                return reading.codes(low, stop)[positions - low]
            # Single lookups until they have cost about as much as to read it whole, which is done
            # then.
            self._asked[key] = self._asked.get(key, 0) + len(positions)
            if self._asked[key] * _TIMES_NEARER < reading.num_examples:
                return reading.codes_at(positions)
            kept = reading.codes(0, reading.num_examples)
        while len(self._kept) >= _MOST_READINGS:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = kept
        return kept[positions]

    def codes_of(self, tickets: Int64s) -> Int64s:
        """Return the codes of the examples with these tickets of this reader, int64[q]."""
        if not len(tickets):
            return tickets
        positions = self.tickets.position(tickets)
        if self.is_alike:
            return self.codes_at(0, positions)
        numbers = self.tickets.reading(tickets)
        # Mostly a piece lies within one reading, and no grouping is needed.
        if (numbers == numbers[0]).all():
            return self.codes_at(int(numbers[0]), positions)
        codes = np.empty_like(positions)
        for number, here in groups_of(numbers):
            codes[here] = self.codes_at(number, positions[here])
        return codes

    def tickets_of(self, number: int, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, ticket), int64[r] each, for every time a reading yields a code.

        Of what is read without end only what was pulled counts.
        """
        pulled = self.iterations[number].pulled
        # query[which] is the code asked for, as in `LoaderOrder._found`.
        query, rows, offsets = self.reader.lookup.rows_of(codes)
        which, positions = self.reading(number, stop=pulled).positions(rows, offsets)
        # An iterator that was stopped early yielded only its first `pulled` positions.
        kept = np.flatnonzero(positions < pulled)
        return query[which[kept]], positions[kept] + self.tickets.first(number)

    def forget(self) -> None:
        """Give back the memory of the readings."""
        self._kept.clear()
        self._asked.clear()
        self._listed.clear()
        self.reader.forget_readings()

    def reading(self, number: int, *, stop: int | None = None) -> EpochReading:
        """Return the reading of the files by one iterator, up to `stop` where it has no end."""
        reader, taken = self.reader, self.iterations[number].taken
        count = len(reader.reads)

        # Where the files are not shuffled, or each time alike, no seeds were taken.
        def openings(repetitions: range) -> Int64s:
            if taken is None:
                return np.tile(np.arange(count), len(repetitions))
            _ = taken.seeds  # which says what they depend on, where nobody knows their number
            first = taken.index or 0
            listings = range(first + repetitions.start, first + repetitions.stop)
            return shuffled_in_turn(count, taken.generator.seeds_of_several(listings))

        if not self.is_infinite:
            return reader.reading_of(None if taken is None else openings(range(1)))
        # In powers of two, so that the next stretch seldom builds anew.
        repetitions = -(-(stop or 1) // reader.epoch_size)
        limit = reader.epoch_size << (repetitions - 1).bit_length()
        if (number, limit) not in self._listed:
            self._listed = {(number, limit): reader.listed_reading(limit, openings)}
        return self._listed[number, limit]


class PaddingNode(Source):
    """Elements of no dataset. Their keys are those of a reader of its own; all have one code."""

    def __init__(self, tickets: ElementKeys, count: int, code: int) -> None:
        super().__init__(range(tickets.first(0), tickets.first(0) + count))
        self.tickets, self._code = tickets, code
        self.iterations: list[PaddingIteration] = []

    def iterate(self) -> PaddingIteration:
        """Return a new iterator; all have the same keys, so that the first stands for them."""
        made = PaddingIteration(self.codes)
        self.iterations = self.iterations or [made]
        return made

    def tickets_of(self, number: int, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (which query, ticket), int64[r] each, of all padding."""
        asked = np.flatnonzero(codes == self._code)
        tickets = np.arange(len(self.codes)) + self.tickets.first(0)
        return np.repeat(asked, len(tickets)), np.tile(tickets, len(asked))

    def codes_of(self, tickets: Int64s) -> Int64s:
        """Return the code of padding for each of its tickets, int64[q]."""
        return np.full_like(tickets, self._code)

    def forget(self) -> None:
        """Do nothing: nothing is kept."""


class PaddingIteration(SourceIteration):
    """An iterator over padding, of which further readings are no epochs of anything."""

    number = num_readings = 0


class ReaderIteration(Leaf):
    """One reading of the files; an element is an example, and its code is a ticket.

    `taken` is what it shuffles the files with, None where all readings are alike.
    """

    def __init__(self, node: ReaderNode, number: int, taken: TakenSeeds | None) -> None:
        super().__init__(_ALL if node.is_infinite else node.reader.epoch_size)
        self.number, self.taken = number, taken
        self.first = node.tickets.first(number)

    def _codes(self, elements: Int64s) -> Int64s:
        return elements + self.first

    def elements_of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        elements = codes - self.first
        # Keys of other readings lie outside this range, since their upper bits differ.
        own = np.flatnonzero((elements >= 0) & (elements < self.pulled))
        return own, elements[own]

    def check(self) -> None:
        """Refuse what was read with seeds that depend on timing."""
        if self.taken is not None and self.pulled:
            _ = self.taken.seeds
