"""What the quality metrics measure: a whole epoch, or stretches spread evenly over a large one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, last_not_above
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.spec.reads import Reads

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

    @cached_property
    def offsets(self) -> Floats:
        """Position less place in storage, float64[k, length], both as parts of the whole."""
        # + 0.5: the middle of a position, so that both scales run from 0 to 1 without a bias.
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
        # Of a sample, whole stretches: those that begin in this part.
        begin, end = (round(len(self.starts) * edge) for edge in (first, last))
        return self._cut(slice(begin, end), slice(None), self.starts[begin:end])

    def _cut(self, rows: slice, columns: slice, starts: Int64s) -> OrderSample:
        cut = {name: getattr(self, name)[rows, columns] for name in ("ranks", "shards", "codes")}
        return replace(self, starts=starts, **cut)


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
    # Stretches must fit beside each other; where they would take most of the epoch, all is read.
    most = num_stretches * (length + window + 1)
    if num_positions <= limit or most >= num_positions or order.codes.pads:
        begin = epoch * order.epoch_size
        codes = order.read(begin, min(begin + num_positions, order.num_examples))
        return _whole(codes[~order.codes.is_padding(codes)], storage)
    # A part of the epoch for each stretch, and the whole windows at which it may begin there: the
    # last one leaves room for the stretch and the neighbour of its last example.
    edges = np.arange(num_stretches + 1) * (num_positions / num_stretches)
    first = -(-edges[:-1] // window).astype(np.int64)
    last = ((edges[1:] - length - 1) // window).astype(np.int64)
    # Seed 0: the same places each time, so that two orders are compared at the same positions.
    # `np.maximum` keeps a part that is too short for its stretch from an empty choice.
    starts = np.random.default_rng(0).integers(first, np.maximum(first, last) + 1) * window
    # One more than the stretch: the neighbour of its last example.
    codes = order._codes_of_stretches(epoch, starts, length + 1, exact=False)
    ranks, shards = storage.of(codes)
    return OrderSample(
        starts=starts,
        ranks=ranks,
        shards=shards,
        codes=codes,
        num_positions=num_positions,
        num_ranks=storage.num_ranks,
        shard_sizes=storage.shard_sizes,
        buffer_drawn=order.draws_stretches,
    )


def epoch_length(order: Order) -> int:
    """Return how many examples of an epoch are yielded; the last batch may be dropped."""
    return min(order.epoch_size, order.num_examples)


def _whole(codes: Int64s, storage: StorageOrder) -> OrderSample:
    ranks, shards = storage.of(codes)
    if len(ranks) != storage.num_ranks or storage.num_read != storage.num_ranks:
        # Some are left out, or come twice: ranks among those that are yielded.
        # Ranks without gaps, 0 .. n - 1; an example that comes twice gets two that follow each
        # other.
        by_rank = np.argsort(ranks, kind="stable")
        ranks[by_rank] = np.arange(len(ranks))
        shards = np.unique(shards, return_inverse=True)[1]
    return sample_of(ranks, shards, codes)


# The distribution of a shuffle buffer: stretches of its order, drawn at random.


def drawn_stretches(
    num_elements: int, buffer_size: int, starts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    """Return input positions that come out at stretches of a shuffle, int64[len(starts), length].

    Each has the distribution of a `ShuffleReplay` whose random numbers are uniform:
    every step empties one of B places and fills it with the next input, until the input ends. The
    cost is that of the stretches, however large the buffer and late the start.

    >>> rng = np.random.default_rng(1)
    >>> drawn_stretches(10, 1, np.array([0, 7]), 3, rng).tolist()  # a buffer of one keeps the order
    [[0, 1, 2], [7, 8, 9]]
    """
    # A buffer that is larger than the input acts like one of its size.
    size = max(1, min(buffer_size, num_elements))
    last_full = num_elements - size
    # All arrays below are int64[stretches, length]: step s yields output s of the shuffle.
    steps = starts[:, None] + np.arange(length)
    places = generator.integers(0, size, steps.shape)
    # Once nothing comes in, a place is emptied once; which inputs are left by then is uniform.
    for row in np.flatnonzero(steps[:, -1] >= last_full).tolist():
        # In these steps the buffer drains: places are chosen without repetition.
        ending = steps[row] >= last_full
        places[row, ending] = generator.choice(size, int(ending.sum()), replace=False)
    # Within a stretch a place may be emptied twice; then what it holds is certain.
    later, earlier = _emptied_again(places)
    is_first = np.ones(places.shape, bool)
    is_first.flat[later] = False
    inputs = np.empty_like(steps)
    held = _held(size, np.minimum(starts, last_full), is_first.sum(axis=1), length, generator)
    # Which drawn content goes to which first visit is random as well; 2.0 sorts the others last.
    by_chance = np.argsort(np.where(is_first, generator.random(places.shape), 2.0), axis=1)
    np.put_along_axis(inputs, by_chance, held, axis=1)
    # A place that is emptied again holds what came in when it was emptied before.
    inputs.flat[later] = steps.flat[earlier] + size
    return inputs


def _held(
    size: int, steps: Int64s, counts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    """Return what `counts` places of a buffer hold after so many steps, int64[len(steps), length].

    Looking back, step by step: a step emptied one of k places that no later step did with
    probability k / size, so that these are met at geometric distances, as coupons are by a
    collector. Places never emptied still hold some of the first inputs. Entries from `counts` on
    mean nothing.
    """
    # Column j: how many of the places are not yet met when the j-th is sought, looking back.
    left = np.maximum(counts[:, None] - np.arange(length), 1)
    # Cut where it is beyond the first step anyway, so that the sums cannot overflow.
    ago = np.minimum(generator.geometric(left / size), size + steps[:, None]).cumsum(axis=1)
    # Step s brings in input s + size; `ago` beyond the first step is a place never emptied.
    held: Int64s = size + steps[:, None] - ago
    # `ago` increases along a row, so the last valid entry tells whether a row has such places.
    for row in np.flatnonzero((ago > steps[:, None])[np.arange(len(steps)), counts - 1]).tolist():
        never = np.flatnonzero(ago[row, : counts[row]] > steps[row])
        held[row, never] = generator.choice(size, len(never), replace=False)
    return held


def _emptied_again(places: Int64s) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (flat index of a visit, that of the visit before it to the same place in its row)."""
    # Stable: visits to one place stay in the order of steps, so neighbours are successive visits.
    by_place = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, by_place, axis=1)
    rows, columns = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    width = places.shape[1]
    # Flat indices into the array of shape [stretches, length].
    return rows * width + by_place[rows, columns + 1], rows * width + by_place[rows, columns]


# The places in storage of the examples that an order reads: ranks from 0, and the shards.

_TIMES_LONGER = 4  # than the codes asked for a table of all codes may be


def storage_order(order: Order) -> StorageOrder:
    """Return the places in storage of what an order reads in an epoch."""
    return StorageOrder(order.reads_of_epoch, order.codes)


class StorageOrder:
    """Ranks of example codes in the order of storage, among all that is read.

    An example that is read twice has one rank. A shard's number counts the shards that are read,
    from 0.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.spec.subsplit import SplitRange
    >>> from shardctl.spec.reads import reads_of
    >>> split = Split.even(name="train", num_examples=12, num_shards=3)
    >>> data = Dataset(name="d", splits=(split,))
    >>> reads = reads_of(data, [SplitRange(split=split, start=6, stop=10),
    ...                           SplitRange(split=split, start=2, stop=8)])
    >>> ranks = StorageOrder(reads, ExampleCodes(data, ["train"]))
    >>> ranks.num_ranks, ranks.shard_sizes.tolist()
    (8, [2, 4, 2])
    >>> [array.tolist() for array in ranks.of(np.array([2, 6, 9]))]
    [[0, 4, 7], [0, 1, 2]]
    """

    def __init__(self, reads: Reads, codes: ExampleCodes) -> None:
        starts, takes = codes.first_codes(reads), reads.take[:]
        splits, shards, stops = reads.split[:], reads.shard[:], starts + takes
        # Mostly the rows lie in the order of storage, each with examples of its own.
        if not len(takes) or takes.min() < 1 or (starts[1:] < stops[:-1]).any():
            rows, starts, stops = _parted(starts, stops)
            splits, shards = splits[rows], shards[rows]
        sizes = stops - starts
        # Whether each row but the first begins another shard: bool[rows - 1].
        changes = (splits[1:] != splits[:-1]) | (shards[1:] != shards[:-1])
        self._starts, self._stop = starts, int(stops[-1]) if len(stops) else 0
        if changes.all():  # each row is a shard
            self._shards, self.shard_sizes = np.arange(len(starts)), sizes
        else:
            self._shards = np.concatenate([np.zeros(1, np.int64), np.cumsum(changes)])
            # bincount's weights are floats, exact up to 2**53 examples in a shard.
            self.shard_sizes = np.bincount(self._shards, sizes).astype(np.int64)
        # What is added to a code to get its rank: the examples before its row less the row's start.
        self._offsets: Int64s = np.cumsum(sizes) - stops
        self.num_ranks = int(sizes.sum())
        self.num_read = int(takes.sum())

    @property
    def first_codes(self) -> Int64s:
        """The code of the first example that is read of each shard, int64[shards]."""
        codes: Int64s = self._starts[np.flatnonzero(np.diff(self._shards, prepend=-1))]
        return codes

    def of(self, codes: Int64s) -> tuple[Int64s, Int64s]:
        """Return (rank, number of the shard), int64 of the shape of `codes`."""
        if len(self._starts) == 1:
            return codes + self._offsets[0], np.zeros_like(codes)
        rows = self._rows(codes)
        return codes + self._offsets[rows], self._shards[rows]

    def _rows(self, codes: Int64s) -> NDArray[np.signedinteger]:
        span = int(self._stop - self._starts[0]) if len(self._starts) else 0
        # A table as long as all codes pays only if about as many are looked up.
        if not 0 < span <= _TIMES_LONGER * codes.size:
            return last_not_above(self._starts, codes)
        # A table of all codes: millions in no order, each found by halving, miss the cache again
        # and again.
        every = np.arange(len(self._starts), dtype=np.int32)
        table = np.repeat(every, np.diff(self._starts, append=self._stop))
        return np.asarray(table[codes - self._starts[0]])


def _parted(starts: Int64s, stops: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return (row, start, stop) in the order of storage, of what no earlier row reads as well."""
    rows = np.argsort(starts, kind="stable")
    starts, stops = starts[rows], stops[rows]
    # What an earlier row reads as well is cut from a later one.
    # The furthest end of all earlier rows; what starts below it was read by one of them.
    reached = np.maximum.accumulate(np.concatenate([[0], stops]))[:-1]
    starts = np.maximum(starts, reached)
    kept = np.flatnonzero(stops > starts)
    return rows[kept], starts[kept], stops[kept]
