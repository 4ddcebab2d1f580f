"""Objects of PyTorch, torchdata, Accelerate and the Trainer, read back as the chain they stand for.

Where an object stands in its random numbers is part of it: a generator that was drawn from is its
seed and the number of its draws. What is unknown is refused by name. Nothing is drawn here.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from shardctl.base.by_name import named
from shardctl.errors import UsageError
from shardctl.live.library import LoaderObject, reader_of
from shardctl.loaders import torch_stages as calls
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.torch_generator import Seeds, draws_since
from shardctl.stages.part import Source, Stage
from shardctl.stages.stages import Pipeline, Read

_SAMPLERS = ("torch.utils.data", "torchdata.stateful_dataloader.sampler", "accelerate.data_loader")
_FROM_HERE = (
    "PyTorch's default generator stands where it stands now: manual_seed({}), then {} draws; "
    "another run begins there only if it seeds and draws alike"
)


def read_object(made: Any) -> LoaderObject | None:
    """Return what an object was made with, None of one that is of no library here.

    Raises:
        UsageError: what it yields cannot be seen, or it is being iterated.
    """
    names = {f"{of.__module__.partition('.')[0]}.{of.__name__}" for of in type(made).__mro__}
    found = _Reading()
    if "transformers.Trainer" in names:
        return found.trainer(made)
    if names & {"accelerate.DataLoaderShard", "accelerate.DataLoaderDispatcher"}:
        return found.prepared(made)
    if "torch.DataLoader" in names:
        return found.loader(made)
    if names & {"torchdata.BaseNode", "torchdata.Loader"}:
        pipeline = found.node(made)
        return found.object("stateful", pipeline.source, list(pipeline.stages))
    return None


class _Reading:
    """What is found in an object as it is read."""

    def __init__(self) -> None:
        self.known: dict[Read, Any] = {}
        self.settings: dict[str, Any] = {}
        self.assumed: list[str] = []
        self.first: list[Stage] = []

    def object(self, loader: str, source: Source, stages: Sequence[Stage]) -> LoaderObject:
        """Return what was found, as one."""
        return LoaderObject(
            loader=loader,
            stages=Pipeline(source=source, stages=(*self.first, *stages)),
            settings=self.settings,
            sources=self.known,
            assumptions=tuple(self.assumed),
        )

    # Loaders.

    def loader(self, made: Any) -> LoaderObject:
        """Read a DataLoader, or torchdata's."""
        is_stateful = any(of.__name__ == "StatefulDataLoader" for of in type(made).__mro__)
        _check_type(made, ("torch.utils.data", "torchdata.stateful_dataloader"))
        loader = "stateful" if is_stateful else "torch"
        if type(made.dataset).__module__.startswith("datasets.") and _streams(made.dataset):
            # A stream of Hugging Face, with the workers and batches of its DataLoader.
            found: LoaderObject = named(LOADERS["hf"].reads)(made.dataset)
            own = {"batch": made.batch_size, "drop_remainder": made.drop_last}
            own["workers"] = made.num_workers
            return replace(found, settings={**found.settings, **_given(own)})
        source, stages = self._loader(made, is_stateful=is_stateful)
        return self.object(loader, source, stages)

    def _loader(self, made: Any, *, is_stateful: bool) -> tuple[Source, list[Stage]]:
        """Return the source and the stages of a DataLoader; settings are noted."""
        if getattr(made, "_iterator", None) is not None:
            raise UsageError("the DataLoader is being iterated; read it before")
        if made.num_workers and not getattr(made, "in_order", True):
            raise UsageError("in_order=False yields batches as they are ready, in no fixed order")
        pipeline = self.dataset(made.dataset)
        workers = {"workers": made.num_workers, "persistent_workers": made.persistent_workers}
        self.settings |= {name: value for name, value in workers.items() if made.num_workers}
        sampler, batches = made.sampler, []
        if made.batch_size is not None:
            self.settings["batch"] = int(made.batch_size)
            self.settings |= _given({"drop_remainder": made.drop_last})
        elif made.batch_sampler is not None:
            batches = [self._batches(made.batch_sampler)]
            sampler = made.batch_sampler.sampler
        kind = calls.StatefulDataLoader if is_stateful else calls.DataLoader
        name, own = type(sampler).__name__, getattr(sampler, "generator", None)
        plain = name == "RandomSampler" and not sampler.replacement and not sampler._num_samples
        is_shared = own is made.generator
        if plain and not batches and (is_shared or is_stateful):
            seed = self.generator(own) if made.generator is not None or not is_stateful else None
            drawn = self.generator(own) if is_stateful and not is_shared else None
            shuffled = kind(shuffle=True, generator=seed)
            if drawn is not None:
                shuffled = calls.StatefulDataLoader(shuffle=True, sampler_generator=drawn)
            return pipeline.source, [*pipeline.stages, shuffled]
        stages = [*pipeline.stages, *self._sampler(sampler, made.dataset), *batches]
        if own is not None and is_shared:
            raise UsageError(f"{name} and its DataLoader draw from one generator in turn")
        if made.generator is not None:
            stages.append(kind(generator=self.generator(made.generator)))
        return pipeline.source, stages

    def prepared(self, made: Any) -> LoaderObject:
        """Read a DataLoader that Accelerate has prepared."""
        if made.skip_batches:
            raise UsageError("skip_first_batches made it: read the loader that it was made of")
        base = made.base_dataloader
        shard = base.batch_sampler
        is_shard = type(shard).__name__ == "BatchSamplerShard"
        dispatches = type(made).__name__ == "DataLoaderDispatcher"
        count, index = (shard.num_processes, shard.process_index) if is_shard else (1, 0)
        if dispatches:
            count, index = made.state.num_processes, made.state.process_index
        inner = shard.batch_sampler if is_shard else shard
        if inner is None or type(inner).__name__ != "BatchSampler":
            raise UsageError(f"{type(inner).__name__}: batches of it are not known")
        sampler, data_seed = inner.sampler, None
        pipeline = self.dataset(base.dataset)
        stages = [*pipeline.stages]
        if type(sampler).__name__ == "SeedableRandomSampler":
            # It counts the iterations itself.
            data_seed = int(sampler.initial_seed) + made.iteration
            stages.append(calls.RandomSampler(num_samples=sampler._num_samples))
        elif (
            getattr(sampler, "generator", None) is not None and sampler.generator is base.generator
        ):
            if type(sampler).__name__ != "RandomSampler" or sampler._num_samples:
                raise UsageError("a sampler and its DataLoader draw from one generator in turn")
            stages.append(calls.DataLoader(shuffle=True, generator=self.generator(base.generator)))
        else:
            stages += self._sampler(sampler, base.dataset)
            if is_shard and made.iteration:
                self.assumed.append(f"it has been iterated {made.iteration} times")
        self.settings |= _given(
            {
                "batch": inner.batch_size,
                "workers": base.num_workers,
                "drop_remainder": inner.drop_last,
                "host": f"{index}/{count}" if count > 1 else None,
            }
        )
        self.settings |= {"persistent_workers": base.persistent_workers} if base.num_workers else {}
        stages.append(
            calls.Prepare(
                split_batches=is_shard and bool(shard.split_batches),
                dispatch_batches=dispatches,
                even_batches=not is_shard or bool(shard.even_batches),
                use_seedable_sampler=data_seed is not None,
                data_seed=data_seed,
            )
        )
        return self.object("accelerate", pipeline.source, stages)

    def trainer(self, made: Any) -> LoaderObject:
        """Read a Trainer: what its `train` reads, in steps of the optimizer."""
        args = made.args
        pipeline = self.dataset(made.train_dataset)
        how: Any = getattr(args, "train_sampling_strategy", None)
        if how is None:
            how = "group_by_length" if args.group_by_length else "random"
        lengths, config = None, args.accelerator_config
        if how == "group_by_length":
            lengths = tuple(made._get_train_sampler(made.train_dataset).lengths)
            self.generator(None)
        own = ("gradient_accumulation_steps", "seed", "data_seed", "ignore_data_skip")
        ways = ("split_batches", "dispatch_batches", "even_batches", "use_seedable_sampler")
        stage = calls.Trainer(
            train_sampling_strategy=how, lengths=lengths, **_of(args, *own), **_of(config, *ways)
        )
        self.settings["batch"] = made._train_batch_size
        epochs = int(-(-args.num_train_epochs // 1))
        more = {
            "epochs": epochs if epochs > 1 and args.max_steps < 0 else None,
            "workers": args.dataloader_num_workers,
            "drop_remainder": args.dataloader_drop_last,
            "host": f"{args.process_index}/{args.world_size}" if args.world_size > 1 else None,
        }
        self.settings |= _given(more)
        if args.data_seed is None:
            self.assumed.append("set_seed is called with args.seed, and not after it")
        return self.object("accelerate", pipeline.source, [*pipeline.stages, stage])

    # Datasets, samplers and generators.

    def dataset(self, made: Any) -> Pipeline:
        """Read a dataset, down to what it is a part of."""
        name, module = type(made).__name__, type(made).__module__
        if module == "torch.utils.data.dataset" and name == "Subset":
            subset = calls.Subset(indices=_as_range(made.indices))
            return _behind(self.dataset(made.dataset), subset)
        if module == "torch.utils.data.dataset" and name == "ConcatDataset":
            parts = tuple(map(self.dataset, made.datasets))
            return Pipeline(source=calls.ConcatDataset(inputs=parts))
        if _streams(made) or not hasattr(made, "__len__") or not hasattr(made, "__getitem__"):
            raise UsageError(
                f"{name} is no dataset of a known length whose elements have places; what it "
                "yields is not seen here: write it as IterableDataset in --stages"
            )
        return Pipeline(source=reader_of(made, self.known))

    def _sampler(self, made: Any, dataset: Any) -> list[Stage]:
        """Return the stages of a sampler."""
        name = type(made).__name__
        _check_type(made, _SAMPLERS)
        over = getattr(made, "data_source", getattr(made, "dataset", dataset))
        if over is not dataset and len(over) != len(dataset):
            raise UsageError(f"{name} is of another dataset than its loader")
        own = self.generator(getattr(made, "generator", None))
        if name in ("DistributedSampler", "StatefulDistributedSampler"):
            self.settings["host"] = f"{made.rank}/{made.num_replicas}"
            self.assumed.append("set_epoch is called before each epoch")
            seed, shares = made.seed + made.epoch, _of(made, "shuffle", "drop_last")
            return [calls.DistributedSampler(seed=seed, **shares)]
        values: dict[str, dict[str, Any]] = {"SequentialSampler": {}}
        if name == "RandomSampler":
            values[name] = {"num_samples": made._num_samples, **_of(made, "replacement")}
        elif name == "SubsetRandomSampler":
            values[name] = {"indices": _as_range(made.indices)}
        elif name == "WeightedRandomSampler":
            weights = tuple(made.weights.tolist())
            values[name] = {"weights": weights, **_of(made, "num_samples", "replacement")}
        if name not in values:
            raise UsageError(f"{name}: what it yields is not known")
        kind: Any = getattr(calls, name)
        return [kind(**values[name], **({"generator": own} if name != "SequentialSampler" else {}))]

    def _batches(self, made: Any) -> Stage:
        if type(made).__name__ != "BatchSampler":
            raise UsageError(f"{type(made).__name__}: what it yields is not known")
        return calls.BatchSampler(**_of(made, "batch_size", "drop_last"))

    def generator(self, made: Any) -> Seeds | None:
        """Return the seed of a generator and its draws since; note where the default one stands."""
        torch = sys.modules["torch"]
        state = torch.get_rng_state() if made is None else made.get_state()
        seed, draws = draws_since(bytes(state.numpy().tobytes()))
        if made is not None:
            return (seed, draws) if draws else seed
        if not self.first:
            self.first = [calls.ManualSeed(seed=seed, draws_before=draws)]
            self.assumed.append(_FROM_HERE.format(seed, draws))
        return None

    # Nodes of torchdata.

    def node(self, made: Any) -> Pipeline:
        """Read a node, down to its sources."""
        name = type(made).__name__
        if name == "Loader":
            return _behind(self.node(made.root), calls.NodeLoader())
        if getattr(made, "_BaseNode__initialized", False):
            raise UsageError(f"{name} is being iterated; read it before")
        source = getattr(made, "source", None)
        if name in ("ParallelMapper", "Mapper"):
            if not made.in_order:
                raise UsageError("ParallelMapper(in_order=False) yields what is ready")
            if type(source).__name__ == "SamplerWrapper":
                return self._wrapped(source, getattr(made.map_fn, "__self__", None))
            count = made.num_workers
            mapper = calls.ParallelMapper(num_workers=count) if count else calls.Mapper()
            return _behind(self.node(source), mapper)
        if name == "SamplerWrapper":
            return self._wrapped(made, None)
        if name == "IterableWrapper":
            return _behind(self.dataset(made.iterable), calls.IterableWrapper())
        if name == "MultiNodeWeightedSampler":
            keys = made.dataset_names
            mixture = calls.MultiNodeWeightedSampler(
                inputs=tuple(self.node(made.source_nodes[key]) for key in keys),
                weights=tuple(made.weights[key] for key in keys),
                **_of(made, "stop_criteria", "rank", "world_size", "seed"),
            )
            return Pipeline(source=mixture)
        if name not in _NODES:
            raise UsageError(f"{name}: what this node yields is not known")
        return _behind(self.node(source), getattr(calls, name)(**_of(made, *_NODES[name])))

    def _wrapped(self, made: Any, dataset: Any) -> Pipeline:
        """Read the sampler of a node, and the dataset of which it yields places."""
        sampler = made.sampler
        if dataset is None:
            dataset = getattr(sampler, "data_source", getattr(sampler, "dataset", None))
        if dataset is None:
            raise UsageError(f"{type(sampler).__name__}: the dataset of its places is not seen")
        pipeline = self.dataset(dataset)
        wrapper = calls.SamplerWrapper(initial_epoch=made.epoch)
        return _behind(pipeline, *self._sampler(sampler, dataset), wrapper)


# Nodes that yield what their source has, and the arguments that they keep.
_NODES = {
    "Batcher": ("batch_size", "drop_last"),
    "Unbatcher": (),
    "Prefetcher": ("prefetch_factor",),
    "PinMemory": (),
}


def _of(made: Any, *names: str) -> dict[str, Any]:
    """Return attributes that are arguments of a call by the same names."""
    return {name: getattr(made, name) for name in names}


def _given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that say something."""
    return {name: value for name, value in values.items() if value}


def _behind(pipeline: Pipeline, *stages: Stage) -> Pipeline:
    return Pipeline(source=pipeline.source, stages=(*pipeline.stages, *stages))


def _streams(dataset: Any) -> bool:
    return any(of.__name__ == "IterableDataset" for of in type(dataset).__mro__)


def _check_type(made: Any, modules: Sequence[str]) -> None:
    """Refuse a class that a script made of one of theirs: what it yields is its own affair."""
    if not type(made).__module__.startswith(tuple(modules)):
        raise UsageError(f"{type(made).__name__} is a class of the script: its order is not seen")


def _as_range(indices: Sequence[int]) -> Any:
    """Return indices as a range where they are one, else as they are."""
    given = tuple(map(int, indices))
    if len(given) > 1 and (step := given[1] - given[0]):
        found = range(given[0], given[-1] + (1 if step > 0 else -1), step)
        return found if tuple(found) == given else given
    return given
