"""PyTorch's loaders, torchdata's and Accelerate's: as code, run over indices, and to continue.

The code is that of a chain (`chain_of`), call by call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.code.python_text import call, keywords, literal
from shardctl.errors import UsageError
from shardctl.live.library import OfDataLoader, imports_apart, refused
from shardctl.loaders import torch_stages as calls
from shardctl.loaders.loader import LoaderCall, Stop, library
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.loaders.torch import chain_of
from shardctl.loaders.torch_generator import Seeds
from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import Part, said_of
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Pipeline, Read
from shardctl.verbs.quality import compare_loaders as ways

_STREAM = """\
class Stream(IterableDataset):
    def __init__(self, source):
        self.source = source

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
        number, count = {number}, {count}
        block = -(-len(self.source) // count)
        for place in {places}:
            yield self.source[place]
"""
_STATE = """\
state = torch.load({file}, weights_only=False)
# Checkpoints of the Trainer and of Accelerate have several.
if isinstance(state, dict):
    state = state.get("cpu", state.get("torch_manual_seed"))
torch.set_rng_state(state)
"""
_FILES = ("indices", "weights", "lengths")


class _Code:
    """The lines of a chain, and what they import; `names` are those of what is made so far."""

    def __init__(self, config: LoaderConfig, loader: str, options: dict[str, str]) -> None:
        self.config, self.loader, self._options = config, loader, options
        self.imports: set[str] = set()
        self.lines: list[str] = []
        self.rank, self.count = ("rank", "world_size") if config.shares else ("0", "1")
        chain = chain_of(config, loader)
        self._parts = [*parts_of(chain)]
        names = self._chain(chain, "")
        if "node" in names and not self.lines[-1].startswith("loader ="):
            self._make("loader", calls.NodeLoader(), [names["node"]])
        elif "node" not in names and "loader" not in names:
            kind = calls.StatefulDataLoader if loader == "stateful" else calls.DataLoader
            self._stage(kind(), names, "")
        text = "\n".join(self.lines)
        self.imports |= {f"import {name}" for name in ("numpy", "torch") if f"{name}." in text}

    def _chain(self, chain: Pipeline, suffix: str) -> dict[str, str]:
        """Write a chain; return the names of the last dataset, sampler and so on."""
        source, readers = chain.source, list(self.config.sources)
        names = {"dataset": "source"}
        if isinstance(source, Read) and len(readers) > 1:
            number = readers.index(source)
            names = {"dataset": f"source_{number + 1}" if number else "source"}
        elif isinstance(source, calls.ConcatDataset | calls.MultiNodeWeightedSampler):
            made = "dataset" if isinstance(source, calls.ConcatDataset) else "node"
            inputs = [
                self._chain(one, f"{suffix}_{number}")[made]
                for number, one in enumerate(source.fed_by)
            ]
            given = [f"[{', '.join(inputs)}]"]
            if isinstance(source, calls.MultiNodeWeightedSampler):
                weights = {str(at): weight for at, weight in enumerate(source.weights)}
                mapped = (f"{literal(str(at))}: {name}" for at, name in enumerate(inputs))
                given = [f"{{{', '.join(mapped)}}}", repr(weights)]
                given += keywords(self._values(source, without=("inputs", "weights")))
                if self.config.shares and source.world_size is None:
                    given += ["rank=rank", "world_size=world_size"]
            names = {made: self._make(made + suffix, source, given)}
        stages: list[Part] = []
        for one in chain.stages:
            if isinstance(one, calls.Trainer):
                streams = _has(stages, calls.IterableDataset)
                stages += one.calls(self.config, streams=streams)
            else:
                stages.append(one)
        for number, stage in enumerate(stages):
            self._stage(stage, names, suffix)
            follows = stages[number + 1 : number + 2]
            if isinstance(stage, calls.SamplerWrapper):
                # Its elements are places of the dataset.
                function = f"{names['dataset']}.__getitem__"
                mapper: Any = follows[0] if follows else None
                if isinstance(mapper, calls.Mapper | calls.ParallelMapper):
                    del stages[number + 1]
                else:
                    mapper = calls.Mapper()
                values = keywords(self._values(mapper))
                self._make(names["node"], mapper, [names["node"], function, *values])
        return names

    def _stage(self, stage: Part, names: dict[str, str], suffix: str) -> None:
        """Write a call."""
        assert isinstance(stage, calls.TorchStage)
        made = stage.makes + suffix
        given = [names[stage.of]] if stage.of in names else []
        if isinstance(stage, calls.MapStyleWrapper):
            given.insert(0, names["dataset"])
        elif isinstance(stage, calls.Mapper | calls.ParallelMapper):
            given.append("lambda element: element")
        elif isinstance(stage, calls.RandomSplit):
            given.append(repr([int(n) if n == int(n) and n > 1 else n for n in stage.lengths]))
        match stage:
            case calls.ManualSeed() | calls.SetRngState():
                self._default_generator(stage)
                return
            case calls.IterableDataset():
                self._stream(stage)
                self.lines.append(f"{made} = Stream({given[0]})")
            case calls.Prepare():
                if "loader" not in names:
                    self._stage(calls.DataLoader(), names, suffix)
                self._prepare(made, stage)
            case _:
                made = "loader" if isinstance(stage, calls.NodeLoader) else made
                values = self._arguments(stage, names)
                self._make(made, stage, [*given, *keywords(values)])
        if isinstance(stage, calls.RandomSplit):
            self.lines[-1] += f"[{stage.part}]"
        if isinstance(stage, calls.StatefulDataLoader) and stage.sampler_generator is not None:
            self._seed(f"{made}.sampler.generator", stage.sampler_generator)
        names[stage.makes] = made

    def _arguments(self, stage: calls.TorchStage, names: dict[str, str]) -> dict[str, str]:
        """Return the arguments by name of a call; of some all are shown."""
        shown: tuple[str, ...] = ()
        own: dict[str, str] = {}
        match stage:
            case calls.DataLoader():
                return self._of_loader(stage, names)
            case calls.RandomSplit():
                return self._values(stage, without=("part", "lengths"))
            case calls.DistributedSampler():
                shown = ("shuffle", "seed", "drop_last")
                own = {"num_replicas": self.count, "rank": self.rank}
            case calls.BatchSampler():
                shown = ("batch_size", "drop_last")
        own |= {name: literal(getattr(stage, name)) for name in shown}
        return own | self._values(stage, without=("set_epoch",))

    def _make(self, made: str, part: Any, given: list[str]) -> str:
        """Write the line that makes something, and import the call; return the name."""
        name, at = part.name, part.at
        if name == "DistributedSampler" and self.loader == "stateful":
            name, at = "StatefulDistributedSampler", "torchdata.stateful_dataloader.sampler"
        name = "prepare_data_loader" if name == "prepare" else name
        self.imports.add(f"from {at} import {name}")
        self.lines += call(f"{made} = {name}", given)
        return made

    def _values(self, part: Part, without: Iterable[str] = ()) -> dict[str, str]:
        """Return the arguments of a call that are not its defaults, as source."""
        values = {}
        for name, value in said_of(part).items():
            if name in without or value is None:
                continue
            values[name] = repr(value)
            if name in _FILES:
                dtype = {"dtype": "int"} if name == "indices" else {}
                values[name] = _numbers(value, dtype)
            elif name == "generator":
                self.lines.append("generator = torch.Generator()")
                self._seed("generator", value)
                values[name] = "generator"
        return values

    def _seed(self, generator: str, given: Seeds) -> None:
        seed, draws = given if isinstance(given, tuple) else (given, 0)
        if self.lines and self.lines[-1] == f"{generator} = torch.Generator()":
            self.lines[-1] += f".manual_seed({seed})"
        else:
            self.lines.append(f"{generator}.manual_seed({seed})")
        if draws:
            self.lines.append(f"torch.randint(2, ({draws},), generator={generator})")

    def _of_loader(self, stage: calls.DataLoader, names: dict[str, str]) -> dict[str, str]:
        """Return the arguments of a DataLoader, those of the settings too."""
        config, values = self.config, self._values(stage)
        drops = stage.drop_last or config.drop_remainder
        workers = {name: value for name, value in self._options.items() if name != "drop_last"}
        values.pop("sampler_generator", None)
        if "batch_sampler" in names:
            return {"batch_sampler": names["batch_sampler"], **values, **workers}
        own = {"batch_size": literal(config.batch)} if stage.batch_size is None else {}
        own |= {"sampler": names["sampler"]} if "sampler" in names else {}
        values |= {"drop_last": "True"} if drops else {}
        return own | values | workers

    def _prepare(self, made: str, stage: calls.Prepare) -> None:
        prepared = {"num_processes": self.count, "process_index": self.rank, **self._values(stage)}
        if stage.dispatch_batches or _has(self._parts, calls.IterableDataset):
            prepared["put_on_device"] = "True"
        who = "for the Trainer, whose data_seed this is" if stage.data_seed else "by itself"
        self.lines.append(f"# As Accelerator.prepare does {who}.")
        self._make(made, stage, [made, *keywords(prepared)])

    def _default_generator(self, stage: calls.ManualSeed | calls.SetRngState) -> None:
        if isinstance(stage, calls.ManualSeed):
            self.lines.append("# Nothing that draws from PyTorch's generator may come between.")
            self.lines.append(f"torch.manual_seed({stage.seed})")
        elif stage.file.endswith(".npy"):
            loaded = f"torch.from_numpy(numpy.load({literal(stage.file)}))"
            self.lines.append(f"torch.set_rng_state({loaded})")
        else:
            self.lines += _STATE.format(file=literal(stage.file)).splitlines()
        if stage.draws_before:
            self.lines.append("# In place of what draws so often, as a model does that is made.")
            self.lines.append(f"torch.randint(2, ({stage.draws_before},))")

    def _stream(self, stage: calls.IterableDataset) -> None:
        shares = stage.worker_info != "ignored"
        number, count = (self.rank, self.count) if stage.hosts else ("0", "1")
        if shares:
            number, count = f"{number} * workers + worker", f"{count} * workers"
        places = "range(number, len(self.source), count)"
        if stage.worker_info == "block":
            places = "range(len(self.source))[number * block : (number + 1) * block]"
        self.imports.add("from torch.utils.data import IterableDataset, get_worker_info")
        text = _STREAM.format(number=number, count=count, places=places)
        self.lines += text.splitlines()


def _has(parts: Iterable[Part], kind: type[Part]) -> bool:
    return any(isinstance(one, kind) for one in parts)


def _numbers(value: Any, dtype: dict[str, str]) -> str:
    """Return numbers of a chain as source."""
    if not isinstance(value, str):
        return repr(list(value))
    if calls.range_in(value) is not None:
        return value
    load = "numpy.load" if value.endswith(".npy") else "numpy.loadtxt"
    how = {} if value.endswith(".npy") else {"ndmin": "1", **dtype}
    return f"{load}({', '.join([literal(value), *keywords(how)])}).tolist()"


class Torch(OfDataLoader):
    """`torch.utils.data.DataLoader` with the sampler that the settings ask for."""

    def batches(self, config: LoaderConfig) -> Iterator[Int64s]:
        """Yield what one rank yields, batch by batch; of the Trainer step by step."""
        torch, parts = library("torch", self.loader), self._parts(config)
        names: dict[str, Any] = {"rank": config.host, "world_size": config.num_hosts}
        read = [*config.sources.values()] or [config]
        for name, source in zip(self.names_of_sources(len(read)), read, strict=True):
            names[name] = source.indices
        streams = _has(parts, calls.IterableDataset)
        for one in parts:
            if not isinstance(one, calls.Prepare | calls.Trainer) or config.num_hosts == 1:
                continue
            if streams if one.dispatch_batches is None else one.dispatch_batches:
                raise UsageError(
                    "dispatch_batches=True: one process sends batches to the others, and here one "
                    "runs alone; run the script itself to compare it"
                )
        trainer = self._trainer(config)
        steps = trainer.gradient_accumulation_steps if trainer is not None else 1
        collate = partial(torch.tensor) if self.loader.name == "accelerate" else _indices
        # PyTorch's global generator is restored afterwards.
        with torch.random.fork_rng(devices=[]):
            try:
                self._check_seeds(config, torch)
                imports, lines = imports_apart(self.made(config))
                self.run(imports, names)
                # A batch as the indices themselves; the default collate would make tensors.
                for kind in {"DataLoader", "StatefulDataLoader"} & {*names}:
                    names[kind] = partial(names[kind], collate_fn=collate)
                self.run(lines, names)
            except (ValueError, RuntimeError) as error:  # the latter of older versions
                raise refused("PyTorch", error) from error
            for epoch in self.epochs(config, names):
                found = map(_indices, epoch)
                while step := [*islice(found, steps)]:
                    yield np.concatenate(step)

    def _parts(self, config: LoaderConfig) -> list[Part]:
        return [*parts_of(chain_of(config, self.loader.name))]

    def _trainer(self, config: LoaderConfig) -> calls.Trainer | None:
        parts = self._parts(config)
        return next((one for one in parts if isinstance(one, calls.Trainer)), None)

    def epoch_setter(self, config: LoaderConfig) -> str:
        """Return the name of the sampler that deals to ranks, or of the loader that has it."""
        parts = self._parts(config)
        if _has(parts, calls.NodeStage):
            return ""
        for one in parts:
            if isinstance(one, calls.DistributedSampler):
                return "sampler" if one.set_epoch else ""
            if isinstance(one, calls.Sampler) and not isinstance(one, calls.RandomSampler):
                return ""  # it draws
            if isinstance(one, calls.Trainer) and one.lengths is not None:
                return ""
        shuffles = any(
            isinstance(one, calls.RandomSampler)
            or (isinstance(one, calls.DataLoader) and one.shuffle)
            for one in parts
        )
        prepared = [one for one in parts if isinstance(one, calls.Prepare | calls.Trainer)]
        is_set = all(one.use_seedable_sampler or not shuffles for one in prepared)
        return "loader" if prepared and is_set else ""

    def draws_on(self, config: LoaderConfig) -> bool:
        """Whether the loader's own sampler shuffles, which draws at each iteration."""
        return not self.epoch_setter(config)

    def made(self, config: LoaderConfig) -> Iterable[str]:
        """Yield the lines that make the loader, behind those of its sampler or generator."""
        code = _Code(config, self.loader.name, self.options(config))
        return (*code.imports, *code.lines)

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

    def calls(self, config: LoaderConfig, stop: Stop) -> tuple[LoaderCall, ...]:
        """Return the calls; the Trainer skips batches, of which a step has several."""
        trainer = self._trainer(config)
        if trainer is not None and stop.steps_in_epoch is not None:
            size = trainer.per_device_train_batch_size or config.batch or 1
            size = size // config.num_hosts if trainer.split_batches else size
            batches = stop.steps_in_epoch * trainer.gradient_accumulation_steps
            more, rest = divmod(stop.in_batch, size)
            stop = replace(stop, steps_in_epoch=batches + more, in_batch=rest)
        return super().calls(config, stop)

    def advice(self, config: LoaderConfig, stop: Stop) -> Iterable[str]:
        """Yield what its own calls are worth."""
        trainer = self._trainer(config)
        if trainer is not None:
            return _of_checkpoint(trainer, stop)
        return (
            "accelerator.skip_first_batches(loader, N) continues in this epoch; the epochs that "
            "follow are read whole",
        )

    def ways(self, settings: ReadSettings, file_format: str) -> Iterator[ways.Way]:
        """Yield what the Trainer makes."""
        own = {"shuffle_seed": ways.seed_of(settings), "by": "skip_first_batches"}
        yield ways.way(settings, "accelerate", "Accelerate", continued="exactly", **own)


def _of_checkpoint(trainer: calls.Trainer, stop: Stop) -> Iterator[str]:
    """Yield what `resume_from_checkpoint` skips, repeats and loses (transformers/trainer.py)."""
    steps, epoch, at = stop.steps or 0, stop.epoch, stop.steps_in_epoch or 0
    skipped = at * trainer.gradient_accumulation_steps
    if trainer.train_sampling_strategy == "group_by_length" and epoch:
        yield (
            f"checkpoint-{steps}: group_by_length draws from PyTorch's generator, which a new "
            f"process has not moved by the epochs before, so epoch {epoch} comes in another order; "
            "some of its examples are lost and others repeated"
        )
    elif trainer.ignore_data_skip and at:
        yield (
            f"checkpoint-{steps}: with ignore_data_skip epoch {epoch} begins anew, so its first "
            f"{at} steps are repeated, and the last {at} of the run are lost"
        )
    else:
        yield (
            f"checkpoint-{steps}: resume_from_checkpoint continues exactly, with as many processes "
            f"and the same batch; it begins in epoch {epoch} and skips {skipped} batches"
        )
    if stop.in_batch:
        yield (
            f"a checkpoint holds whole steps: the {stop.in_batch} examples behind step {steps} "
            "come again"
        )


def drawn(settings: ReadSettings) -> dict[str, Any]:
    """Return the settings of a shuffle that draws from PyTorch's generator, without hosts."""
    seed = ways.seed_of(settings) if settings.global_seed is None else settings.global_seed
    return {"shuffle": True, "host": None, "global_seed": seed, "drop_shard_remainder": False}


def _indices(examples: Any) -> Int64s:
    return np.atleast_1d(np.asarray(examples, np.int64))
