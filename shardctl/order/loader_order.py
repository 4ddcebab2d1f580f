"""The order in which another loader than TFDS's hands out the examples of a dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, last_not_above
from shardctl.dataset.dataset import Dataset
from shardctl.loaders.loader import LOADERS, Loader
from shardctl.loaders.loader_config import LoaderConfig
from shardctl.loaders.loader_sequence import LoaderSequence
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import CHUNK_SIZE, Order, Over
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.reads import Reads, joined, reads_of
from shardctl.spec.subsplit import SplitRange


class LoaderOrder(Order):
    """Every example that one process of a loader hands out, all epochs of it, from 0.

    A loader counts the examples of a spec by their index, in the order of their files. Its rule
    (`loader`) knows lengths and settings alone; here indices become codes.

    Raises:
        UnpredictableOrderError: the loader leaves this order open.
        UsageError: the loader refuses these settings, or its rule does not know them.
    """

    continued_by = "loader"
    unshuffled = "examples come in the order of storage"

    handed_out: LoaderSequence

    def __init__(
        self,
        dataset: Dataset,
        ranges: Sequence[SplitRange],
        settings: ReadSettings,
        *,
        version: str | None = None,
        assumptions: Sequence[str] = (),
    ) -> None:
        """`assumptions` are those of who asks, beside those of the rule."""
        self.dataset = dataset
        self.settings = settings
        self.loader: Loader = LOADERS[settings.loader]
        self.version = version or settings.loader_version or self.loader.proven[-1]
        self.ranges = tuple(ranges)
        self.given = self.reads = reads_of(dataset, ranges)
        self.codes = ExampleCodes(dataset, [piece.split.name for piece in ranges], self.given)
        self._starts = np.concatenate([[0], np.cumsum(self.reads.take)])
        host = settings.host
        own = {field.name for field in fields(LoaderConfig)} & {
            field.name for field in fields(settings)
        }
        alike = {name: getattr(settings, name) for name in own - {"host", "workers"}}
        self.asked = LoaderConfig(
            **alike,
            lengths=self.reads.take,
            version=self.version,
            seed=settings.shuffle_seed,
            first_epoch=settings.pass_index,
            shares=host is not None,
            host=0 if host is None else host.index,
            num_hosts=1 if host is None else host.count,
            workers=settings.workers or 0,
            file_format=dataset.file_format,
            shard_lengths=self._lengths_of_shards(),
        )
        self.handed_out = self.loader.handed_out(self.asked)
        self._assumptions = tuple(assumptions)
        self.epoch_size = self.handed_out.epoch_size
        self.num_examples = self.handed_out.num_examples
        self.shuffles = self.handed_out.shuffles
        self.is_uniform = self.handed_out.is_uniform
        self.is_made_whole = self.handed_out.is_made_whole
        self.num_in_turn = self.handed_out.num_in_turn

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on though nobody stated it, a sentence each."""
        return (*self._assumptions, *self.handed_out.assumptions)

    def _lengths_of_shards(self) -> Int64s:
        """Return how many examples the files have, empty ones too where splits are read whole."""
        if all(
            piece.start == 0 and piece.stop == piece.split.num_examples for piece in self.ranges
        ):
            return np.concatenate(
                [np.empty(0, np.int64), *(piece.split.lengths64() for piece in self.ranges)]
            )
        return self.reads.examples_in_shard

    @property
    def has_steps(self) -> bool:
        """Whether examples come in batches."""
        return self.handed_out.batches is not None

    def _chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        for begin in range(start, stop, CHUNK_SIZE):
            yield self._codes_at(np.arange(begin, min(begin + CHUNK_SIZE, stop)))

    def _codes_at(self, positions: Int64s) -> Int64s:
        return self.codes_of(self.handed_out.indices_at(positions))

    def _found(self, codes: Int64s, over: Over) -> Iterator[tuple[Int64s, Int64s]]:
        query, rows, offsets = self._lookup.rows_of(codes)
        which, positions = self.handed_out.positions_of(self._starts[rows] + offsets)
        return iter([(query[which], positions)])

    def _epochs_at(self, positions: Int64s) -> Int64s:
        return self.handed_out.epochs_at(positions)

    @property
    def num_steps(self) -> int | None:
        """Number of batches of all epochs."""
        batches = self.handed_out.batches
        return self.num_examples if batches is None else batches.num_batches

    def _steps_of(self, positions: Int64s) -> tuple[Int64s, Int64s]:
        batches = self.handed_out.batches
        if batches is None:
            return positions, np.zeros_like(positions)
        return batches.steps_of(positions)

    def _in_step(self, step: int) -> range:
        batches = self.handed_out.batches
        return range(step, step + 1) if batches is None else range(*batches.bounds(step))

    @checked
    def indices_at(self, positions: Int64sLike) -> Int64s:
        """Return the indices of the examples at any positions, as the loader counts, int64[q]."""
        return self.handed_out.indices_at(self._checked(positions))

    @checked
    def indices_in_step(self, step: int) -> Int64s:
        """Return the indices of the examples of a batch, as the loader counts, int64[size]."""
        positions = self.positions_in_step(step)
        return self.indices_at(np.arange(positions.start, positions.stop))

    @cached_property
    def reads_of_epoch(self) -> Reads:
        """What this process reads in its first epoch: a piece of storage, or some of all of it."""
        pieces = self.handed_out.among
        if pieces is None:
            return self.reads
        parts = [self.reads.between(piece.start, piece.stop) for piece in pieces if len(piece)]
        return joined([self.reads.select(slice(0, 0)), *parts])

    def codes_of(self, indices: Int64s) -> Int64s:
        """Return the codes of examples that a loader names by their index, int64[q]."""
        rows = last_not_above(self._starts, indices)
        codes: Int64s = self._first_codes[rows] + indices - self._starts[rows]
        return codes
