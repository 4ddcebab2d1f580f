"""The order of WebDataset's pipelines, from the lengths of their shards alone.

Sources: webdataset/filters.py (_shuffle, detshuffle, _batched), shardlists.py (split_by_node,
ResampledShards), compat.py (WebDataset), mix.py, pipeline.py (DataPipeline.iterator) and utils.py
(make_seed); torch/utils/data/dataloader.py deals what workers yield in turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import chain, count, islice
from random import Random
from typing import Any, Literal

import numpy as np

from shardctl.base.phrase import refused
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader_sequence import Followed, LoaderConfig, LoaderSequence, pieces_of
from shardctl.stages import part as parts
from shardctl.stages.pipelines import open_stages, parts_of
from shardctl.stages.stages import Mixture, Pipeline

_BY_TIME = "its seed is drawn anew in each process; {} fixes it"
_OF_RANDOM = "random.seed({}) is called right before the loop, and nothing else draws from random"
_INITIAL, _SHARDS = 100, 100
_PLAIN = "WebDataset(shardshuffle=100, seed={}), which repeats its order in each epoch"
Rows = Iterator[Any]  # shards, samples or batches
Run = Callable[[Rows], Rows]


class WebDataset(parts.Stage):
    """`webdataset.WebDataset(urls, ..)`, by the arguments that its order comes from."""

    effect = "shuffles shards, shares them, and reads their samples"
    shardshuffle: bool | parts.Number | None = None
    detshuffle: bool = False
    seed: int | None = None
    nodesplitter: Literal["single_node_only", "split_by_node"] | None = "single_node_only"
    workersplitter: Literal["split_by_worker"] | None = "split_by_worker"
    resampled: bool = False
    empty_check: bool = True

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why its shards come in another order in each run."""
        if self.resampled:
            return _BY_TIME.format("ResampledShards(deterministic=True), then tarfile_to_samples,")
        shuffles = self.shardshuffle is True or (self.shardshuffle or 0) > 1
        return _BY_TIME.format("seed=N") if shuffles and self.seed is None else None

    @property
    def within(self) -> tuple[parts.Stage, ...]:
        """The stages that it is made of."""
        found: list[parts.Stage] = []
        if self.nodesplitter is not None:
            splitter = SplitByNode if self.nodesplitter == SplitByNode.name else SingleNodeOnly
            found.append(splitter())
        if self.workersplitter is not None:
            found.append(SplitByWorker())
        size = _SHARDS if self.shardshuffle is True else self.shardshuffle or 0
        if size > 1:
            kind = DetShuffle if self.detshuffle else Shuffle
            found.append(kind(bufsize=size, seed=self.seed or 0))
        return (*found, TarfileToSamples())


class SimpleShardList(parts.Stage):
    """`SimpleShardList(urls, seed)`: the shards, shuffled once with a seed."""

    seed: int | None = None


class ResampledShards(parts.Stage):
    """`ResampledShards(urls, nshards, seed, deterministic)`: shards drawn at random, again too."""

    nshards: parts.PositiveCount | None = None
    seed: int = 0
    deterministic: bool = False

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why its shards come in another order in each run."""
        return None if self.deterministic else _BY_TIME.format("deterministic=True")


class SingleNodeOnly(parts.Stage):
    """`single_node_only`: refuses several ranks."""

    name = "single_node_only"


class SplitByNode(parts.Stage):
    """`split_by_node`: every world-th shard or sample, from that of the rank on."""

    name = "split_by_node"


class SplitByWorker(parts.Stage):
    """`split_by_worker`: every W-th shard or sample, from that of the worker on."""

    name = "split_by_worker"


class TarfileToSamples(parts.Stage):
    """`tarfile_to_samples()`: the samples of each shard, one shard after the other."""

    name = "tarfile_to_samples"


class Shuffle(parts.Stage):
    """`shuffle(bufsize, initial, rng=random.Random(N), seed)`; `rng` is the N of its generator."""

    name = "shuffle"
    effect = "shuffles within a buffer"
    bufsize: parts.Number = parts.argument("size", default=1000)
    initial: parts.Number = _INITIAL
    rng: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rng is not None and self.seed is not None:
            raise UsageError("shuffle: rng and seed do not stand together")

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why the buffer is seeded anew in each run."""
        is_seeded = self.bufsize <= 1 or self.rng is not None or self.seed is not None
        return None if is_seeded else _BY_TIME.format("seed=N or rng=random.Random(N)")


class DetShuffle(parts.Stage):
    """`detshuffle(bufsize, initial, seed, epoch)`: seeded by seed + iteration."""

    name = "detshuffle"
    effect = "shuffles within a buffer, otherwise in each iteration"
    bufsize: parts.Number = 1000
    initial: parts.Number = _INITIAL
    seed: int = 0
    epoch: int = -1


class Batched(parts.Stage):
    """`batched(batchsize, partial)`: elements of several samples."""

    name = "batched"
    batchsize: parts.PositiveCount = 20
    partial: bool = True


class Unbatched(parts.Stage):
    """`unbatched()`: the samples of batches, one by one."""

    name = "unbatched"


class Slice(parts.Stage):
    """`slice(stop)` or `slice(start, stop, step)` of elements, as `itertools.islice`."""

    name = "slice"
    start: parts.Number
    stop: parts.Number | None = None
    step: parts.PositiveCount = 1


class Repeat(parts.Stage):
    """`repeat(nepochs, nbatches)`: the whole pipeline again, up to so many elements."""

    name = "repeat"
    nepochs: int = -1
    nbatches: int = -1


class WithEpoch(parts.Stage):
    """`with_epoch(nsamples)`: an iteration is so many elements of the pipeline, over and over."""

    name = "with_epoch"
    nsamples: int = -1


class Map(parts.Stage):
    """`map(f)`: a function of each sample, which returns one for each."""

    name = "map"
    takes_anything = True


class Decode(Map):
    """`decode(..)`: keeps the order."""

    name = "decode"


class ToTuple(Map):
    """`to_tuple(..)`: keeps the order."""

    name = "to_tuple"


class WebLoader(parts.Stage):
    """`WebLoader(dataset, batch_size)`: a DataLoader, behind which stages of the process stand."""

    effect = "deals what its workers yield in turn"
    batch_size: parts.PositiveCount | None = 1


class RoundRobin(Mixture):
    """`RoundRobin(datasets, longest)`: an element of each in turn."""

    longest: bool = False


class RandomMix(Mixture):
    """`RandomMix(datasets, probs, longest)`: the next of one that Python's `random` draws."""

    probs: parts.Weights | None = None
    longest: bool = False

    def why_open(self, deterministic: bool | None, global_seed: int | None) -> str | None:
        """Return why it draws otherwise in each run."""
        why = "it draws from Python's random; --global-seed N says random.seed(N) before the loop"
        return why if global_seed is None else None


def chain_of(config: LoaderConfig) -> Pipeline:
    """Return the chain of a configuration, that of its settings where it has none."""
    if config.stages is not None:
        return config.stages
    splitter = SplitByNode.name if config.shares else SingleNodeOnly.name
    size = False if config.seed is None else _SHARDS
    made: Any = {"shardshuffle": size, "seed": config.seed, "nodesplitter": splitter}
    stages: tuple[parts.Stage, ...] = (WebDataset(**made),)
    if config.buffer is not None:
        stages += (Shuffle(bufsize=config.buffer, seed=config.buffer_seed),)
    return Pipeline(stages=stages)


def webdataset_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what a WebDataset yields to one process, or a DataLoader over it."""
    if config.buffer is not None and config.buffer_seed is None:
        raise UnpredictableOrderError(
            "--buffer without a seed is seeded by the time and the process; give --buffer-seed N"
        )
    pipeline = chain_of(config)
    for open_stage in open_stages(pipeline, global_seed=config.global_seed):
        stage = open_stage.stage
        raise UnpredictableOrderError(f"{stage.name} is nondeterministic: {open_stage.reason}")
    inner, loader, outer = parted(pipeline, config)
    every = [one for part in parts_of(pipeline) for one in _within(part)]
    mixes = any(isinstance(one, RandomMix) for one in every)
    if mixes and config.workers:
        raise refused("RandomMix draws from what torch seeds in each worker; leave out {workers}")

    is_endless = _wrapped_ends(outer, endless=_is_endless(inner))
    if is_endless and config.first_epoch + config.epochs > 1:
        raise refused(
            "an iteration has no end, so {epochs} and {pass_index} have no meaning; "
            "with_epoch(N) ends it"
        )

    # A DataLoader without a batch size leaves elements as they are.
    stages = (*inner.stages, *[loader] * bool(loader.batch_size), *outer)
    shapes = [one for one in stages if isinstance(one, _SHAPES)]
    found = Followed(
        pieces_of(map(_samples, one) for one in _iterations(config, inner, loader, outer)),
        batches=bool(shapes) and not isinstance(shapes[-1], Unbatched),
        shuffles=any(isinstance(one, _SHUFFLES) for one in every),
        is_endless=is_endless,
    )
    of_random = [_OF_RANDOM.format(config.global_seed)] * mixes
    plain = config.stages is None and config.seed is not None
    found.assumptions = (*of_random, *[_PLAIN.format(config.seed)] * plain)
    return found


def _within(part: parts.Part) -> tuple[parts.Part, ...]:
    return part.within if isinstance(part, WebDataset) else (part,)


_SHAPES = (Batched, Unbatched, WebLoader)
_SHUFFLES = (Shuffle, DetShuffle, ResampledShards, RandomMix)


def parted(
    pipeline: Pipeline, config: LoaderConfig
) -> tuple[Pipeline, WebLoader, tuple[parts.Stage, ...]]:
    """Return what workers run, the DataLoader, and the stages behind it."""
    stages = pipeline.stages
    loaders = [at for at, one in enumerate(stages) if isinstance(one, WebLoader)]
    if not loaders:
        return pipeline, WebLoader(batch_size=config.batch), ()
    if config.batch is not None or len(loaders) > 1:
        raise refused("one WebLoader(batch_size=N) says how batches are made, without {batch}")
    loader: Any = stages[loaders[0]]
    inner = Pipeline(source=pipeline.source, stages=stages[: loaders[0]])
    return inner, loader, stages[loaders[0] + 1 :]


def _samples(element: Any) -> list[int]:
    found = element if isinstance(element, list) else [element]
    if any(isinstance(one, range) for one in found):
        raise UsageError("shards come out; WebDataset(..) or tarfile_to_samples reads them")
    return found


def _is_endless(pipeline: Pipeline) -> bool:
    source = pipeline.source
    endless = False
    if isinstance(source, RoundRobin | RandomMix):
        inputs = list(map(_is_endless, source.inputs))
        endless = any(inputs) if source.longest else all(inputs)
    return _wrapped_ends(pipeline.stages, endless=endless)


def _wrapped_ends(stages: tuple[parts.Stage, ...], *, endless: bool) -> bool:
    for stage in stages:
        if isinstance(stage, ResampledShards):
            endless = stage.nshards is None
        elif isinstance(stage, Slice):
            endless = False
    often, most = _often(stages)
    return endless if often == 1 else most <= 0 and (endless or often is None)


def _often(stages: Iterable[parts.Stage]) -> tuple[int | None, int]:
    """Return how often a pipeline is run, and for how many elements; the last call counts."""
    often: int | None = 1
    most = -1
    for stage in stages:
        if isinstance(stage, Repeat):
            often, most = (stage.nepochs if stage.nepochs > 0 else None), stage.nbatches
        elif isinstance(stage, WithEpoch):
            often, most = None, stage.nsamples
    return often, most


# How a chain is run: objects that keep what outlives an iteration, as those of the library.


@dataclass(frozen=True, kw_only=True)
class _Process:
    """A process that iterates: its rank, its worker, and what it draws from Python's random."""

    config: LoaderConfig
    random: Random
    worker: int = 0
    workers: int = 1


def _iterations(
    config: LoaderConfig, inner: Pipeline, loader: WebLoader, outer: tuple[parts.Stage, ...]
) -> Iterator[Rows]:
    """Yield the iterators of the epochs, one after the other."""
    here = _Process(config=config, random=_rng(config.global_seed))
    alone = _built(inner, here)

    def dealt() -> Rows:
        # Workers have copies of the dataset, as it was when it was made.
        of = range(config.workers)
        workers = [replace(here, worker=one, workers=len(of)) for one in of]
        runs = [_built(inner, one) for one in workers] or [alone]
        size, drops = loader.batch_size, config.drop_remainder
        rows = [_cut(run(), size, drops=drops) if size else run() for run in runs]
        while rows:  # one that is done takes no more turns
            for row in [*rows]:
                if (element := next(row, None)) is None:
                    rows.remove(row)
                else:
                    yield element

    whole = _run_of(outer, dealt, here)
    for epoch in range(config.first_epoch + config.epochs):
        elements = whole()
        if epoch >= config.first_epoch:
            yield elements
        deque(elements, maxlen=0)  # epochs before draw as well


def _built(pipeline: Pipeline, process: _Process) -> Callable[[], Rows]:
    """Return an object of the library, which an iteration calls."""
    source = pipeline.source
    if isinstance(source, RoundRobin | RandomMix):
        inputs = [_built(one, process) for one in source.inputs]
        begin: Callable[[], Rows] = lambda: _mixed(  # noqa: E731  # one for each kind of source
            [one() for one in inputs], source, process.random
        )
        return _run_of(pipeline.stages, begin, process)
    shards = process.config.whole_shards(source).shards
    return _run_of(pipeline.stages, lambda: iter(shards), process)


def _run_of(
    stages: tuple[parts.Stage, ...], begin: Callable[[], Rows], process: _Process
) -> Callable[[], Rows]:
    runs: list[Run] = []
    for stage in stages:
        runs += [_run(one, process) for one in _within(stage)]
        if isinstance(stage, WebDataset) and stage.empty_check:
            runs.append(_not_empty)
    often, most = _often(stages)

    def again() -> Rows:
        for _ in range(often) if often else count():
            elements = begin()
            for run in runs:
                elements = run(elements)
            is_empty = True
            for element in elements:
                is_empty = False
                yield element
            if is_empty:
                return

    return lambda: islice(again(), most) if often != 1 and most > 0 else again()


def _run(stage: parts.Part, process: _Process) -> Run:
    """Return what a stage makes of what comes to it, in each iteration."""
    rank, world = process.config.host, process.config.num_hosts
    match stage:
        case SimpleShardList(seed=int()):
            return lambda rows: iter(_shuffled([*rows], _rng(stage.seed)))
        case SingleNodeOnly() if world > 1:
            raise UsageError("single_node_only refuses several ranks; split_by_node shares shards")
        case SplitByNode():
            return lambda rows: islice(rows, rank, None, world)
        case SplitByWorker():
            return lambda rows: islice(rows, process.worker, None, process.workers)
        case TarfileToSamples():
            return lambda rows: chain.from_iterable(map(_samples_in, rows))
        case Shuffle() if stage.bufsize:  # a fluid interface leaves out a buffer of 0
            kept = None if stage.rng is None else _rng(stage.rng)
            return lambda rows: _buffered(rows, stage, kept or _rng(stage.seed))
        case DetShuffle():
            epochs = count(stage.epoch + 1)
            return lambda rows: _buffered(rows, stage, _rng(stage.seed + next(epochs)))
        case ResampledShards():
            epochs, worker = count(), rank * 1000 + process.worker
            return lambda rows: _resampled([*rows], stage, (worker, next(epochs), stage.seed))
        case Batched():
            return lambda rows: _batched(rows, stage)
        case Unbatched():
            return lambda rows: chain.from_iterable(map(_samples, rows))
        case Slice():
            start, stop = (0, stage.start) if stage.stop is None else (stage.start, stage.stop)
            return lambda rows: islice(rows, start, stop, stage.step)
    return iter


def _shuffled(rows: list[Any], rng: Random) -> list[Any]:
    rng.shuffle(rows)
    return rows


def _samples_in(shard: Any) -> range:
    if not isinstance(shard, range):
        raise UsageError("samples are read already; tarfile_to_samples stands once")
    return shard


def _cut(rows: Rows, size: int, *, drops: bool) -> Rows:
    while batch := list(islice(rows, size)):
        if len(batch) == size or not drops:
            yield [*chain.from_iterable(map(_samples, batch))]


def _batched(rows: Rows, stage: Batched) -> Rows:
    """Yield batches, each when the sample behind it has come."""
    batch: list[Any] = []
    for row in rows:
        if len(batch) >= stage.batchsize:
            yield [*chain.from_iterable(map(_samples, batch))]
            batch = []
        batch.append(row)
    if len(batch) == stage.batchsize or (batch and stage.partial):
        yield [*chain.from_iterable(map(_samples, batch))]


def _mixed(rows: list[Rows], mixture: RoundRobin | RandomMix, random: Random) -> Rows:
    """Yield the elements of one input after the other, in turn or at random."""
    draws = isinstance(mixture, RandomMix)
    shares = [*(getattr(mixture, "probs", None) or [1.0] * len(rows))]
    at = 0
    while rows:
        ends = (np.array(shares) / np.sum(shares)).cumsum()
        at = int(np.searchsorted(ends, random.random())) if draws else at % len(rows)
        if (element := next(rows[at], None)) is not None:
            yield element
            at += 1
        elif not mixture.longest:
            return
        else:
            del rows[at], shares[at]


def _buffered(rows: Rows, stage: Shuffle | DetShuffle, rng: Random) -> Rows:
    """Yield elements through a buffer: two of them fill it, and one is drawn."""
    held: list[Any] = []

    def drawn() -> Any:
        at = rng.randint(0, len(held) - 1)
        found, held[at] = held[at], held[-1]
        held.pop()
        return found

    for element in rows:
        held.append(element)
        if len(held) < stage.bufsize:
            held += islice(rows, 1)
        if len(held) >= min(stage.initial, stage.bufsize):
            yield drawn()
    while held:
        yield drawn()


def _resampled(shards: list[Any], stage: ResampledShards, seeds: tuple[int, ...]) -> Rows:
    seed = reduce(lambda seed, one: (seed * 31 + hash(one)) & 0x7FFFFFFF, seeds, 0)
    rng = _rng(seed)
    if not any(shards):
        raise UsageError(
            "ResampledShards: of no samples, and WebDataset would look for one forever"
        )
    for _ in range(stage.nshards) if stage.nshards else count():
        yield shards[rng.randint(0, len(shards) - 1)]


def _not_empty(rows: Rows) -> Rows:
    first = next(rows, None)
    if first is None:
        raise UsageError(
            "a rank or a worker has no sample, and WebDataset refuses that: fewer workers, more "
            "shards, or empty_check=False"
        )
    yield first
    yield from rows


def _rng(seed: int | None) -> Random:
    return Random(seed)  # noqa: S311  # the generator of the library
