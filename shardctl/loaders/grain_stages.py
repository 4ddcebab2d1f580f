"""The calls that Grain's datasets and its DataLoader are made of, and the rows each of them makes.

They are named as Grain names them: methods of `MapDataset` and `IterDataset`, and classes that take
the dataset as their first argument. Behind `to_iter_dataset`, and behind a sampler, elements have
no number any more, and other calls are to be had.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from shardctl.base.arguments import Kind, whole_number
from shardctl.base.phrase import refused
from shardctl.errors import UsageError
from shardctl.loaders import grain_rows as rows
from shardctl.loaders.grain_rows import ALL, NUM_SEEDS, Rows
from shardctl.loaders.loader_sequence import LoaderConfig, even_share
from shardctl.stages import part as parts
from shardctl.stages import stages
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Mixture, Pipeline

Of = Literal["map", "iter", "any"]
_DATASETS = {"map": "a MapDataset", "iter": "an IterDataset"}


def _seeds(stop: float, rule: str) -> Kind:
    def take(value: Any) -> int:
        seed = whole_number(value)
        if not 0 <= seed < stop:
            raise UsageError(rule)
        return seed

    return Kind(take=take, needed="a seed", several="seeds")


SeedOf32 = Annotated[int, _seeds(NUM_SEEDS, f"Grain takes seeds from 0 to {NUM_SEEDS - 1}")]
RootSeed = Annotated[int, _seeds(inf, "a number from 0 is needed")]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What evaluates chains: of one process, or of one of its workers.

    deal: this worker, and how many there are.
    """

    config: LoaderConfig
    deal: tuple[int, int] | None = None

    def rows(self, pipeline: Pipeline) -> Rows:
        """Return the elements of a chain."""
        if not pipeline.stages:
            return self._source(pipeline.source)
        stage, before = pipeline.stages[-1], before_last(pipeline)
        if not isinstance(stage, GrainStage):
            raise UsageError(f"{stage.name} is no call of Grain")
        if stage.of not in ("any", kind := kind_of(before)):
            raise UsageError(
                f"{stage.name}: Grain has it of {_DATASETS[stage.of]}, and here is "
                f"{_DATASETS[kind]}"
            )
        return stage.rows(self, before)

    def of_worker(self, of: Rows) -> Rows:
        """Return the elements of a `MapDataset` that this worker is dealt."""
        if self.deal is None:
            return of
        return rows.SlicedRows(of, slice(self.deal[0], None, self.deal[1]))

    def _source(self, source: parts.Source) -> Rows:
        if isinstance(source, Merging):
            return source.rows(self)
        return rows.SourceRows(self.config.read_by(source).indices)


def before_last(pipeline: Pipeline) -> Pipeline:
    """Return a chain without its last stage."""
    return replace(pipeline, stages=pipeline.stages[:-1])


def _seeded(seed: int | None, before: Pipeline, name: str) -> int:
    """Return the seed of a stage, that which `seed` above gives it where it has none of its own.

    Source: `_default_seed` in dataset.py. It is drawn from the seeds above, the nearest of each
    branch, and from how many datasets lie between.
    """
    if seed is not None:
        return seed
    found: list[int] = []
    todo = [(before, 1)]
    while todo:
        pipeline, depth = todo.pop(0)
        if not pipeline.stages:
            if isinstance(pipeline.source, Merging) and pipeline.source.hands_seeds_on:
                todo += [(one, depth + 1) for one in pipeline.source.inputs]
            continue
        stage = pipeline.stages[-1]
        if isinstance(stage, Seed):
            found += (stage.seed, depth)
        elif not (isinstance(stage, Workers) and stage.workers):
            is_none = isinstance(stage, Workers)  # no workers are no dataset
            todo.append((before_last(pipeline), depth + (not is_none)))
    if not found:
        raise UsageError(
            f"{name}: Grain refuses it without a seed; give {name}(seed=N), or seed(N) before it"
        )
    return int(np.random.SeedSequence(found).generate_state(1, np.uint32)[0])


def kind_of(pipeline: Pipeline) -> str:
    """Return whether a chain makes a "map" or an "iter" dataset."""
    if any(stage.makes_iter for stage in pipeline.stages if isinstance(stage, GrainStage)):
        return "iter"
    source = pipeline.source
    if isinstance(source, Merging):
        return "iter" if source.makes_iter or source.kinds == {"iter"} else "map"
    return "map"


class GrainStage(parts.Stage, is_call=False):
    """A call of Grain.

    of: the datasets that have it. makes_iter: what it makes is an `IterDataset`.
    """

    of: ClassVar[Of] = "any"
    makes_iter: ClassVar[bool] = False

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the elements that it makes of those before it."""
        return reading.rows(before)


class Seed(GrainStage):
    """`ds.seed(seed)`: what is random behind it and has no seed draws one from it."""

    name = "seed"
    effect = "seeds what is random behind it and has no seed of its own"
    seed: RootSeed


class Shuffle(GrainStage):
    """`ds.shuffle(seed)`: all of an epoch, another order in each."""

    name = "shuffle"
    effect = "shuffles all of each epoch"
    of = "map"
    seed: SeedOf32 | None = None

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return each epoch in an order of its own."""
        of = reading.rows(before)
        return rows.ShuffledRows(of, of.length, _seeded(self.seed, before, self.name), wraps=True)


class WindowShuffleMapDataset(GrainStage):
    """`grain.experimental.WindowShuffleMapDataset(ds, window_size=, seed=)`."""

    effect = "shuffles windows of elements"
    of: ClassVar[Of] = "map"
    window_size: parts.PositiveCount
    seed: SeedOf32

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return windows, of which the last reaches into the next epoch."""
        of = reading.rows(before)
        return rows.ShuffledRows(of, self.window_size, self.seed, wraps=False)


class WindowShuffleIterDataset(WindowShuffleMapDataset):
    """`grain.experimental.WindowShuffleIterDataset(ds, window_size=, seed=)`."""

    of = "iter"

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return windows, of which the last holds what is left."""
        of = reading.rows(before)
        return rows.IteratedWindows(of, self.window_size, self.seed, wraps=False)


class Slice(GrainStage):
    """`ds[start:stop:step]`, or `ds.slice(slice(start, stop, step))`.

    `slice(rank, None, world_size)` shares elements among hosts: which this is, settings say.
    """

    name = "slice"
    effect = "keeps a slice of each epoch"
    of = "map"
    start: int | Literal["rank"] | None = None
    stop: int | None = None
    step: int | Literal["world_size"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step == 0:
            raise UsageError(f"{self.name}: step=0: a step is 1 or more, or less than 0")

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what is kept."""
        config = reading.config
        start = config.host if self.start == "rank" else self.start
        step = config.num_hosts if self.step == "world_size" else self.step
        return rows.SlicedRows(reading.rows(before), slice(start, self.stop, step))


class Repeat(GrainStage):
    """`ds.repeat(num_epochs, reseed_each_epoch=)` of a MapDataset; None repeats without end."""

    name = "repeat"
    effect = "repeats all that is before it"
    of = "map"
    num_epochs: parts.PositiveCount | None = None
    reseed_each_epoch: bool = parts.argument(by_name=True, default=True)

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the epochs."""
        alike = not self.reseed_each_epoch
        return rows.RepeatedRows(reading.rows(before), self.num_epochs, alike=alike)


class RepeatIterDataset(GrainStage):
    """`grain.experimental.RepeatIterDataset(ds, num_epochs)`: each epoch is the first one again."""

    effect = "repeats all that is before it, as it was"
    of = "iter"
    num_epochs: parts.PositiveCount | None = None

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the epochs."""
        of = reading.rows(before)
        for part in parts_of(before):
            # The state that it goes back to is changed by the epochs (0.2.16 to 0.2.18).
            if isinstance(part, InterleaveIterDataset) and part.cycle_length < len(part.inputs):
                raise UsageError(
                    f"{self.name}: of more datasets than cycle_length={part.cycle_length} Grain "
                    "repeats other turns from the third epoch on; they are not known here"
                )
        if not of.length and self.num_epochs is None:
            raise UsageError(f"{self.name}: of no elements, and Grain would look for one forever")
        # Of what has no end the second epoch never comes.
        return of if of.length >= ALL else rows.RepeatedRows(of, self.num_epochs, alike=True)


class Batch(GrainStage):
    """`ds.batch(batch_size, drop_remainder=)`."""

    name = "batch"
    effect = "puts elements together; keeps the order"
    batch_size: parts.PositiveCount
    drop_remainder: bool = False

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the batches."""
        of = reading.rows(before)
        if kind_of(before) == "map" and _filters(before):
            raise UsageError(
                "batch: Grain refuses it behind a filter of a MapDataset; put to_iter_dataset() "
                "before it"
            )
        return rows.BatchedRows(of, self.batch_size, drop_remainder=self.drop_remainder)


class Map(GrainStage):
    """`ds.map(f)`."""

    name = "map"
    effect = "keeps the order"
    parameters = (parts.FUNCTION,)


class MapWithIndex(Map):
    """`ds.map_with_index(f)`."""

    name = "map_with_index"
    parameters = (parts.FUNCTION,)


class RandomMap(GrainStage):
    """`ds.random_map(f, seed=)`."""

    name = "random_map"
    effect = "keeps the order; draws random numbers"
    parameters = (parts.FUNCTION, parts.value("seed", by_name=True))
    seed: SeedOf32 | None = None

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the same elements."""
        of = reading.rows(before)
        _seeded(self.seed, before, self.name)
        return of


class Filter(GrainStage, stages.Filter):
    """`ds.filter(f)`: of a MapDataset what does not pass is None until `to_iter_dataset`."""

    name = "filter"
    parameters = stages.Filter.parameters

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return that no file says which elements pass, where that is so."""
        if self.kept is not None:
            return None
        return "how many elements pass depends on the data; name those that do with kept=FILE"

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what passes, by the file of a scan."""
        of, kept = reading.rows(before), reading.config.kept
        for part in parts_of(before):
            if isinstance(part, Batch | Zip):
                raise UsageError(
                    f"{self.name}: its scan is of single examples, and here an element holds "
                    f"several; put it before {part.name}"
                )
        if kept is None or self.kept is None:
            raise UsageError(f"{self.name}: {self.why_open(None, None)}")
        found = rows.FilteredRows(of, kept(self))
        return found if kind_of(before) == "map" else rows.PassedRows(found)


class ToIterDataset(GrainStage):
    """`ds.to_iter_dataset(read_options)`."""

    name = "to_iter_dataset"
    effect = "reads elements one after the other"
    parameters = (parts.value("", "read_options", takes="code"), parts.value("allow_nones"))
    of = "map"
    makes_iter = True
    allow_nones: bool = parts.argument(by_name=True, default=False)

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what a worker is dealt, without what a filter has made None."""
        of = reading.of_worker(reading.rows(before))
        found = iterated(of, before)
        if found is not of and self.allow_nones:
            raise UsageError("to_iter_dataset: with allow_nones=True a filter yields None")
        return found


def iterated(of: Rows, pipeline: Pipeline) -> Rows:
    """Return what an iterator over the elements of a MapDataset yields: no None."""
    return rows.PassedRows(of) if of.regular != ALL and _filters(pipeline) else of


def _filters(pipeline: Pipeline) -> bool:
    return any(isinstance(part, Filter) for part in parts_of(pipeline))


class FirstFitPackIterDataset(GrainStage):
    """`grain.experimental.FirstFitPackIterDataset(ds, length_struct=, ..)`."""

    effect = "packs examples by their lengths"
    takes_anything = True

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str:
        """Return that lengths decide, which no file says of Grain."""
        return "how examples are packed depends on their lengths, which are not known here"


class BestFitPackIterDataset(FirstFitPackIterDataset):
    """`grain.experimental.BestFitPackIterDataset`."""


class ConcatThenSplitIterDataset(FirstFitPackIterDataset):
    """`grain.experimental.ConcatThenSplitIterDataset`."""


class LimitIterDataset(GrainStage):
    """`grain.experimental.LimitIterDataset(ds, count)`."""

    effect = "ends after so many elements"
    of = "iter"
    count: parts.PositiveCount

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return the first elements."""
        return rows.SlicedRows(reading.rows(before), slice(self.count))


class Workers(GrainStage, is_call=False):
    """Workers that are dealt every so-manieth element, each of which makes its own of them."""

    effect = "deals elements to workers, and yields one of each in turn"
    of = "iter"

    workers: ClassVar[Any]  # how many there are; 0 reads in the process itself

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what workers yield that read the stages before this one."""
        if self.workers < 2:
            return reading.rows(before)
        if reading.deal is not None:
            raise UsageError(f"{self.name}: workers within workers are not known here")
        deals = [(worker, self.workers) for worker in range(self.workers)]
        of = [replace(reading, deal=deal).rows(before) for deal in deals]
        return rows.TakingTurns(of, self.workers, is_deal=True)


class MpPrefetch(Workers):
    """`ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=))`."""

    name = "mp_prefetch"
    num_workers: parts.Number = 10
    workers = property(lambda self: self.num_workers)


class MultithreadPrefetch(MpPrefetch):
    """`grain.experimental.multithread_prefetch(ds, num_threads=, buffer_size=)`."""

    name = "multithread_prefetch"
    parameters = (
        parts.value("num_workers", "num_threads"),
        parts.value("", "buffer_size", takes="code"),
    )


class Prefetch(GrainStage):
    """`grain.experimental.ThreadPrefetchIterDataset(ds, prefetch_buffer_size=)`."""

    name = "ThreadPrefetchIterDataset"
    effect = "keeps the order; reads ahead"
    of = "iter"
    parameters = (parts.value("", "prefetch_buffer_size", takes="code"),)


class WithOptions(GrainStage):
    """`grain.experimental.WithOptionsIterDataset(ds, options)`."""

    name = "WithOptionsIterDataset"
    effect = "keeps the order"
    of = "iter"
    parameters = (parts.value("", "options", takes="code"),)


# Samplers, and the DataLoader over one.


class IndexSampler(GrainStage):
    """`grain.samplers.IndexSampler(len(source), ShardOptions(..), shuffle=, num_epochs=, seed=)`.

    shard_index, shard_count, drop_remainder: of its `ShardOptions`; without a count it takes the
    host of the settings, and `NoSharding()` without one.
    """

    effect = "reads the examples of a shard, in the order of a shuffle"
    of = "map"
    makes_iter = True
    shuffle: bool = False
    num_epochs: parts.PositiveCount | None = parts.argument(by_name=True, default=None)
    seed: SeedOf32 | None = parts.argument(by_name=True, default=None)
    shard_index: parts.Number = parts.argument(by_name=True, default=0)
    shard_count: parts.PositiveCount | None = parts.argument(by_name=True, default=None)
    drop_remainder: bool = parts.argument(by_name=True, default=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shuffle and self.seed is None:
            raise UsageError(f"{self.name}: Grain shuffles with a seed; give seed=N")
        if self.shard_index >= (self.shard_count or 1):
            raise UsageError(f"{self.name}: shard_index={self.shard_index}: shards count from 0")

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what the shard reads, all epochs one after the other."""
        of = reading.rows(before)
        if not isinstance(of, rows.SourceRows):
            raise UsageError(f"{self.name}: Grain samples a source, so it comes first")
        if not of.length:
            raise UsageError(f"Grain's {self.name} refuses to read no examples; read at least one")
        # Source: `even_split` in grain/_src/core/sharding.py, and data_loader.py.
        total, (host, count) = of.length, self.shard(reading.config)
        num_shared = total - (total % count if self.drop_remainder else 0)
        share = even_share(num_shared, host, count)
        in_epoch = len(share) * count if self.drop_remainder else total
        # As many on every host, rounded down. Hosts with fewer examples of their own start over.
        size = ALL // count
        if self.num_epochs is not None:
            size = self.num_epochs * in_epoch // count
        if size and not share:
            raise refused(
                "host {} of {} has no example of its own, yet Grain asks its sampler for {}, and "
                "stops with a division by zero; share {} examples among fewer hosts, or leave the "
                "rest out with {drop_shard_remainder=True}",
                *(host, count, size, total),
            )
        found: Rows = rows.SlicedRows(of, slice(share.start, share.stop))
        if self.shuffle and self.seed is not None:
            found = rows.ShuffledRows(found, len(share), self.seed, wraps=True)
        found = rows.SlicedRows(rows.RepeatedRows(found, None, alike=False), slice(size))
        return reading.of_worker(found)

    def shard(self, config: LoaderConfig) -> tuple[int, int]:
        """Return which shard is read, and how many there are."""
        if self.shard_count is None and config.shares:
            return config.host, config.num_hosts
        return self.shard_index, self.shard_count or 1


class SequentialSampler(IndexSampler):
    """`grain.samplers.SequentialSampler(len(source), ShardOptions(..))`: one epoch, as stored."""

    effect = "reads every so-manieth example"
    parameters = tuple(
        parts.value(name, by_name=True) for name in ("shard_index", "shard_count", "drop_remainder")
    )
    num_epochs: parts.PositiveCount | None = 1

    def rows(self, reading: Reading, before: Pipeline) -> Rows:
        """Return what the shard reads: as many examples as every other shard."""
        of, (host, count) = reading.rows(before), self.shard(reading.config)
        size = of.length // count
        found = rows.SlicedRows(of, slice(host, size * count, count))
        return reading.of_worker(found)


class DataLoader(Workers):
    """`grain.DataLoader(data_source, sampler, operations, worker_count)`, at the end of a chain.

    Its operations are the stages between a sampler and this.
    """

    worker_count: parts.Number = 0
    workers = property(lambda self: self.worker_count)


# What combines several datasets.


class Merging(Mixture, is_call=False):
    """Several datasets in one.

    hands_seeds_on: whether what is behind draws its seeds from those of the inputs.
    """

    makes_iter: ClassVar[bool] = False
    hands_seeds_on: ClassVar[bool] = True

    def rows(self, reading: Reading) -> Rows:
        """Return the elements of all."""
        kinds = self.kinds
        if len(kinds) > 1 and not self.makes_iter:
            raise UsageError(f"{self.name}: Grain has it of MapDatasets or of IterDatasets alone")
        return self.merged([reading.rows(one) for one in self.inputs], kinds == {"map"})

    def merged(self, of: list[Rows], is_map: bool) -> Rows:
        """Return the elements of the inputs in the order in which they are yielded."""
        raise NotImplementedError

    @property
    def kinds(self) -> set[str]:
        """Which datasets its inputs are."""
        return set(map(kind_of, self.inputs))


class Mix(Merging):
    """`grain.MapDataset.mix(datasets, weights)`, or that of IterDatasets."""

    name = "mix"
    effect = "takes each dataset as often as its weight says; ends with the first"
    weights: parts.Weights | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        weights = self.weights
        if weights is not None and (len(weights) != len(self.inputs) or min(weights) <= 0):
            raise UsageError(f"{self.name}: a weight above 0 for each dataset is needed")

    def merged(self, of: list[Rows], is_map: bool) -> Rows:
        """Return the mixture."""
        if is_map and any(not one.length for one in of):
            raise UsageError(f"{self.name}: Grain refuses a dataset of no elements")
        return rows.MixedRows(of, self.weights, is_map=is_map)


class Concatenate(Merging):
    """`grain.MapDataset.concatenate(datasets)`."""

    name = "concatenate"
    effect = "continues with the next dataset"

    def merged(self, of: list[Rows], is_map: bool) -> Rows:
        """Return one dataset behind the other."""
        if not is_map:
            raise UsageError(f"{self.name}: Grain has it of MapDatasets")
        return rows.JoinedRows(of)


class Zip(Merging):
    """`grain.experimental.ZipMapDataset(datasets)`, or `ZipIterDataset(datasets, strict=)`."""

    name = "zip"
    effect = "puts one element of each dataset into one"
    strict: bool = parts.argument(by_name=True, default=True)

    def merged(self, of: list[Rows], is_map: bool) -> Rows:
        """Return elements that hold one of each."""
        lengths = {one.length for one in of}
        if len(lengths) > 1 and (is_map or self.strict):
            raise UsageError(f"{self.name}: Grain refuses datasets of several lengths")
        if is_map and any(map(_filters, self.inputs)):
            raise UsageError(f"{self.name}: of what a filter made None; put to_iter_dataset before")
        return rows.ZippedRows(of)


class InterleaveIterDataset(Merging):
    """`grain.experimental.InterleaveIterDataset(datasets, cycle_length=)`."""

    effect = "reads cycle_length datasets in turn"
    makes_iter = True
    hands_seeds_on = False
    cycle_length: parts.PositiveCount

    def rows(self, reading: Reading) -> Rows:
        """Return the elements; workers are dealt whole datasets."""
        reading, inputs = self.dealt(reading)
        of = [iterated(reading.rows(one), one) for one in inputs]
        return rows.TakingTurns(of, self.cycle_length)

    def dealt(self, reading: Reading) -> tuple[Reading, tuple[Pipeline, ...]]:
        """Return which datasets a worker reads, each as a whole."""
        worker, count = reading.deal or (0, 1)
        inputs: tuple[Pipeline, ...] = self.inputs[worker::count]
        if not inputs:
            raise UsageError(
                f"{self.name}: {count} workers share {len(self.inputs)} datasets, and Grain "
                "fails in one that has none; take fewer workers"
            )
        return replace(reading, deal=None), inputs


# Plain settings as the chain that they stand for.


def chain_of(config: LoaderConfig) -> Pipeline:
    """Return the chain of settings: theirs, or that of a DataLoader or MapDataset they ask for.

    Hosts that share by "examples", and a shuffle of windows, are those of a MapDataset.
    """
    if config.stages is not None:
        return config.stages
    made: list[GrainStage] = []
    seed, workers = config.seed, config.workers
    if not reads_map_dataset(config):
        made.append(
            IndexSampler(
                shuffle=seed is not None,
                num_epochs=config.epochs,
                seed=seed,
                drop_remainder=config.drop_shard_remainder,
            )
        )
    else:
        made += [Shuffle(seed=seed)] * (seed is not None)
        if config.buffer is not None:
            window: dict[str, Any] = {"window_size": config.buffer, "seed": config.buffer_seed}
            made.append(WindowShuffleMapDataset(**window))
        made.append(Repeat(num_epochs=config.epochs))
        # Behind `repeat`, so that it runs through the epochs.
        made += [Slice(start="rank", step="world_size")] * config.shares
        made.append(ToIterDataset())
    if config.batch is not None:
        made.append(Batch(batch_size=config.batch, drop_remainder=config.drop_remainder))
    if not reads_map_dataset(config):
        made.append(DataLoader(worker_count=workers))
    elif workers:
        made.append(MpPrefetch(num_workers=workers))
    return Pipeline(stages=tuple(made))


def reads_map_dataset(config: LoaderConfig) -> bool:
    """Return whether settings are those of a MapDataset, not of a DataLoader."""
    return config.host_by == "examples" or config.buffer is not None
