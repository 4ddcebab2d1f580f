"""Grain's own loaders, run over a source of indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.errors import UsageError
from shardctl.loaders.live import LiveLoader, Source, library

# How many examples are handed on at once where no batches are asked for.
_PIECE = 1024


class LiveGrain(LiveLoader):
    """`grain.DataLoader` over an IndexSampler, or a MapDataset, as the settings ask for."""

    def batches(self, asked: Asked, source: Source) -> Iterator[Int64s]:
        """Yield what one process hands out, batch by batch."""
        grain = library("grain", "grain")
        # Its worker processes read flags, which nobody parsed where no absl app was run.
        flags = library("absl.flags", "grain").FLAGS
        if not flags.is_parsed():
            flags.mark_as_parsed()
        maps = asked.host_by == "examples" or asked.buffer is not None
        try:
            made = (_map_dataset if maps else _data_loader)(grain, asked, source)
            iterator = iter(made)
        except (TypeError, ValueError) as error:
            raise UsageError(f"Grain refuses these settings: {error}") from error
        try:
            yield from _pieces(iterator, single=asked.batch is None)
        except Exception as error:
            # What a worker of 0.2.12 raises comes as an error of another kind.
            refuses = isinstance(error, TypeError | ValueError | ZeroDivisionError)
            if not refuses and type(error).__name__ != "RemoteWorkerError":
                raise
            raise UsageError(f"Grain refuses these settings: {error}") from error
        finally:
            _close(iterator)


def _data_loader(grain: Any, asked: Asked, source: Source) -> Any:
    sampler = grain.samplers.IndexSampler(
        len(source),
        grain.sharding.ShardOptions(asked.host, asked.num_hosts, asked.drop_shard_remainder)
        if asked.shares
        else grain.sharding.NoSharding(),
        shuffle=asked.seed is not None,
        num_epochs=asked.epochs,
        seed=asked.seed,
    )
    batches = [grain.transforms.Batch(asked.batch, asked.drop_remainder)] if asked.batch else []
    return grain.DataLoader(
        data_source=source, sampler=sampler, operations=batches, worker_count=asked.workers
    )


def _map_dataset(grain: Any, asked: Asked, source: Source) -> Any:
    dataset = grain.MapDataset.source(source)
    if asked.seed is not None:
        dataset = dataset.shuffle(seed=asked.seed)
    if asked.buffer is not None:
        dataset = grain.experimental.WindowShuffleMapDataset(
            dataset, window_size=asked.buffer, seed=asked.buffer_seed
        )
    dataset = dataset.repeat(asked.epochs)
    if asked.shares:
        dataset = dataset[asked.host :: asked.num_hosts]
    dataset = dataset.to_iter_dataset()
    if asked.batch is not None:
        dataset = dataset.batch(asked.batch, drop_remainder=asked.drop_remainder)
    if asked.workers:
        dataset = dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=asked.workers))
    return dataset


def _pieces(iterator: Any, *, single: bool) -> Iterator[Int64s]:
    if not single:
        for batch in iterator:
            yield np.array(batch, np.int64)
        return
    piece: list[int] = []
    for example in iterator:
        piece.append(int(example))
        if len(piece) == _PIECE:
            yield np.array(piece, np.int64)
            piece = []
    if piece:
        yield np.array(piece, np.int64)


def _close(iterator: Any) -> None:
    """End the worker processes: a DataLoader's iterator keeps them in the one that it wraps."""
    for owner in (iterator, getattr(iterator, "_iterator", None)):
        close = getattr(owner, "close", None)
        if close is not None:
            close()
