"""What of an order is measured: all of an epoch, or stretches spread evenly over it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s
from shardctl.core.order.order import Order
from shardctl.planning.quality.buffer_distribution import drawn_stretches
from shardctl.planning.quality.storage_order import StorageOrder, storage_order

Floats = NDArray[np.float64]

COMPLETE_LIMIT = 1 << 21  # examples up to which an epoch is measured whole
_STRETCH = 256  # examples in a stretch, or as many whole batches as take so many
_LEAST_STRETCHES = 16
NUM_MEASURED = 256 * _STRETCH


@dataclass(frozen=True, kw_only=True)
class Sampled:
    """What of a large epoch is measured: stretches; `buffer_drawn` as in `OrderSample`."""

    num_examples: int
    num_stretches: int
    stretch: int
    buffer_drawn: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class OrderSample:
    """Stretches of consecutive positions: the ranks in storage and the shards of what is there.

    `starts` (int64[k]) is where each begins, of `num_positions`; `ranks` and `shards`
    (int64[k, length]) belong to the examples there, of `num_ranks` places in storage and of shards
    with `shard_sizes` examples (int64[shards]). `codes` (int64[k, length]) names the examples.
    `buffer_drawn` says that what a shuffle buffer does is drawn at random and not replayed.
    """

    starts: Int64s
    ranks: Int64s
    shards: Int64s
    codes: Int64s
    num_positions: int
    num_ranks: int
    shard_sizes: Int64s
    buffer_drawn: bool = False

    @property
    def num_measured(self) -> int:
        """Number of positions measured."""
        return self.ranks.size

    @property
    def length(self) -> int:
        """Number of positions in a stretch."""
        return len(self.ranks[0])

    @property
    def complete(self) -> bool:
        """Whether one stretch holds all positions."""
        return len(self.ranks) == 1

    @property
    def sampled(self) -> Sampled | None:
        """What is measured, None where it is every position."""
        if self.complete:
            return None
        return Sampled(
            num_examples=self.num_measured,
            num_stretches=len(self.starts),
            stretch=self.length,
            buffer_drawn=self.buffer_drawn,
        )

    @property
    def measured_part(self) -> float:
        """Measured positions over all, at most 1."""
        return min(1.0, self.num_measured / self.num_positions)

    @cached_property
    def offsets(self) -> Floats:
        """Position less place in storage, float64[k, length], both as parts of the whole."""
        positions = (self.starts[:, None] + np.arange(self.length) + 0.5) / self.num_positions
        return np.asarray(positions - (self.ranks + 0.5) / self.num_ranks, np.float64)

    def part(self, first: float, last: float, window: int = 1) -> OrderSample:
        """Return what is measured between two parts of the epoch, both from 0 to 1.

        A part of a whole epoch begins with a window; the last one takes the rest.
        """
        if self.complete:
            whole = self.num_positions // window
            begin, end = (round(whole * edge) * window for edge in (first, last))
            end = self.num_positions if last == 1.0 else end
            return self._cut(slice(None), slice(begin, end), self.starts + begin)
        begin, end = (round(len(self.starts) * edge) for edge in (first, last))
        return self._cut(slice(begin, end), slice(None), self.starts[begin:end])

    @property
    def kept(self) -> KeptSample:
        """The same in little memory, to be measured anew."""
        narrow = np.min_scalar_type(int(self.codes.max(initial=0)))
        return KeptSample(
            starts=self.starts, codes=self.codes.astype(narrow), num_positions=self.num_positions
        )

    def _cut(self, rows: slice, columns: slice, starts: Int64s) -> OrderSample:
        return OrderSample(
            starts=starts,
            ranks=self.ranks[rows, columns],
            shards=self.shards[rows, columns],
            codes=self.codes[rows, columns],
            num_positions=self.num_positions,
            num_ranks=self.num_ranks,
            shard_sizes=self.shard_sizes,
            buffer_drawn=self.buffer_drawn,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptSample:
    """What a sample is made of: the codes (integers[k, length]) of an epoch from `starts` on.

    They take a sixth of its memory: of two million examples 8 MB.
    """

    starts: Int64s
    codes: NDArray[np.unsignedinteger]
    num_positions: int

    def of(self, order: Order) -> OrderSample:
        """Return the sample of an order that hands these out."""
        codes = self.codes.astype(np.int64)
        storage = storage_order(order)
        if len(codes) == 1:
            return _whole(codes[0], storage)
        return _stretches(order, self.starts, codes, self.num_positions, storage)


def sample_of(ranks: Int64s, shards: Int64s, codes: Int64s | None = None) -> OrderSample:
    """Return an order measured whole, from the rank and the shard at each position, int64[n].

    `codes` names the examples (int64[n]), by their rank where it is None.

    >>> sample_of(np.array([2, 0, 1]), np.array([1, 0, 0])).shard_sizes.tolist()
    [2, 1]
    """
    return OrderSample(
        starts=np.zeros(1, np.int64),
        ranks=ranks[None, :],
        shards=shards[None, :],
        codes=(ranks if codes is None else codes)[None, :],
        num_positions=len(ranks),
        num_ranks=len(ranks),
        shard_sizes=np.bincount(shards),
    )


def sample_epoch(
    order: Order,
    *,
    epoch: int = 0,
    window: int = 1,
    limit: int = COMPLETE_LIMIT,
    num_measured: int = NUM_MEASURED,
) -> OrderSample:
    """Return an epoch of an order whole where it has at most `limit` examples, else stretches.

    The stretches are about `num_measured` examples together, 16 of them at least.

    A stretch is whole windows of `window` examples, counted from the start of the epoch as batches
    are, and one more example, the neighbour of the last. It lies at random in its own part of the
    epoch (stratified sampling); the parts are equal. An epoch is always sampled in the same places.
    """
    num_positions = epoch_length(order)
    storage = storage_order(order)
    length = -(-_STRETCH // window) * window
    num_stretches = max(_LEAST_STRETCHES, num_measured // length)
    if num_positions <= limit or num_stretches * (length + window + 1) >= num_positions:
        begin = epoch * order.epoch_size
        codes = order.read(begin, min(begin + num_positions, order.num_examples))
        return _whole(codes, storage)
    # A part of the epoch for each stretch, and the whole windows at which it may begin there: the
    # last one leaves room for the stretch and the neighbour of its last example.
    edges = np.arange(num_stretches + 1) * (num_positions / num_stretches)
    first = -(-edges[:-1] // window).astype(np.int64)
    last = ((edges[1:] - length - 1) // window).astype(np.int64)
    starts = np.random.default_rng(0).integers(first, np.maximum(first, last) + 1) * window
    codes = codes_of_stretches(order, epoch, starts, length + 1, exact=False)
    return _stretches(order, starts, codes, num_positions, storage)


def _stretches(
    order: Order, starts: Int64s, codes: Int64s, num_positions: int, storage: StorageOrder
) -> OrderSample:
    ranks, shards = storage.of(codes)
    return OrderSample(
        starts=starts,
        ranks=ranks,
        shards=shards,
        codes=codes,
        num_positions=num_positions,
        num_ranks=storage.num_ranks,
        shard_sizes=storage.shard_sizes,
        buffer_drawn=is_drawn(order),
    )


def epoch_length(order: Order) -> int:
    """Return how many examples of an epoch are handed out; the last batch may be dropped."""
    return min(order.epoch_size, order.num_examples)


def _whole(codes: Int64s, storage: StorageOrder) -> OrderSample:
    ranks, shards = storage.of(codes)
    if len(ranks) != storage.num_ranks or storage.num_read != storage.num_ranks:
        # Some are left out, or come twice: ranks among those that are handed out.
        by_rank = np.argsort(ranks, kind="stable")
        ranks[by_rank] = np.arange(len(ranks))
        shards = np.unique(shards, return_inverse=True)[1]
    return sample_of(ranks, shards, codes)


def is_drawn(order: Order) -> bool:
    """Whether what a buffer does to stretches is drawn; stages are replayed."""
    return order.num_buffered is not None and order.settings.stages is None


def codes_of_stretches(
    order: Order, epoch: int, starts: Int64s, length: int, *, exact: bool
) -> Int64s:
    """Return the codes at stretches of an epoch, int64[len(starts), length].

    Behind a shuffle buffer they are replayed if `exact`, else drawn from the distribution of the
    buffer, which takes no time for what comes before. Equal seeds of the shuffle draw equally, so
    that hosts and epochs that shuffle alike stay alike.
    """
    positions = starts[:, None] + np.arange(length)
    if exact or order.num_buffered is None or not is_drawn(order):
        codes = order.codes_at((positions + epoch * order.epoch_size).ravel())
        return codes.reshape(positions.shape)
    stream, begin = (0, epoch * order.epoch_size) if order.settings.repeat_files else (epoch, 0)
    reading = order.reading(stream, stop=int(positions[-1, -1]) + 1 + begin)
    seeds = order.seeds.of_buffer(stream)
    inputs = drawn_stretches(
        reading.num_examples,
        order.num_buffered,
        starts + begin,
        length,
        np.random.default_rng([seeds.seed, seeds.seed2]),
    )
    return reading.codes_at(inputs.ravel()).reshape(positions.shape)
