"""The order in which a pipeline hands out the examples of a dataset, without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike

from shardctl.core.dataset import Dataset
from shardctl.core.even_splits import even_split
from shardctl.core.example_codes import ExampleCodes
from shardctl.core.file_instruction import SplitRange
from shardctl.core.file_order import sorted_rows
from shardctl.core.file_reads import FileReads
from shardctl.core.interleave import Interleave
from shardctl.core.quoting import quoted
from shardctl.core.read_settings import INT64_MAX, WHOLE_DATASET, ReadSettings
from shardctl.core.read_table import Int64s, ReadTable, read_table
from shardctl.core.shuffle_buffer import ShuffleReplay, shuffle_permutation
from shardctl.core.shuffle_passes import file_shuffle_passes, user_shuffle_passes
from shardctl.core.shuffle_seeds import KernelSeeds, iterator_seeds
from shardctl.core.shuffled_reads import shuffled_codes
from shardctl.errors import UsageError

CHUNK_SIZE = 1 << 20


class Order:
    """Every position of one pass over a pipeline, all epochs of it, from 0.

    The pipeline is TFDS's reader (sort function, file sharding, file shuffle, repeat, interleave),
    then `ds.shard`, `ds.shuffle`, `ds.repeat` and `ds.batch` as the settings have them
    (TFDS core/reader.py, _read_files). An example is named by a code (see `ExampleCodes`): its id
    where the spec reads one split. Nothing is read and nothing is built an example; a chunk is.

    Raises:
        UnpredictableOrderError: TensorFlow leaves this order open.
        UsageError: fewer files than hosts of `InputContext`, a bad list of files, TFDS's guard.

    >>> from shardctl.core.dataset import Split
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> order = Order(Dataset(name="d", splits=(train,)),
    ...               [SplitRange(split=train, start=0, stop=12)],
    ...               ReadSettings(cycle=2, block=2))
    >>> order.read(0, 12).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 10, 11]
    """

    def __init__(
        self, dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings
    ) -> None:
        settings.check_predictable(ordered=dataset.ordered)
        self.dataset = dataset
        self.settings = settings
        self.codes = ExampleCodes(dataset, [piece.split.name for piece in ranges])
        self._cycle = settings.cycle_length(ordered=dataset.ordered)
        self.table = _own_rows(dataset, ranges, settings)
        self._first_codes = self.table.first + self.codes.bases[self.table.split]
        self._reads = lru_cache(maxsize=3)(self._build_reads)
        if self.epoch_size * settings.epochs > INT64_MAX:
            raise UsageError(
                f"--epochs {settings.epochs} of {self.epoch_size} examples: "
                f"positions go up to {INT64_MAX}"
            )

    @cached_property
    def epoch_size(self) -> int:
        """Number of examples in an epoch of this host, before whole batches are formed."""
        examples = self.table.num_examples
        host = self.settings.host
        if host is not None and self.settings.host_by == "examples":
            return max(0, -(-(examples - host.index) // host.count))
        return examples

    @property
    def num_examples(self) -> int:
        """Number of examples handed out in all epochs, without a last batch that is dropped."""
        total = self.epoch_size * self.settings.epochs
        if self.settings.drop_remainder and self.settings.batch is not None:
            total -= total % self.settings.batch
        return total

    @property
    def num_buffered(self) -> int | None:
        """Size of the shuffle buffer in force, None without one."""
        if self.settings.buffer is None:
            return None
        if self.settings.buffer == WHOLE_DATASET:
            return max(1, self.epoch_size)
        return self.settings.buffer

    def read(self, start: int, stop: int) -> Int64s:
        """Return the codes at positions [start, stop), int64[stop - start]."""
        pieces = list(self.chunks(start, stop))
        return np.concatenate(pieces) if pieces else np.empty(0, np.int64)

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes at positions [start, stop) piece by piece, in bounded memory."""
        if not 0 <= start <= stop <= self.num_examples:
            raise UsageError(
                f"positions [{start}, {stop}): the order has {self.num_examples} examples"
            )
        for epoch in self._epochs(start, stop):
            first = epoch * self._stream_size
            yield from self._epoch_chunks(
                epoch, max(start - first, 0), min(stop - first, self._stream_size)
            )

    def codes_at(self, positions: ArrayLike) -> Int64s:
        """Return the codes (int64[q]) at any positions (int64[q])."""
        wanted = self._checked(positions)
        found = np.empty(len(wanted), np.int64)
        epochs = wanted // max(self._stream_size, 1)
        for epoch in np.unique(epochs).tolist():
            here = np.flatnonzero(epochs == epoch)
            inputs = wanted[here] - epoch * self._stream_size
            if self.num_buffered is not None:
                inputs = self._replay(epoch).inputs_at(inputs)
            found[here] = self.reads(epoch).codes_at(inputs)
        return found

    def positions_of(self, codes: ArrayLike) -> tuple[Int64s, Int64s]:
        """Return (which query, position), int64[r] each, for every time an example is handed out.

        Ordered by query, then by position; an example that is never handed out has none.
        """
        wanted = np.asarray(codes, np.int64)
        query, rows, offsets = self._rows_of(wanted)
        found_query, found_position = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for epoch in range(self._num_streams):
            which, position = self.reads(epoch).positions(rows, offsets)
            if self.num_buffered is not None:
                position = self._replay(epoch).outputs_of(position)
            found_query.append(query[which])
            found_position.append(position + epoch * self._stream_size)
        which, position = np.concatenate(found_query), np.concatenate(found_position)
        kept = np.flatnonzero(position < self.num_examples)
        which, position = which[kept], position[kept]
        order = np.lexsort((position, which))
        return which[order], position[order]

    def epoch_of(self, positions: Int64s) -> Int64s:
        """Return the epoch (int64[q]) in which each position is."""
        return positions // max(self.epoch_size, 1)

    def reads(self, epoch: int) -> FileReads:
        """Return the reading of the files in an epoch, before the shuffle buffer."""
        shuffles = self.settings.shuffles_files and self.settings.reshuffle is not False
        return self._reads(epoch if shuffles else 0)

    def replay(self, epoch: int) -> ShuffleReplay:
        """Return the replay of the shuffle buffer in an epoch.

        Raises:
            ValueError: the settings have no buffer.
        """
        return self._replay(epoch)

    def file_seeds(self, epoch: int) -> KernelSeeds | None:
        """Return the seeds of the file shuffle in an epoch, None where files are not shuffled."""
        settings = self.settings
        if not settings.shuffles_files:
            return None
        passes = file_shuffle_passes(
            num_epochs=None if settings.repeat_files else settings.epochs,
            loop=settings.loop,
            under_user_shuffle=settings.buffer is not None,
            repeat_filenames=settings.repeat_files,
        )
        return iterator_seeds(
            settings.shuffle_seed,
            settings.global_seed,
            settings.reshuffle,
            passes.iterator_index(settings.pass_index, epoch),
        )

    def buffer_seeds(self, epoch: int) -> KernelSeeds | None:
        """Return the seeds of the shuffle buffer in an epoch, None without a buffer."""
        settings = self.settings
        if settings.buffer is None:
            return None
        passes = user_shuffle_passes(
            num_epochs=1 if settings.repeat_files else settings.epochs, loop=settings.loop
        )
        return iterator_seeds(
            settings.buffer_seed,
            settings.global_seed,
            settings.buffer_reshuffle,
            passes.iterator_index(settings.pass_index, epoch),
        )

    # With repeated files the epochs are one stream: the slots carry on from one to the next.

    @property
    def _num_streams(self) -> int:
        return 1 if self.settings.repeat_files else self.settings.epochs

    @property
    def _stream_size(self) -> int:
        return self.epoch_size * (self.settings.epochs if self.settings.repeat_files else 1)

    def _epochs(self, start: int, stop: int) -> range:
        if start == stop:
            return range(0)
        return range(start // self._stream_size, -(-stop // self._stream_size))

    def _epoch_chunks(self, epoch: int, start: int, stop: int) -> Iterator[Int64s]:
        reads = self.reads(epoch)
        if self.num_buffered is not None:
            yield from shuffled_codes(reads, self._replay(epoch), start, stop)
            return
        size = max(1, CHUNK_SIZE // reads.stride)
        for begin in range(start, stop, size):
            yield reads.codes(begin, min(begin + size, stop))

    def _build_reads(self, epoch: int) -> FileReads:
        settings, count = self.settings, len(self.table)
        stride, phase = 1, 0
        if settings.host is not None and settings.host_by == "examples":
            stride, phase = settings.host.count, settings.host.index
        limit = None
        if settings.repeat_files:
            # The stream never ends; what a buffer reads ahead of its end belongs to it.
            limit = self._stream_size + (self.num_buffered or 0)
            repetitions = self._repetitions((limit + 1) * stride)
            opened = [self._opening(repetition) for repetition in range(repetitions)]
            rows = np.concatenate(opened) if opened else np.arange(count)
        else:
            rows = self._opening(epoch)
        return FileReads(
            opened=rows,
            interleave=Interleave(
                self.table.take[rows], cycle_length=self._cycle, block_length=settings.block
            ),
            first_codes=self._first_codes[rows],
            stride=stride,
            phase=phase,
            limit=limit,
        )

    def _repetitions(self, examples: int) -> int:
        """Return how often the files are listed so that an endless list reads the same that far.

        The two part once a slot finds no more files; at most a file a slot is open by then.
        """
        if not self.table.num_examples:
            return 1
        open_files = min(self._cycle, examples) * int(self.table.take.max())
        return -(-(examples + open_files) // self.table.num_examples)

    def _opening(self, epoch: int) -> Int64s:
        """Return the rows (int64[n]) in the order in which an epoch opens them."""
        count = len(self.table)
        seeds = self.file_seeds(epoch)
        if seeds is None or count < 2:
            return np.arange(count)
        return shuffle_permutation(count, count, seeds)

    def _replay(self, epoch: int) -> ShuffleReplay:
        seeds = self.buffer_seeds(epoch)
        if seeds is None or self.num_buffered is None:
            raise ValueError("no shuffle buffer")
        return ShuffleReplay(
            num_elements=self.reads(epoch).num_examples,
            buffer_size=self.num_buffered,
            seeds=seeds,
        )

    def _checked(self, positions: ArrayLike) -> Int64s:
        wanted = np.asarray(positions, np.int64)
        wrong = wanted[(wanted < 0) | (wanted >= self.num_examples)]
        if wrong.size:
            raise UsageError(
                f"position {wrong[0]}: the order has {self.num_examples} examples, counted from 0"
            )
        return wanted

    def _rows_of(self, codes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which query, row, offset), int64[r] each, of the rows that read each code."""
        found = []
        for rows, starts in self._lookup:
            place = np.searchsorted(starts, codes, side="right") - 1
            row = rows[np.maximum(place, 0)]
            offset = codes - self._first_codes[row]
            inside = np.flatnonzero((place >= 0) & (offset < self.table.take[row]))
            found.append(np.stack([inside, row[inside], offset[inside]]))
        query, row, offset = np.concatenate(found or [np.empty((3, 0), np.int64)], axis=1)
        return query, row, offset

    @cached_property
    def _lookup(self) -> list[tuple[Int64s, Int64s]]:
        """For each part of the spec its rows and their first codes, ascending by code."""
        parts = []
        for part in np.unique(self.table.part).tolist():
            rows = np.flatnonzero(self.table.part == part)
            rows = rows[np.argsort(self._first_codes[rows])]
            parts.append((rows, self._first_codes[rows]))
        return parts


def _own_rows(dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings) -> ReadTable:
    """Return what this host reads, in the order of the sort function."""
    host = settings.host
    if host is not None and settings.host_by == "even":
        ranges = even_split(ranges, host.index, host.count)
    table = read_table(dataset, ranges)
    table = sorted_rows(table, reverse=settings.reverse, file_order=settings.file_order)
    if host is not None and settings.host_by == "files":
        if host.count > 1 and len(table) < host.count:
            raise UsageError(
                f"--host {quoted(host)} by files: {len(table)} file instructions for {host.count} "
                "hosts, TFDS needs one a host at least; deal examples with --host-by even"
            )
        table = table.select(slice(host.index, None, host.count))
    return table
