"""PyTorch's loaders, torchdata's and Accelerate's: as code, run over indices, and to continue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.source import call, keywords, literal
from shardctl.live.library import DATA_LOADER, OfDataLoader, refused
from shardctl.loaders.loader import Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality import loaders as ways


class Torch(OfDataLoader):
    """`torch.utils.data.DataLoader` with the sampler that the settings ask for.

    kind, sampler: the classes that it is made of, as the code imports them.
    """

    kind, sampler = "DataLoader", "DistributedSampler"
    at, sampler_at = "torch.utils.data", "torch.utils.data.distributed"

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one rank yields, batch by batch."""
        torch = library("torch", self.loader)
        source = range(config.num_examples)
        names: dict[str, Any] = {"source": source, "rank": config.host}
        names["world_size"] = config.num_hosts
        # PyTorch's global generator is restored afterwards.
        with torch.random.fork_rng(devices=[]):
            try:
                self._check_seeds(config, torch)
                self.run(self.imports(config), names)
                # A batch as the indices themselves; the default collate would make tensors.
                names[self.kind] = partial(names[self.kind], collate_fn=_indices)
                self.run(self.made(config), names)
            except (ValueError, RuntimeError) as error:  # the latter of older versions
                raise refused("PyTorch", error) from error
            # Without set_epoch, earlier epochs are iterated, as their draws move the generator.
            if not self.epoch_setter(config):
                for _ in range(config.first_epoch):
                    for _ in names["loader"]:
                        pass
            yield from self.epochs(config, names)

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the sampler that deals to ranks."""
        return "sampler" if config.shares else ""

    def draws_on(self, config: LoaderConfig) -> bool:
        """Whether the loader's own sampler shuffles, which draws at each iteration."""
        return not config.shares

    def imports(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the imports of the loader, and of its sampler or generator."""
        yield "import torch" if not config.shares and config.shuffles else ""
        yield f"from {self.at} import {self.kind}"
        yield f"from {self.sampler_at} import {self.sampler}" if config.shares else ""

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make the loader, behind those of its sampler or generator."""
        options = {"batch_size": literal(config.batch)}
        # Shared: a sampler that deals to ranks. Alone: the DataLoader's own shuffle.
        if config.shares:
            dealt = {
                "num_replicas": "world_size",
                "rank": "rank",
                "shuffle": literal(config.shuffles),
                "seed": literal(config.seed or 0),
                "drop_last": literal(config.drop_shard_remainder),
            }
            yield from call(f"sampler = {self.sampler}", ["source", *keywords(dealt)])
            options["sampler"] = "sampler"
        elif config.shuffles:
            # torch.manual_seed seeds the default generator; a seed of its own needs a generator
            # object.
            options["shuffle"] = "True"
            if config.global_seed is None:
                yield f"generator = torch.Generator().manual_seed({config.seed})"
                options["generator"] = "generator"
            else:
                yield from _manual_seed(config)
        options |= self.options(config)
        yield from call(f"loader = {self.kind}", ["source", *keywords(options)])

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield that it keeps no position."""
        return (
            "a DataLoader keeps no position: -f python reads the batches that are left by index, "
            "and none of those before",
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield the sampler that deals to ranks, and the loader's own."""
        dealt = {"shuffle_seed": ways.seed_of(settings), "host": settings.host or "0/1"}
        yield ways.way(settings, "torch", "torch: DistributedSampler", **dealt)
        yield ways.way(
            settings, "torch", "torch: DataLoader(shuffle)", shares=False, **drawn(settings)
        )

    def _check_seeds(self, config: LoaderConfig, torch: Any) -> None:
        """Let torch see the seeds that it is given when an epoch begins."""
        if config.seed is not None and config.shuffle is not False:
            # A sampler adds the epoch to the seed, so the largest seed is that of the last epoch.
            last = config.first_epoch + config.epochs - 1
            for epoch in (config.first_epoch, last) if config.shares else (0,):
                torch.Generator().manual_seed(config.seed + epoch)


class Stateful(Torch):
    """`torchdata.stateful_dataloader.StatefulDataLoader`."""

    kind, sampler = "StatefulDataLoader", "StatefulDistributedSampler"
    at, sampler_at = "torchdata.stateful_dataloader", "torchdata.stateful_dataloader.sampler"

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterator[str]:
        """Yield what its own state is worth."""
        yield (
            "load_state_dict continues too, from a state that was saved then and with as many "
            "workers; this plan needs no state"
        )
        if not config.shares and config.seed is not None:
            yield (
                "the loader draws other numbers from its own generator after load_state_dict, so "
                "the epochs that follow are others then; those of this plan are as if never stopped"
            )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield its loader, with a sampler that deals where there are several hosts."""
        own: dict[str, Any] = {"shuffle_seed": ways.seed_of(settings)}
        own = {**(drawn(settings) if settings.host is None else own), "by": "state_dict"}
        yield ways.way(settings, "stateful", "StatefulDataLoader", continued="exactly", **own)


class Accelerate(Torch):
    """A DataLoader as `Accelerator.prepare` makes it for one of its processes."""

    skips = "skip_first_batches"

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the loader, where its sampler has a seed of its own."""
        return "" if self.draws_on(config) else "loader"

    def draws_on(self, config: LoaderConfig) -> bool:
        """Whether torch.manual_seed is what the order comes from."""
        return config.global_seed is not None

    def imports(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the imports of a DataLoader and of what prepares it."""
        yield "import torch" if self.draws_on(config) else ""
        yield DATA_LOADER
        yield "from accelerate.data_loader import prepare_data_loader"

    def made(self, config: LoaderConfig) -> Iterator[str]:
        """Yield the lines that make a DataLoader and prepare it."""
        draws = self.draws_on(config)
        if draws:
            yield from _manual_seed(config)
        options = {"batch_size": literal(config.batch), "shuffle": literal(config.shuffles)}
        options |= self.options(config)
        yield from call("loader = DataLoader", ["source", *keywords(options)])
        prepared = {
            "num_processes": "world_size" if config.shares else "1",
            "process_index": "rank" if config.shares else "0",
            "use_seedable_sampler": literal(not draws),
        }
        if draws:
            yield "# As Accelerator.prepare does by itself."
        # With a data_seed the sampler is seeded by epoch; without it, torch's generator draws.
        else:
            prepared["data_seed"] = literal(config.seed)
            yield "# As Accelerator.prepare does for the Trainer, whose data_seed this is."
        yield from call("loader = prepare_data_loader", ["loader", *keywords(prepared)])

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield what its own call is worth."""
        return (
            "accelerator.skip_first_batches(loader, N) continues in this epoch; the epochs that "
            "follow are read whole",
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield what the Trainer makes."""
        own = {"shuffle_seed": ways.seed_of(settings), "by": "skip_first_batches"}
        yield ways.way(settings, "accelerate", "Accelerate", continued="exactly", **own)


def drawn(settings: ReadSettings) -> dict[str, Any]:
    """Return the settings of a shuffle that draws from PyTorch's generator, without hosts."""
    seed = ways.seed_of(settings) if settings.global_seed is None else settings.global_seed
    return {"shuffle": True, "host": None, "global_seed": seed, "drop_shard_remainder": False}


def _manual_seed(config: LoaderConfig) -> Iterator[str]:
    yield "# Nothing that draws from PyTorch's generator may come between."
    yield f"torch.manual_seed({config.global_seed})"


def _indices(examples: Any) -> Int64s:
    return np.atleast_1d(np.asarray(examples, np.int64))
