"""TFDS's reader as the source of a pipeline with stages: each iterator reads the files once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from shardctl.base.arrays import Int64s, groups_of
from shardctl.errors import UsageError
from shardctl.iteration.iteration import UNKNOWN, Leaf, Node, Source, SourceIteration
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.example_codes import RowLookup
from shardctl.order.order import NONE
from shardctl.order.reader_order import ReaderOrder
from shardctl.tfdata.shuffle_buffer import shuffled_in_turn
from shardctl.tfdata.shuffle_seeds import ScriptSeeds, SeedGenerator, TakenSeeds

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
        query, rows, offsets = self._lookup.rows_of(codes)
        which, positions = self.reading(number, stop=pulled).positions(rows, offsets)
        # An iterator that was stopped early yielded only its first `pulled` positions.
        kept = np.flatnonzero(positions < pulled)
        return query[which[kept]], positions[kept] + self.tickets.first(number)

    @cached_property
    def _lookup(self) -> RowLookup:
        reads = self.reader.reads
        return RowLookup(reads, self.reader.codes.first_codes(reads))

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
