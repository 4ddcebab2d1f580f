"""The order of litdata's StreamingDataset, from the lengths of its chunks alone.

Sources: litdata/streaming/shuffle.py (FullShuffle), streaming/combined.py, utilities/shuffle.py
(_associate_chunks_and_intervals_to_workers, _block_shuffle), utilities/dataset_utilities.py
(subsample_streaming_dataset) and streaming/dataloader.py (epochs are counted from 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders import loader_sequence
from shardctl.loaders.loader import release_of
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence
from shardctl.stages import part as parts
from shardctl.stages.stages import Mixture, Pipeline, Read

_SEED, _WINDOW = 42, 256
_ONE_NODE = "all ranks are on one node; on several, epochs behind the first have another order"
_ON_DISK = "the chunks are on a local disk or in a bucket; on NFS, Lustre or GPFS the order differs"
_WINDOWS, _BLOCKS = (0, 2, 70), (0, 2, 75)  # versions that shuffle so


class StreamingDataset(parts.Stage):
    """`litdata.StreamingDataset(..)`, by the arguments that its order comes from."""

    effect = "shuffles chunks and items, and shares them among ranks"
    shuffle: bool = False
    drop_last: bool | None = None
    seed: parts.Number = _SEED
    subsample: float = 1.0
    item_shuffle_window: parts.Number | None = None


class CombinedStreamingDataset(Mixture):
    """`litdata.CombinedStreamingDataset(datasets, seed, weights, iterate_over_all)`."""

    effect = "draws the next dataset by its weight"
    seed: int = _SEED
    weights: parts.Weights | None = None
    iterate_over_all: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weights is not None and len(self.weights) != len(self.inputs):
            raise UsageError(f"{self.name}: one weight for each input is needed")
        if self.iterate_over_all and self.weights:
            raise UsageError(f"{self.name}: weights need iterate_over_all=False")


def chain_of(config: LoaderConfig) -> Pipeline:
    """Return the chain of a configuration, that of its settings where it has none."""
    seed = _SEED if config.seed is None else config.seed
    plain = StreamingDataset(shuffle=config.shuffles, seed=seed)
    return config.stages or Pipeline(stages=(plain,))


def inputs_of(chain: Pipeline) -> tuple[tuple[Pipeline, ...], CombinedStreamingDataset | None]:
    """Return the chains of the datasets, and what mixes them if there are several."""
    if not isinstance(chain.source, CombinedStreamingDataset):
        return (chain,), None
    if chain.stages:
        raise UsageError("CombinedStreamingDataset is the last of a chain of litdata")
    return chain.source.inputs, chain.source


def litdata_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one rank yields of a StreamingDataLoader."""
    try:
        return _sequence(config)
    except ValueError as error:
        raise UsageError(f"litdata refuses these settings: {error}") from None


def _sequence(config: LoaderConfig) -> LoaderSequence:
    pipelines, mixture = inputs_of(chain_of(config))
    inputs = [_Chunks(one, config) for one in pipelines]
    batch = config.batch or 1

    def epoch(number: int) -> tuple[Int64s, Int64s]:
        counted = 1 + config.first_epoch + number
        rows = [one.of_workers(counted) for one in inputs]
        mixed = rows[0]
        if mixture is not None:
            # By default as many as a rank has without workers, in batches of 1.
            weights = mixture.weights or [int(np.ptp(one.bounds(1, 1))) for one in inputs]
            mixed = [_mixed(each, weights, mixture) for each in zip(*rows, strict=True)]
        return loader_sequence.dealt_by_workers(mixed, batch)

    # All epochs have as many items in as many batches.
    sizes = epoch(0)[1]
    found = loader_sequence.EpochByEpoch(
        [int(sizes.sum())] * config.epochs,
        lambda number: epoch(number)[0],
        batches=loader_sequence.UnequalBatches(np.tile(sizes, config.epochs))
        if config.batch
        else None,
        shuffles=any(one.made.shuffle for one in inputs),
    )
    if found.shuffles:
        later = config.num_hosts > 1 and config.first_epoch + config.epochs > 1
        on_disk = [_ON_DISK] * _is_from(config, _WINDOWS)
        found.assumptions = (*on_disk, *[_ONE_NODE] * later)
    return found


def _is_from(config: LoaderConfig, release: tuple[int, ...]) -> bool:
    return (release_of(config.version) or release) >= release


class _Chunks:
    """A StreamingDataset: where its chunks begin, and how many items of each are read."""

    def __init__(self, chain: Pipeline, config: LoaderConfig) -> None:
        is_dataset = len(chain.stages) == 1 and isinstance(chain.source, Read)
        made = chain.stages[0] if is_dataset else None
        if not isinstance(made, StreamingDataset):
            raise UsageError("an input of litdata is a reader behind which StreamingDataset stands")
        self.made, self._config = made, config
        source = config.whole_shards(chain.source)
        self.starts, self.sizes = source.starts_of_shards, source.lengths_of_shards
        if made.item_shuffle_window is not None and not _is_from(config, _BLOCKS):
            raise UsageError(f"litdata {config.version} has no item_shuffle_window")
        self._subsample(made.subsample)

    def _subsample(self, share: float) -> None:
        """Leave out what is not read; more than 1 reads chunks again."""
        if not 0 < share <= 1000:
            raise UsageError("StreamingDataset: subsample is more than 0")
        # As math.isclose has it.
        if abs(share - 1) <= 1e-9 * max(share, 1):
            return
        rng = np.random.RandomState([self.made.seed])
        order, starts, sizes = np.arange(len(self.sizes)), [self.starts[:0]], [self.sizes[:0]]
        while share > 0:
            if self.made.shuffle:
                order = order[rng.permutation(len(order))]
            kept = self.sizes[order]
            if share < 1:
                wanted = int(int(kept.sum()) * share)
                ends = np.cumsum(kept)
                num = int(np.argmax(ends >= wanted)) + 1 if wanted else 0
                kept = kept[:num].copy()
                kept[-1:] -= ends[num - 1 : num] - wanted
            starts.append(self.starts[order[: len(kept)]])
            sizes.append(kept)
            share -= 1.0
        self.starts, self.sizes = np.concatenate(starts), np.concatenate(sizes)
        if not len(self.sizes):
            raise UsageError(f"StreamingDataset: subsample={self.made.subsample} leaves no item")

    def bounds(self, workers: int, batch: int) -> Int64s:
        """Return where among all items in a row those of each worker of the rank begin, and end."""
        world, total = self._config.num_hosts, int(self.sizes.sum())
        rank, drops = self._config.host, self.made.drop_last
        drops = self._config.drop_remainder or (world > 1 if drops is None else drops)
        batches = total // batch // world
        of_worker = np.full(workers, batches // workers)
        of_worker[: batches % workers] += 1
        counts = np.tile(of_worker * batch, (world, 1))
        if not drops:
            counts[-1, batches % workers] += total - int(counts.sum())
        ends = np.cumsum(np.append(0, counts))
        return ends[rank * workers : (rank + 1) * workers + 1]

    def of_workers(self, epoch: int) -> list[Int64s]:
        """Return the items of each worker in an epoch, counted from 1."""
        config, seed, count = self._config, self.made.seed, len(self.sizes)
        order = np.arange(count)
        if self.made.shuffle:
            order = np.random.RandomState([seed, epoch]).permutation(count)
        ends = np.cumsum(self.sizes[order])
        bounds = self.bounds(max(config.workers, 1), config.batch or 1).tolist()
        found = []
        for low, high in pairwise(bounds):
            first, last = np.searchsorted(ends, [low, high - 1], side="right").tolist()
            pieces = []
            for at in range(first, last + 1):
                chunk, before = int(order[at]), int(ends[at] - self.sizes[order[at]])
                places = np.arange(max(low, before), min(ends[at], high)) - before
                if len(places):
                    pieces.append((chunk, self.starts[chunk] + places))
            # Before, a chunk was known by its place among those of the worker.
            by_chunk = _is_from(config, _BLOCKS)
            row = [self.starts[:0]]
            for place, (chunk, items) in enumerate(pieces):
                known = (count, epoch, chunk) if by_chunk else (len(pieces), epoch, place)
                row.append(self._shuffled(items, [seed, *known]) if self.made.shuffle else items)
            found.append(np.concatenate(row))
        return found

    def _shuffled(self, items: Int64s, seeds: list[int]) -> Int64s:
        """Return the items of a chunk in windows that are shuffled, and lie in any order."""
        rng, window = np.random.RandomState(seeds), self.made.item_shuffle_window
        window = _WINDOW if window is None else window
        if window <= 1 or not _is_from(self._config, _BLOCKS):
            return rng.permutation(items)
        blocks = [items[start : start + window] for start in range(0, len(items), window)]
        for block in blocks:
            rng.shuffle(block)
        if len(blocks) > 1:
            rng.shuffle(blocks)
        return np.concatenate(blocks)


def _mixed(
    rows: Sequence[Int64s], weights: Sequence[float], mixture: CombinedStreamingDataset
) -> Int64s:
    """Return what a worker draws from its part of each dataset."""
    rng = Random(mixture.seed)  # noqa: S311  # the generator of the library
    left, at = [*range(len(rows))], [0] * len(rows)
    shares = {number: weight / sum(weights) for number, weight in enumerate(weights)}
    found = []
    while True:
        which = left[0]
        if len(left) > 1 or not mixture.iterate_over_all:
            (which,) = rng.choices(left, weights=[shares[one] for one in left])
        if at[which] < len(rows[which]):
            found.append(rows[which][at[which]])
            at[which] += 1
        elif not mixture.iterate_over_all or len(left) == 1:
            return np.array(found, np.int64)
        else:
            left.remove(which)
            if not (total := sum(shares[one] for one in left)):
                raise UsageError(
                    "CombinedStreamingDataset: an input has no items, and litdata divides by 0"
                )
            shares = {one: shares[one] / total for one in left}
