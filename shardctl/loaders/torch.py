"""PyTorch's own loaders, run over a source of indices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.loaders.live import LiveLoader, Source, library


class LiveTorch(LiveLoader):
    """`torch.utils.data.DataLoader` with the sampler that the settings ask for."""

    def batches(self, asked: Asked, source: Source) -> Iterator[Int64s]:
        """Yield what one rank hands out, batch by batch."""
        data = library("torch.utils.data", "torch")
        sampler = data.DistributedSampler(
            source,
            num_replicas=asked.num_hosts,
            rank=asked.host,
            shuffle=asked.seed is not None if asked.shuffle is None else asked.shuffle,
            seed=asked.seed or 0,
            drop_last=asked.drop_shard_remainder,
        )
        loader = data.DataLoader(
            source,
            batch_size=asked.batch or 1,
            sampler=sampler,
            num_workers=asked.workers,
            drop_last=asked.drop_remainder,
            collate_fn=_indices,
        )
        for epoch in range(asked.first_epoch, asked.first_epoch + asked.epochs):
            sampler.set_epoch(epoch)
            yield from loader


def _indices(examples: list[Any]) -> Int64s:
    return np.array(examples, np.int64)
