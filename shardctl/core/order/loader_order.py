"""The order in which another loader than TFDS's hands out the examples of a dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s, Int64sLike, last_not_above
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads, joined, reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.loaders.asked import Asked
from shardctl.core.loaders.handed_out import HandedOut
from shardctl.core.loaders.loader import LOADERS, Loader
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.order import CHUNK_SIZE, Order
from shardctl.core.order.reads_of_host import RowLookup
from shardctl.core.settings.read_settings import ReadSettings


def _of_rule(name: str) -> Any:
    """Return the property of an order that is the one of what its rule hands out."""
    told = getattr(Order, name).__doc__
    return property(lambda order: getattr(order.handed_out, name), doc=told)


# Settings that a rule is asked by their own names.
_ASKED = (
    *("shuffle", "global_seed", "epochs", "host_by", "drop_shard_remainder", "persistent_workers"),
    *("batch", "drop_remainder", "buffer", "buffer_seed"),
    *("streaming", "arrow", "before_shuffle", "input_shards"),
)


class LoaderOrder(Order):
    """Every example that one process of a loader hands out, all epochs of it, from 0.

    A loader counts the examples of a spec by their index, in the order of their files. Its rule
    (`loader`) knows lengths and settings alone; here indices become codes.

    Raises:
        UnpredictableOrderError: the loader leaves this order open.
        UsageError: the loader refuses these settings, or its rule does not know them.
    """

    continued_by = "loader"

    handed_out: HandedOut

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
        self._ranges = tuple(ranges)
        self.given = self.reads = reads_of(dataset, ranges)
        self.codes = ExampleCodes(dataset, [piece.split.name for piece in ranges], self.given)
        self._starts = np.concatenate([[0], np.cumsum(self.reads.take)])
        host = settings.host
        self.asked = Asked(
            **{name: getattr(settings, name) for name in _ASKED},
            lengths=self.reads.take,
            shard_lengths=self._lengths_of_shards(),
            file_format=dataset.file_format,
            version=self.version,
            seed=settings.shuffle_seed,
            first_epoch=settings.pass_index,
            shares=host is not None,
            host=0 if host is None else host.index,
            num_hosts=1 if host is None else host.count,
            workers=settings.workers or 0,
        )
        self.handed_out = self.loader.handed_out(self.asked)
        self._assumptions = tuple(assumptions)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the order depends on though nobody stated it, a sentence each."""
        return (*self._assumptions, *self.handed_out.assumptions)

    def _lengths_of_shards(self) -> Int64s:
        """Return how many examples the files have, empty ones too where splits are read whole."""
        if all(
            piece.start == 0 and piece.stop == piece.split.num_examples for piece in self._ranges
        ):
            return np.concatenate(
                [np.empty(0, np.int64), *(piece.split.lengths64() for piece in self._ranges)]
            )
        return self.reads.examples_in_shard

    epoch_size = _of_rule("epoch_size")
    num_examples = _of_rule("num_examples")
    shuffles = _of_rule("shuffles")
    is_uniform = _of_rule("is_uniform")
    is_made_whole = _of_rule("is_made_whole")
    num_in_turn = _of_rule("num_in_turn")

    @property
    def unshuffled(self) -> str:
        """How examples come where nothing shuffles them, a clause."""
        return "examples come in the order of storage"

    @property
    def has_steps(self) -> bool:
        """Whether examples come in batches."""
        return self.handed_out.batches is not None

    @checked
    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes at positions [start, stop) piece by piece, in bounded memory."""
        self._check_range(start, stop)
        for begin in range(start, stop, CHUNK_SIZE):
            yield self._codes(np.arange(begin, min(begin + CHUNK_SIZE, stop)))

    @checked
    def codes_at(self, positions: Int64sLike) -> Int64s:
        """Return the codes at any positions, int64[q] each."""
        return self._codes(self._checked(positions))

    @checked
    def positions_of(
        self, codes: Int64sLike, *, over: Callable[[range], Iterable[int]] = iter
    ) -> tuple[Int64s, Int64s]:
        """Return (which query, position), int64[r] each, for every time an example is handed out.

        Ordered by query, then by position.
        """
        query, rows, offsets = self._lookup.rows_of(np.asarray(codes))
        which, positions = self.handed_out.positions_of(self._starts[rows] + offsets)
        query = query[which]
        order = np.lexsort((positions, query))
        return query[order], positions[order]

    @property
    def num_epochs(self) -> int | None:
        """Number of epochs of the pass."""
        return self.settings.epochs

    @checked
    def epoch_of(self, positions: Int64sLike) -> Int64s:
        """Return the epoch (int64[q]) in which each position is."""
        return self.handed_out.epochs_at(self._checked(positions))

    @property
    def num_steps(self) -> int | None:
        """Number of batches of all epochs."""
        batches = self.handed_out.batches
        return self.num_examples if batches is None else batches.num_batches

    @checked
    def steps_of(self, positions: Int64sLike) -> tuple[Int64s, Int64s]:
        """Return (batch, index of the example in it), int64[q] each; see `has_steps`."""
        wanted, batches = self._checked(positions), self.handed_out.batches
        return (wanted, np.zeros_like(wanted)) if batches is None else batches.steps_of(wanted)

    @checked
    def positions_in_step(self, step: int) -> range:
        """Return the positions of the examples of a batch."""
        self._check_step(step)
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

    def _codes(self, positions: Int64s) -> Int64s:
        if not len(positions):
            return np.empty(0, np.int64)
        return self.codes_of(self.handed_out.indices_at(positions))

    @cached_property
    def reads_of_epoch(self) -> Reads:
        """What this process reads in its first epoch: a piece of storage, or some of all of it."""
        pieces = self.handed_out.among
        if pieces is None:
            return self.reads
        bounds = [(piece.start, piece.stop) for piece in pieces if len(piece)]
        found = [self.reads.select(slice(0, 0))]
        for start, stop in bounds:
            first, last = np.searchsorted(self._starts, [start, stop - 1], side="right") - 1
            rows = self.reads.select(slice(int(first), int(last) + 1))
            begins = np.maximum(self._starts[first : last + 1], start)
            ends = np.minimum(self._starts[first + 1 : last + 2], stop)
            skip = rows.skip + begins - self._starts[first : last + 1]
            found.append(replace(rows, skip=skip, take=ends - begins))
        return joined(found)

    def codes_of(self, indices: Int64s) -> Int64s:
        """Return the codes of examples that a loader names by their index, int64[q]."""
        rows = last_not_above(self._starts, indices)
        codes: Int64s = self._first_codes[rows] + indices - self._starts[rows]
        return codes

    @cached_property
    def _first_codes(self) -> Int64s:
        """The code of the first example that each row reads, int64[n]."""
        return self.codes.first_codes(self.reads)

    @cached_property
    def _lookup(self) -> RowLookup:
        return RowLookup(self.reads, self._first_codes)
