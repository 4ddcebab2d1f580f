"""The order of TFDS's reader, and of shard, shuffle, repeat and batch behind it, in closed form."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, groups_of
from shardctl.base.tfds_rules import INT64_MAX, WHOLE_DATASET
from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order import epoch_reading
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order, Over, check_answerable
from shardctl.settings.read_settings import ReadSettings, unstated_reading
from shardctl.spec.subsplit import SplitRange
from shardctl.tfdata.interleave import interleave_of
from shardctl.tfdata.shuffle_buffer import (
    ROOM,
    ShuffleReplay,
    permutations,
    shuffle_permutation,
    shuffled_codes,
    shuffled_in_turn,
)
from shardctl.tfdata.shuffle_seeds import KernelSeeds

# Beyond these a reading of its own is as quick, which answers for any number of examples.
_MOST_FILES = 1 << 13
_MOST_SLOTS = 1 << 8
_MOST_LOOKED_AT = 1 << 16  # files, once for each example
_FIRST = 16  # epochs that are looked at together, so that the first answer comes at once
_STEPS_AT_ONCE = 1 << 22  # of shuffle buffers that are followed before the next answers
_AT_ONCE = 1 << 16  # positions that are yielded together
_MANY_FILES = 1 << 20  # of more than so many files, one reading is kept
MAX_OPENED = 1 << 23  # files of a reading of files that repeat, some 200 bytes each


class ReaderOrder(Order):
    """Every position of one pass over TFDS's reader and the settings of the short form, from 0.

    The pipeline is TFDS's reader (sort function, file sharding, file shuffle, repeat, interleave),
    then `ds.shard`, `ds.shuffle`, `ds.repeat` and `ds.batch` as the settings have them
    (TFDS core/reader.py, _read_files).

    TFDS caches what is small, and a cache repeats its first pass; no order changes, since of files
    that are shuffled anew it caches one at most (TFDS core/dataset_builder.py, _should_cache_ds).

    With `repeat_files` the files repeat indefinitely; an epoch is as many examples as they hold. Of
    the stream without end, the order is `epochs` times as many.

    Raises:
        UnpredictableOrderError: with these settings the order is nondeterministic.
        UsageError: fewer files than hosts of `InputContext`, a bad list of files, TFDS's guard.

    >>> from shardctl.dataset.dataset import Split
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> order = ReaderOrder(Dataset(name="d", splits=(train,)),
    ...                     [SplitRange(split=train, start=0, stop=12)],
    ...                     ReadSettings(cycle=2, block=2))
    >>> order.read(0, 12).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11]
    >>> order.codes_at([11, 2]).tolist()
    [11, 4]
    >>> [array.tolist() for array in order.positions_of([4, 11])]
    [[0, 1], [2, 11]]
    """

    continued_by = "file_instructions"
    has_readings = True

    @checked
    def __init__(
        self, dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings
    ) -> None:
        settings.check_predictable(ordered=dataset.ordered)
        self.dataset = dataset
        self.settings = settings
        self.ranges = tuple(ranges)
        # As TFDS does it: sorted first, then each host takes its own (core/reader.py, _read_files).
        self.given = epoch_reading.sorted_reads(dataset, ranges, settings)
        self.reads = epoch_reading.own_rows(self.given, settings)
        self.codes = ExampleCodes(dataset, [piece.split.name for piece in ranges], self.given)
        self._cycle = settings.cycle_length(ordered=dataset.ordered)
        # Files that repeat are one stream, which continues after the end of the order.
        self.is_one_stream = settings.repeat_files
        self.num_streams = 1 if self.is_one_stream else settings.epochs
        self._readings: dict[int, epoch_reading.EpochReading] = {}
        self._listed: epoch_reading.EpochReading | None = None
        # `ds.shard(n, i)` keeps examples i, i + n, ..: the length of a range, without making it.
        share = range(self._share["phase"], self.reads.num_examples, self._share["stride"])
        self.epoch_size = len(share)
        total = self.epoch_size * settings.epochs
        # Where files repeat, a host's examples are looked up among those of all.
        every = self._share["stride"] if settings.repeat_files else 1
        if total * every > INT64_MAX:
            size = self.epoch_size * every
            raise UsageError(
                f"--epochs {settings.epochs} of {size} examples: positions go up to {INT64_MAX}"
            )
        # Batches are formed behind the repeat, so only the last one of the whole pass can be
        # partial.
        rest = total % settings.batch if settings.batch is not None else 0
        self.seeds = epoch_reading.EpochSeeds(
            settings=settings, partial_last_batch=bool(rest) and not settings.drop_remainder
        )
        self.num_examples = total - rest if settings.drop_remainder else total
        self.num_in_turn, self.one_buffer = self._cycle, self.num_buffered
        self.has_blocks = self.num_buffered is None
        self.draws_stretches = not self.has_blocks
        # A buffer that holds all of an epoch makes a uniform permutation (Fisher-Yates).
        self.is_uniform = not self.is_one_stream and (self.num_buffered or 1) >= self.epoch_size
        shuffles_files = settings.shuffles_files and len(self.reads) > 1
        self.shuffles = (self.num_buffered or 1) > 1 or shuffles_files
        if self.is_one_stream:
            self.goes_on = (
                f"--repeat-files repeats indefinitely; only the {self.num_examples} examples of "
                f"--epochs {settings.epochs} are analysed: give more --epochs to see more"
            )
            self.why_unshared = (
                "with --repeat-files the epochs of each host run into one another without end, so "
                "no rest of an epoch can be shared"
            )
        # A pass that depends on timing, or whose last epoch takes more seeds than TensorFlow has,
        # is refused here, before a part of it is written.
        last = self.num_streams - 1
        # Alike: each epoch opens its files, or reads its buffer, with the same seeds. Then one
        # epoch answers for all of them.
        self._files_are_alike = not shuffles_files or settings.reshuffle is False
        buffers_are_alike = settings.buffer is None or settings.buffer_reshuffle is False
        self._epochs_are_alike = self.num_streams == 1 or (
            self._files_are_alike and buffers_are_alike
        )
        if shuffles_files:
            self.seeds.of_files(last)
        if settings.buffer is not None:
            self.seeds.of_buffer(last)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on although no setting states it, a sentence each; mostly none."""
        unstated = unstated_reading(
            self.settings, is_counted=self.dataset.is_counted, num_files=len(self.given)
        )
        generated = any(piece.split.is_generated for piece in self.ranges)
        said = ("the generator yields the same elements each time it runs",) * generated
        if unstated is None:
            return said
        return (
            f"the reader of TFDS with its default {unstated}: no metadata says how these files are "
            "read. Plain TFRecordDataset(files) is `shardctl simulate --cycle 1`; of a script ask "
            "`shardctl inspect FILE:FUNCTION`",
        )

    @property
    def num_buffered(self) -> int | None:
        """Size of the shuffle buffer in force, None without one."""
        if self.settings.buffer is None:
            return None
        if self.settings.buffer == WHOLE_DATASET:
            return max(1, self.epoch_size)
        return self.settings.buffer

    def _chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        size = self.stream_size
        for epoch in range(start // size, -(-stop // size)):
            first = epoch * size
            begin, end = max(start - first, 0), min(stop - first, size)
            reading = self.reading(epoch, stop=end)
            if self.num_buffered is None:
                yield from reading.chunks(begin, end)
            else:
                yield from shuffled_codes(reading, self.replay(epoch, stop=end), begin, end)

    def _codes_at(self, positions: Int64s) -> Int64s:
        # A stream is what is shuffled by itself: an epoch, or all of it where the files repeat.
        streams, inputs = np.divmod(positions, self.stream_size)
        if self._epochs_are_alike or not streams.any():
            return self._codes_in_stream(0, inputs)
        # Each stream is built once, for all its positions.
        found = np.empty(len(positions), np.int64)
        for stream, here in groups_of(streams):
            found[here] = self._codes_in_stream(stream, inputs[here])
        return found

    @checked
    def positions_of(self, codes: Int64sLike, *, over: Over = iter) -> tuple[Int64s, Int64s]:
        """Return where examples are, see `Order`; of so many positions as memory holds."""
        check_answerable(self, len(self.lookup.rows_of(np.asarray(codes))[0]))
        return super().positions_of(codes, over=over)

    def _found(self, codes: Int64s, over: Over) -> Iterator[tuple[Int64s, Int64s]]:
        query, rows, offsets = self.lookup.rows_of(codes)
        if not len(rows):
            return iter(())
        # What takes too long is refused here, before the first answer.
        pieces = self._positions_in_pieces(rows, offsets, iter(over(range(self.settings.epochs))))
        return self._kept(query, pieces)

    @property
    def epochs_per_second(self) -> int:
        """About how many epochs are searched for an example in a second."""
        if self._epochs_are_alike and not self.is_one_stream:
            return 1_000_000
        return max(1, 10_000_000 // (len(self.reads) + 2 * (self.num_buffered or 0) + 100))

    def _kept(
        self, query: Int64s, pieces: Iterable[tuple[Int64s, Int64s]]
    ) -> Iterator[tuple[Int64s, Int64s]]:
        for which, position in pieces:
            # A last batch that is dropped is in the reading, but not in the order.
            kept = np.flatnonzero(position < self.num_examples)
            yield query[which[kept]], position[kept]

    def _positions_in_pieces(
        self, rows: Int64s, offsets: Int64s, epochs: Iterator[int]
    ) -> Iterator[tuple[Int64s, Int64s]]:
        size = self.stream_size
        if self._epochs_are_alike:
            # One stream answers for all: every position comes again a stream's length later.
            which, position = self._positions_in_stream(0, rows, offsets)
            at_once = max(1, _AT_ONCE // max(1, len(position)))
            for start in range(0, self.num_streams, at_once):
                starts = np.arange(start, min(start + at_once, self.num_streams)) * size
                # int64[positions, streams], row by row.
                yield np.repeat(which, len(starts)), (position[:, None] + starts).ravel()
        elif not self._files_are_alike and self._goes_together(len(rows)):
            # Bounded by the memory of the permutations, and by how long the user waits for an
            # answer.
            at_once = min(ROOM // len(self.reads), _STEPS_AT_ONCE // (self.num_buffered or 1))
            for piece in _pieces_of(epochs, _FIRST, max(1, at_once)):
                which, epoch, position = self._together(piece, rows, offsets)
                epoch += piece.start
                if self.num_buffered is not None:
                    position = self._outputs_of(epoch, position)
                yield which, position + epoch * size
        else:
            for one in epochs:
                which, position = self._positions_in_stream(one, rows, offsets)
                yield which, position + one * size

    def _goes_together(self, num_examples: int) -> bool:
        """Whether to look at many epochs at once is quicker than a reading an epoch."""
        count = len(self.reads)
        return (
            count <= _MOST_FILES
            # Cost and memory grow with files x examples, in positions_together.
            and count * num_examples <= _MOST_LOOKED_AT
            and min(self._cycle, count) <= _MOST_SLOTS
            # So that the keys of the visits stay within an int64.
            and int(self.reads.take.max()) * count < 1 << 62
        )

    def _together(
        self, epochs: range, rows: Int64s, offsets: Int64s
    ) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which query, which of the epochs, position in it) where this host has it."""
        take, (stride, phase) = self.reads.take, self._share.values()
        # int64[files, epochs]: which row each epoch opens at each place.
        order = permutations(len(take), self.seeds.of_files_in(epochs))
        sizes = {
            "cycle_length": min(self._cycle, len(take)),
            # A block longer than every file reads each in one visit, however long it is; so
            # bounded, the products of keys cannot overflow.
            "block_length": min(self.settings.block, int(take.max()) + 1),
        }
        lengths = take[order]
        keys = epoch_reading.opened_together(lengths, **sizes)
        found = np.empty((len(rows), len(epochs)), np.int64)
        for row, offset, into in zip(rows.tolist(), offsets.tolist(), found, strict=True):
            # int64[epochs]: at which place each epoch opens this row. It is there once, so argmax
            # finds it.
            places = (order == row).argmax(axis=0)
            into[:] = epoch_reading.positions_together(lengths, keys, places, offset, **sizes)
        # Only those that `ds.shard` keeps for this host.
        query, epoch = np.nonzero(found % stride == phase)
        return query, epoch, found[query, epoch] // stride

    def _outputs_of(self, epochs: Int64s, inputs: Int64s) -> Int64s:
        """Return where what the buffer gets at positions of epochs, int64[q] each, comes out."""
        outputs = np.empty_like(inputs)
        for epoch, here in groups_of(epochs):
            outputs[here] = self.replay(epoch).outputs_of(inputs[here])
        return outputs

    def _blocks_at(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        slots, offsets = np.empty_like(positions), np.empty_like(positions)
        for stream, here in groups_of(positions // max(self.stream_size, 1)):
            inputs = positions[here] - stream * self.stream_size
            reading = self.reading(stream, stop=int(inputs.max()) + 1)
            slots[here], offsets[here] = reading.blocks(inputs)
        return slots, offsets

    def _codes_of_stretches(
        self, epoch: int, starts: Int64s, length: int, *, exact: bool = True
    ) -> Int64s:
        """Return the codes at stretches of an epoch, see `Order`."""
        if exact or self.num_buffered is None:
            return super()._codes_of_stretches(epoch, starts, length)
        from shardctl.order.sample import drawn_stretches

        stream, begin = self.stream_of(epoch)
        reading = self.reading(stream, stop=int(starts[-1]) + length + begin)
        # Drawn from the seeds of the buffer, so that what TensorFlow shuffles alike is drawn alike.
        seeds = self.seeds.of_buffer(stream)
        random = np.random.default_rng([seeds.seed, seeds.seed2])
        sizes = reading.num_examples, self.num_buffered
        inputs = drawn_stretches(*sizes, starts + begin, length, random)
        return reading.codes_at(inputs.ravel()).reshape(inputs.shape)

    def _epochs_at(self, positions: Int64s) -> Int64s:
        return positions // max(self.epoch_size, 1)

    @property
    def before_buffer(self) -> ReaderOrder | None:
        """The order in which files are read into the buffer, None without one, or examples."""
        if self.num_buffered is None or not self.num_examples:
            return None
        # The same reader without what is behind it: batches change no order, but may drop a rest.
        none: dict[str, Any] = dict.fromkeys(("buffer", "buffer_seed", "buffer_reshuffle", "batch"))
        bare = replace(self.settings, **none, drop_remainder=False)
        return ReaderOrder(self.dataset, self.ranges, bare)

    @property
    def has_steps(self) -> bool:
        """Whether examples come in batches."""
        return self.settings.batch is not None

    @property
    def num_steps(self) -> int | None:
        """Number of batches of the pass, None without end."""
        return -(-self.num_examples // (self.settings.batch or 1))

    def _steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        return divmod(positions, self.settings.batch or 1)

    def _in_step(self, step: int) -> range:
        size = self.settings.batch or 1
        return range(step * size, min((step + 1) * size, self.num_examples))

    @property
    def stream_size(self) -> int:
        """Number of examples in one stream: an epoch, or all epochs where the files repeat."""
        return self.epoch_size * (self.settings.epochs if self.is_one_stream else 1)

    def stream_of(self, epoch: int) -> tuple[int, int]:
        """Return (stream, where in it the epoch begins): of files that repeat there is one."""
        return (0, epoch * self.epoch_size) if self.is_one_stream else (epoch, 0)

    @checked
    def reading(self, epoch: int, *, stop: int | None = None) -> epoch_reading.EpochReading:
        """Return the reading of the files in an epoch, before the shuffle buffer.

        With repeated files epoch 0 stands for all; the list of files, which has no end, is cut
        where at least `stop` examples of it have been yielded, None for all of them.
        """
        if not self.is_one_stream:
            return self._built_reading(0 if self._files_are_alike else epoch)
        limit = self._num_read(stop)
        if self._listed is None or (self._listed.limit or 0) < limit:
            self._listed = self.listed_reading(limit, self._openings)
        listed = self._listed
        return listed if listed.limit == limit else replace(listed, limit=limit)

    def _num_read(self, stop: int | None) -> int:
        """Return how many examples a stream reads, repeated files up to output `stop` at least."""
        # In epochs. Only files that repeat have more than one in a stream.
        needed = self.settings.epochs if self.is_one_stream else 1
        if stop is not None and self.epoch_size:
            # In powers of two, so that a replay of the next stretch is seldom another one.
            needed = min(needed, 1 << (-(-stop // self.epoch_size) - 1).bit_length())
        fills = self.is_one_stream and self.reads.num_examples
        # A buffer over files that repeat has read this many examples beyond what it has yielded.
        ahead = (self.num_buffered or 0) if fills else 0
        return needed * self.epoch_size + ahead

    @checked
    def replay(self, epoch: int, *, stop: int | None = None) -> ShuffleReplay:
        """Return the replay of the shuffle buffer in an epoch, right up to output `stop` at least.

        Raises:
            UsageError: the settings have no buffer.
        """
        if self.num_buffered is None:
            raise UsageError("no shuffle buffer")
        return ShuffleReplay(
            num_elements=self._num_read(stop),
            buffer_size=self.num_buffered,
            seeds=self.seeds.of_buffer(epoch),
        )

    def _codes_in_stream(self, epoch: int, positions: Int64s) -> Int64s:
        stop = int(positions.max()) + 1
        if self.num_buffered is not None:
            # From outputs of the buffer to its inputs, which are positions of the reading.
            positions = self.replay(epoch, stop=stop).inputs_at(positions)
        return self.reading(epoch, stop=stop).codes_at(positions)

    def _positions_in_stream(
        self, epoch: int, rows: Int64s, offsets: Int64s
    ) -> tuple[Int64s, Int64s]:
        # The other way: where the reader reads it, then where the buffer yields that input.
        which, positions = self.reading(epoch).positions(rows, offsets)
        if self.num_buffered is not None:
            positions = self.replay(epoch).outputs_of(positions)
        return which, positions

    @cached_property
    def _share(self) -> dict[str, int]:
        stride, phase = self.settings.host_mode.stride_and_phase(self.settings.host)
        return {"stride": stride, "phase": phase}

    def forget_readings(self) -> None:
        """Give back the memory of the readings; they are built anew when they are asked for."""
        self._readings.clear()
        self._listed = None
        self.__dict__.pop("_first_codes", None)

    def _built_reading(self, epoch: int) -> epoch_reading.EpochReading:
        """Return a reading, that of the latest calls if it is among them."""
        # Taken out and put back, so that the oldest entry is the first of the dict.
        reading = self._readings.pop(epoch, None)
        if reading is None:
            # Those that are not kept go first, to make room.
            kept = 0 if len(self.reads) > _MANY_FILES else 2
            while len(self._readings) > kept:
                del self._readings[next(iter(self._readings))]
            reading = self.reading_of(self._opening(epoch))
        self._readings[epoch] = reading
        return reading

    def _openings(self, repetitions: range) -> Int64s:
        """Return the rows as these repetitions open them, int64[n] each, one after the other."""
        if not self._files_are_alike:
            return shuffled_in_turn(len(self.reads), self.seeds.of_files_in(repetitions))
        # Every repetition lists the files in the same order.
        rows = self._opening(0)
        return np.tile(np.arange(len(self.reads)) if rows is None else rows, len(repetitions))

    def _opening(self, epoch: int) -> Int64s | None:
        """Return the rows (int64[n]) in the order in which an epoch opens them, None as listed."""
        count = len(self.reads)
        if not self.settings.shuffles_files or count < 2:
            return None
        # TFDS's buffer is as large as all instructions (reader.py, _read_files), so any host's
        # files fit. The permutation then depends on the number of files only.
        seeds = self.seeds.of_files(epoch)
        if count > _MANY_FILES:
            return shuffle_permutation(count, count, seeds)
        return _opening_of_files(count, seeds)

    def listed_reading(
        self, limit: int, openings: Callable[[range], Int64s]
    ) -> epoch_reading.EpochReading:
        """Return the reading of repeated files up to a limit, of how repetitions open them.

        Raises:
            UsageError: more than `MAX_OPENED` files are opened by then.
        """
        # One example more than the limit, for the phase of `ds.shard`.
        take, total = self.reads.take, (limit + 1) * self._share["stride"]
        # So many repetitions yield all of it in the first round: more slots are idle.
        in_first_round = int(np.minimum(take, self.settings.block).sum()) or 1
        cycle = min(self._cycle, -(-total // in_first_round) * len(take))
        repetitions = epoch_reading.repetitions_listed(take, total, cycle_length=cycle)
        if repetitions * len(take) > MAX_OPENED:
            raise UsageError(
                f"--repeat-files: {limit} examples take {repetitions * len(take)} files, more than "
                f"{MAX_OPENED}; ask for fewer --epochs"
            )
        return replace(self.reading_of(openings(range(repetitions)), cycle), limit=limit)

    def reading_of(
        self, rows: Int64s | None, cycle: int | None = None
    ) -> epoch_reading.EpochReading:
        """Return the reading that opens rows (int64[k]) of the reads; None opens all as listed."""
        take = self.reads.take[:] if rows is None else self.reads.take[rows]
        take.setflags(write=False)  # so that the interleave need not copy it
        sizes = {"cycle_length": cycle or self._cycle, "block_length": self.settings.block}
        return epoch_reading.EpochReading(
            rows=rows,
            interleave=interleave_of(take, **sizes),
            row_codes=self._first_codes,
            **self._share,
        )


@lru_cache(maxsize=2)
def _opening_of_files(count: int, seeds: KernelSeeds) -> Int64s:
    """Return a shuffle of files, that of the latest orders if these shuffled alike."""
    rows = shuffle_permutation(count, count, seeds)
    rows.setflags(write=False)  # several orders have it
    return rows


def _pieces_of(epochs: Iterator[int], first: int, most: int) -> Iterator[range]:
    """Yield stretches of epochs that count on one by one, each twice as long as the one before."""
    size = min(first, most)
    # Small pieces first, so that the first answer comes at once; then ever larger ones.
    while piece := list(islice(epochs, size)):
        yield range(piece[0], piece[-1] + 1)
        size = min(2 * size, most)
