"""PyTorch's own loaders, run over a source of indices."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.loaders.asked import Asked
from shardctl.errors import UsageError
from shardctl.loaders.live import LiveLoader, Source, library


class _Live(LiveLoader):
    """A loader of PyTorch's kind: made once, then iterated epoch by epoch."""

    def batches(self, asked: Asked, source: Source) -> Iterator[Int64s]:
        """Yield what one rank hands out, batch by batch."""
        torch = library("torch", "torch")
        examples = _Examples(source)
        with torch.random.fork_rng(devices=[]):
            try:
                if asked.global_seed is not None:
                    torch.manual_seed(asked.global_seed)
                self._check_seeds(asked, torch)
                loader = self.loader(asked, examples)
            except (ValueError, RuntimeError) as error:  # the latter of older versions
                raise UsageError(f"PyTorch refuses these settings: {error}") from error
            if not self.starts_at(asked, loader):
                # Workers that stay keep the examples as they are when they start.
                examples.are_read = bool(asked.persistent_workers)
                for _ in range(asked.first_epoch):
                    for _ in loader:
                        pass
                examples.are_read = True
            for epoch in range(asked.first_epoch, asked.first_epoch + asked.epochs):
                self.begin_epoch(asked, loader, epoch)
                yield from loader

    @abstractmethod
    def loader(self, asked: Asked, source: Any) -> Any:
        """Return the loader, to be iterated once an epoch."""

    def starts_at(self, asked: Asked, loader: Any) -> bool:
        """Whether an epoch can be read without those before it."""
        return asked.shares

    def begin_epoch(self, asked: Asked, loader: Any, epoch: int) -> None:
        """Tell the loader which epoch comes next."""
        if asked.shares:
            loader.sampler.set_epoch(epoch)

    def _check_seeds(self, asked: Asked, torch: Any) -> None:
        """Let torch see the seeds that it is given when an epoch begins."""
        if asked.seed is not None and asked.shuffle is not False:
            last = asked.first_epoch + asked.epochs - 1
            for epoch in (asked.first_epoch, last) if asked.shares else (0,):
                torch.Generator().manual_seed(asked.seed + epoch)


class LiveTorch(_Live):
    """`torch.utils.data.DataLoader` with the sampler that the settings ask for."""

    def loader(self, asked: Asked, source: Any) -> Any:
        """Return a DataLoader."""
        data = library("torch.utils.data", "torch")
        if asked.shares:
            return _made(data.DataLoader, asked, source, sampler=_dealt(data, asked, source))
        own = _own_generator(asked)
        return _made(data.DataLoader, asked, source, shuffle=_shuffles(asked), generator=own)


class LiveStateful(_Live):
    """`torchdata.stateful_dataloader.StatefulDataLoader`."""

    def loader(self, asked: Asked, source: Any) -> Any:
        """Return a StatefulDataLoader."""
        data = library("torchdata.stateful_dataloader", "stateful")
        if asked.shares:
            samplers = library("torchdata.stateful_dataloader.sampler", "stateful")
            sampler = _dealt(samplers, asked, source, name="StatefulDistributedSampler")
            return _made(data.StatefulDataLoader, asked, source, sampler=sampler)
        return _made(
            data.StatefulDataLoader,
            asked,
            source,
            shuffle=_shuffles(asked),
            generator=_own_generator(asked),
        )


class LiveAccelerate(_Live):
    """A DataLoader as `Accelerator.prepare` makes it for one of its processes."""

    def loader(self, asked: Asked, source: Any) -> Any:
        """Return a DataLoaderShard."""
        data = library("torch.utils.data", "torch")
        prepared = library("accelerate.data_loader", "accelerate")
        return prepared.prepare_data_loader(
            _made(data.DataLoader, asked, source, shuffle=_shuffles(asked)),
            num_processes=asked.num_hosts,
            process_index=asked.host,
            put_on_device=False,
            use_seedable_sampler=asked.global_seed is None,
            data_seed=asked.seed,
        )

    def starts_at(self, asked: Asked, loader: Any) -> bool:
        """Any epoch can be read first of the seedable sampler."""
        return asked.global_seed is None

    def begin_epoch(self, asked: Asked, loader: Any, epoch: int) -> None:
        """Tell the loader which epoch comes next."""
        loader.set_epoch(epoch)


class _Examples:
    """A source of which nothing is read while earlier epochs only have to be drawn."""

    def __init__(self, source: Source) -> None:
        self._source, self.are_read = source, True

    def __len__(self) -> int:
        return len(self._source)

    def __getitem__(self, index: int) -> np.int64:
        return self._source[index] if self.are_read else np.int64(index)


def _shuffles(asked: Asked) -> bool:
    return asked.seed is not None if asked.shuffle is None else asked.shuffle


def _own_generator(asked: Asked) -> Any:
    """Return the generator that a lone process gives its loader, None where it gives none."""
    if asked.seed is None or not _shuffles(asked):
        return None
    return library("torch", "torch").Generator().manual_seed(asked.seed)


def _dealt(samplers: Any, asked: Asked, source: Any, name: str = "DistributedSampler") -> Any:
    return getattr(samplers, name)(
        source,
        num_replicas=asked.num_hosts,
        rank=asked.host,
        shuffle=_shuffles(asked),
        seed=asked.seed or 0,
        drop_last=asked.drop_shard_remainder,
    )


def _made(kind: Any, asked: Asked, source: Any, **more: Any) -> Any:
    return kind(
        source,
        batch_size=asked.batch,
        num_workers=asked.workers,
        persistent_workers=bool(asked.persistent_workers),
        drop_last=asked.drop_remainder,
        collate_fn=_indices,
        **more,
    )


def _indices(examples: Any) -> Int64s:
    return np.atleast_1d(np.asarray(examples, np.int64))
