"""The order of MosaicML's StreamingDataset, from the lengths of its shards alone.

Sources: streaming/base/partition/orig.py and relaxed.py, shuffle/*.py, batching/*.py, sampling.py,
stream.py (Stream.apply_weights), world.py (World.replicate) and dataset.py (resample_streams).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.loaders import loader_sequence
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence
from shardctl.stages import part as parts
from shardctl.stages.stages import Mixture, Pipeline, Read
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER

_SEED, _BLOCK, _BLOCKS = 9176, 1 << 18, 4_000_000
_ONE_NODE = (
    "all {} ranks are on one node; StreamingDataset(local_world_size=R) says that there are "
    "R of them a node"
)
Spans = list[tuple[int, int]]


class Stream(parts.Stage):
    """`streaming.Stream(proportion, repeat, choose)`: how much of an input an epoch has."""

    effect = "sets how many examples of it an epoch has"
    proportion: float | None = None
    repeat: float | None = None
    choose: parts.Number | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        said = [one for one in (self.proportion, self.repeat, self.choose) if one is not None]
        if len(said) > 1 or any(one < 0 for one in said):
            raise UsageError("Stream: one of proportion, repeat and choose, from 0, may be there")


class Streams(Mixture):
    """`StreamingDataset(streams=[..])`: several inputs, each a reader and perhaps a `Stream`."""

    name = "streams"
    effect = "has shards of all inputs"


class StreamingDataset(parts.Stage):
    """`streaming.StreamingDataset(..)`, by the arguments that its order comes from.

    local_world_size: how many ranks are on a node, `LOCAL_WORLD_SIZE`; None for all of them.
    """

    effect = "shuffles shards and examples, and shares them among ranks"
    shuffle: bool = False
    shuffle_algo: Literal["py1e", "py1s", "py1b", "py1br", "py2s", "naive"] = "py1e"
    shuffle_seed: parts.Number = _SEED
    shuffle_block_size: parts.PositiveCount | None = None
    num_canonical_nodes: parts.PositiveCount | None = None
    batch_size: parts.PositiveCount | None = None
    epoch_size: parts.PositiveCount | None = None
    sampling_method: Literal["balanced", "fixed"] = "balanced"
    sampling_granularity: parts.PositiveCount = 1
    partition_algo: Literal["relaxed", "orig"] = "relaxed"
    batching_method: Literal["random", "stratified", "per_stream"] = "random"
    replication: parts.PositiveCount | None = None
    predownload: parts.Number | None = None
    local_world_size: parts.PositiveCount | None = None


class LoadStateDict(parts.Stage):
    """`load_state_dict(state)`: the epoch continues behind so many samples of all ranks."""

    name = "load_state_dict"
    effect = "continues in an epoch, perhaps on other ranks"
    epoch: parts.Number
    sample_in_epoch: parts.Number
    num_canonical_nodes: parts.PositiveCount
    shuffle_seed: parts.Number = _SEED
    initial_physical_nodes: parts.PositiveCount | None = None


def chain_of(config: LoaderConfig) -> Pipeline:
    """Return the chain of a configuration, that of its settings where it has none."""
    seed = _SEED if config.seed is None else config.seed
    plain = StreamingDataset(shuffle=config.shuffles, shuffle_seed=seed)
    return config.stages or Pipeline(stages=(plain,))


def continued(chain: Pipeline, state: Mapping[str, Any]) -> Pipeline:
    """Return a chain that continues from a state, in the place of that which it has."""
    return replace(chain, stages=(chain.stages[0], LoadStateDict(**state)))


def streaming_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one rank yields of a DataLoader over a StreamingDataset."""
    try:
        work = Work(config)
        # All epochs have as many examples in as many batches, but one that is continued.
        sizes = [
            work.epoch(epoch)[1] for epoch in range(min(config.epochs, 2 if work.state else 1))
        ]
    except ValueError as error:
        raise UsageError(f"MosaicML Streaming refuses these settings: {error}") from None
    sizes += sizes[-1:] * (config.epochs - len(sizes))
    found = loader_sequence.EpochByEpoch(
        [int(one.sum()) for one in sizes],
        lambda epoch: work.epoch(epoch)[0],
        batches=loader_sequence.UnequalBatches(np.concatenate([np.empty(0, np.int64), *sizes])),
        shuffles=work.dataset.shuffle,
    )
    if work.dataset.local_world_size is None and config.num_hosts > 1:
        found.assumptions = (_ONE_NODE.format(config.num_hosts),)
    return found


class Work:
    """What the ranks of a StreamingDataset have to do in each epoch."""

    def __init__(self, config: LoaderConfig, *, is_later: bool = False) -> None:
        """`is_later`: worker processes have started anew, and know nothing of a state."""
        self._config = config
        chain = chain_of(config)
        match chain.stages:
            case (StreamingDataset() as dataset,):
                self.state = None
            case (StreamingDataset() as dataset, LoadStateDict() as state):
                self.state = state
            case _:
                raise UsageError(
                    "a chain of streaming is [streams(..) |] StreamingDataset(..) "
                    "[| load_state_dict(..)]"
                )
        if self.state is not None and config.first_epoch:
            raise UsageError("load_state_dict says the epoch; leave out --pass-index")
        if dataset.shuffle_algo == "py1b" and config.version != "0.9.1":
            raise UsageError(f"mosaicml-streaming {config.version} has no shuffle_algo 'py1b'")
        self.dataset = dataset
        # A state is read where its epoch begins; what it sets stays in that process alone.
        self._later = self
        if self.state is not None and config.workers and not is_later:
            self._later = Work(config, is_later=True)
        self._set = None if is_later else self.state
        self.initial = self._set.initial_physical_nodes if self._set else None
        self.batch = dataset.batch_size or config.batch or 0
        if not self.batch:
            raise UsageError("StreamingDataset needs batch_size=N, or --batch N")
        self.seed = self._set.shuffle_seed if self._set else dataset.shuffle_seed
        self._set_world()
        inputs = chain.source.inputs if isinstance(chain.source, Streams) else (chain,)
        self._streams = [self._stream(one, is_alone=one is chain) for one in inputs]
        self._weigh()
        if (total := int(self._chosen.sum())) > MAX_BUFFER:
            raise UsageError(
                f"an epoch of {total:,} samples is more than the {MAX_BUFFER:,} that are laid out "
                "here; give fewer, by epoch_size, choose, repeat or the spec"
            )
        self.epoch = lru_cache(2)(self._yielded)

    def _stream(self, given: Pipeline, *, is_alone: bool) -> tuple[Stream, Int64s, Int64s]:
        """Return the weight of a stream, the lengths of its shards, and where they begin."""
        stages = () if is_alone else given.stages
        if not isinstance(given.source, Read) or not all(isinstance(o, Stream) for o in stages[:1]):
            raise UsageError("a stream is a reader, or a reader and Stream(..)")
        if len(stages) > 1:
            raise UsageError("one Stream(..) stands behind a reader")
        source = self._config.whole_shards(given.source)
        lengths, starts = source.lengths_of_shards, source.starts_of_shards
        kept = lengths > 0  # MosaicML writes no empty shard
        return (*stages, Stream())[0], lengths[kept], starts[kept]  # type: ignore[return-value]

    def _set_world(self) -> None:
        """Set how many nodes there are, ranks on each, and which of them this is."""
        world, rank = self._config.num_hosts, self._config.host
        ranks = self.dataset.local_world_size or world
        if world % ranks:
            raise UsageError(f"{world} ranks are not {ranks} on each node")
        if (copies := self.dataset.replication) is not None:
            if world % copies:
                raise UsageError(f"replication={copies} does not divide {world} ranks")
            world, rank = world // copies, rank // copies
            nodes = 1 if world % ranks else world // ranks
            ranks = world // nodes
        self.nodes, self.ranks = world // ranks, ranks
        self.node, self.rank = divmod(rank, ranks)
        self.workers = max(self._config.workers, 1)
        many = self.dataset.shuffle_algo in ("py1s", "py2s")
        default = self.nodes * (64 if many else 1)
        said = self.dataset if self._set is None else self._set
        self.canonical = said.num_canonical_nodes or default
        self._block = self.dataset.shuffle_block_size or max(_BLOCKS // self.canonical, _BLOCK)

    def _weigh(self) -> None:
        """Set how many examples of each stream an epoch has, and its share."""
        weights = [stream for stream, _, _ in self._streams]
        sizes = np.array([int(lengths.sum()) for _, lengths, _ in self._streams])
        if not sizes.all():
            raise UsageError("MosaicML Streaming refuses a stream without samples")
        relative = {one.proportion is not None for one in weights}
        if len(relative) > 1:
            raise UsageError("proportion is needed of every Stream, or of none")
        total, is_plain = self.dataset.epoch_size, all(one == Stream() for one in weights)
        if relative == {True} or (is_plain and total):
            total = total or int(sizes.sum())
            shares = sizes.astype(np.float64)
            if not is_plain:
                shares = np.array([one.proportion for one in weights], np.float64)
            self._shares = shares / shares.sum()
            self._chosen = (total * self._shares).astype(np.int64)
            missing = total - int(self._chosen.sum())
            seed = self.dataset.shuffle_seed
            more = np.random.default_rng(seed).choice(len(weights), missing, replace=False)
            self._chosen[more] += 1
            return
        if total:
            raise UsageError("epoch_size has no place beside Stream(repeat or choose)")
        chosen = zip(weights, sizes.tolist(), strict=True)
        self._chosen = np.array(
            [
                int(one.repeat * size) if one.repeat is not None
                else size if one.choose is None else one.choose
                for one, size in chosen
            ]
        )  # fmt: skip
        self._shares = self._chosen / self._chosen.sum()

    def _yielded(self, epoch: int) -> tuple[Int64s, Int64s]:
        """Return what the rank yields in an epoch, and the sizes of its batches."""
        state, first = self.state, self._config.first_epoch
        number = epoch + (first if state is None else state.epoch)
        done = state.sample_in_epoch if state is not None and epoch == 0 else 0
        work = self._later if epoch else self
        mine = work.of_all(number, done)[self.node, self.rank]
        rows = [worker[worker >= 0] for worker in mine.reshape(self.workers, -1)]
        config = self._config
        return loader_sequence.dealt_by_workers(
            rows, config.batch or self.batch, drops=config.drop_remainder
        )

    def of_all(self, epoch: int, done: int) -> Int64s:
        """Return the examples of an epoch: [nodes, ranks, workers, batches, batch], -1 for none."""
        if self.dataset.batching_method == "random":
            every = range(len(self._streams))
            size = int(self._chosen.sum())
            places = self._partition(size, self.nodes, self.batch, done)
            return self._read(places, epoch, every, self._block)
        world = self.nodes * self.ranks * self.batch
        whole = self._in_batches(epoch, world)[done // world :]
        # Whole rounds of the workers.
        rest = np.full((-len(whole) % self.workers, world), -1, np.int64)
        shape = (-1, self.workers, self.nodes, self.ranks, self.batch)
        return np.concatenate([whole, rest]).reshape(shape).transpose(2, 3, 1, 0, 4)

    def _in_batches(self, epoch: int, world: int) -> Int64s:
        """Return the global batches of an epoch, each of `world` examples, in their order."""
        together = self.dataset.batching_method == "stratified"
        portions = np.full(len(self._streams), world)
        if together:
            exact = self._shares * world
            portions = exact.astype(np.int64)
            missing = world - int(portions.sum())
            portions[np.flip(np.argsort(exact - portions))[:missing]] += 1
            if not portions.all():
                raise ValueError("a stream has too low a share of the global batch")
        rows = []
        for stream, portion in enumerate(portions.tolist()):
            nodes, batch = (1, 1) if together else (self.nodes, self.batch)
            places = self._partition(int(self._chosen[stream]), nodes, batch, 0)
            block = int(self._block * self._shares[stream])
            flat = self._read(places, epoch, [stream], block).transpose(3, 2, 0, 1, 4).flatten()
            row = np.append(flat, np.full(-len(flat) % portion, -1)).reshape(-1, portion)
            rows.append(row[: int((row.min(axis=1) >= 0).sum())])
        if together:
            least = min(map(len, rows))
            return np.concatenate([row[:least] for row in rows], axis=1)
        empty = [stream for stream, row in enumerate(rows) if not len(row)]
        if len(empty) == len(rows) or (empty and self._config.version != "0.9.1"):
            raise ValueError(f"stream {empty[0]} does not fill a global batch")
        origins = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        # With `shuffle` each epoch draws anew.
        np.random.default_rng(self.seed + epoch * self._draws_anew).shuffle(origins)
        turns = np.empty(len(origins), np.int64)
        turns[np.argsort(origins, kind="stable")] = np.arange(len(origins))
        return np.concatenate(rows)[turns]

    @property
    def _draws_anew(self) -> bool:
        return self.dataset.shuffle and self.dataset.sampling_method == "balanced"

    def _read(self, places: Int64s, epoch: int, streams: Sequence[int], block: int) -> Int64s:
        """Return the examples at places of an epoch of some streams, which is shuffled first."""
        units, ids = self._resampled(epoch, streams)
        if self.dataset.shuffle:
            algo = self.dataset.shuffle_algo
            ids = ids[shuffled(algo, units, self.canonical, self.seed, epoch, block)]
        return np.where(places >= 0, ids[places], -1)

    def _resampled(self, epoch: int, streams: Sequence[int]) -> tuple[Int64s, Int64s]:
        """Return the lengths of shards as an epoch has them, and the examples in them."""
        moves = self.dataset.sampling_method == "balanced"
        rng = np.random.default_rng(self.seed + epoch * moves)
        units: list[int] = []
        ids: list[Int64s] = []
        for stream in streams:
            _, lengths, starts = self._streams[stream]
            chosen = self._sampled(lengths, int(self._chosen[stream]), epoch)
            every = zip(lengths.tolist(), starts.tolist(), chosen.tolist(), strict=True)
            for length, start, count in every:
                often, rest = divmod(count, length)
                units += [length] * often + [rest] * (rest > 0)
                ids += [np.arange(start, start + length)] * often
                if rest:
                    ids.append(np.sort(start + rng.choice(length, rest, replace=False)))
        return np.array(units, np.int64), np.concatenate(ids)

    def _sampled(self, lengths: Int64s, choose: int, epoch: int) -> Int64s:
        """Return how many examples of each shard an epoch has, all of them `choose`."""
        total, grain = int(lengths.sum()), self.dataset.sampling_granularity
        often, rest = divmod(choose, total)
        if not rest:
            return lengths * often
        picks = -(-lengths // grain)
        shards = np.repeat(np.arange(len(lengths)), picks)
        sizes = np.full(len(shards), grain)
        sizes[np.cumsum(picks) - 1] = lengths - (picks - 1) * grain
        seed = self.seed + epoch * self._draws_anew
        order = np.random.default_rng(seed).permutation(len(shards))
        before = np.cumsum(sizes[order]) - sizes[order]
        found = lengths * often
        np.add.at(found, shards[order], np.clip(rest - before, 0, sizes[order]))
        return found

    def _partition(self, size: int, nodes: int, batch: int, done: int) -> Int64s:
        """Return the places of an epoch that each rank and worker has, `done` of them left out."""
        world = nodes * self.ranks
        if size + world - size % world < done:
            raise ValueError(f"sample_in_epoch {done} of {size} samples")
        initial = self.initial
        few, many = sorted((nodes, self.canonical))
        if initial is None or not many % few or self.dataset.partition_algo == "orig":
            return self._originally(size, nodes, batch, done)
        # Another number of nodes than that of the start: batches as they were then, dealt anew.
        old, odd = divmod(nodes * batch, initial)
        if odd:
            raise ValueError(f"a global batch of {world * batch} is not that of {initial} nodes")
        places = self._originally(size, initial, old, done).transpose(3, 2, 0, 1, 4)
        shape = (-1, self.workers, nodes, self.ranks, batch)
        return places.reshape(shape).transpose(2, 3, 1, 0, 4)

    def _originally(self, size: int, nodes: int, batch: int, done: int) -> Int64s:
        canonical = self.canonical
        few, many = sorted((nodes, canonical))
        if many % few:
            raise ValueError("num_canonical_nodes and nodes: one must be a multiple of the other")
        done -= done % nodes
        each = -(-size // canonical)
        ratio = nodes // canonical if canonical < nodes else 0
        padding = -each % ratio if ratio else 0
        if size > canonical or (size == canonical and canonical >= nodes):
            bounds = np.arange(canonical + 1) * size // canonical
            ids = bounds[:-1, None] + np.arange(each + padding)
            # Short rows repeat their last sample; padding repeats samples before.
            ids[:, each - 1] -= np.diff(bounds) < each
            if padding:
                ids[:, -padding:] = ids[:, 1 - 2 * padding - ratio : 1 - padding - ratio]
        else:
            ids = np.resize(np.arange(size), (canonical, each + padding))
        ids = ids.T.flatten()[done:].reshape(-1, nodes).T
        short = -ids.shape[1] % self.ranks
        if short:
            last = np.resize(np.arange(ids.shape[1]), short)
            if self.ranks + short - 1 <= ids.shape[1]:
                stop = ids.shape[1] + 1 - self.ranks
                last = np.arange(stop - short, stop)
            ids = np.concatenate([ids, ids[:, last]], axis=1)
        ids = ids.reshape(nodes, -1, self.ranks)
        none = np.full((nodes, -ids.shape[1] % (self.workers * batch), self.ranks), -1)
        ids = np.concatenate([ids, none], axis=1).transpose(0, 2, 1)
        return ids.reshape(nodes, self.ranks, -1, self.workers, batch).transpose(0, 1, 3, 2, 4)


# The shuffles, each of which takes the lengths of shards.


def shuffled(
    algo: str, lengths: Int64s, num_parts: int, seed: int, epoch: int, block: int
) -> Int64s:
    """Return the places of all samples in the order of an epoch.

    >>> shuffled("py1s", np.array([3, 2]), 1, 0, 0, 10).tolist()
    [2, 0, 1, 4, 3]
    """
    size = int(lengths.sum())
    rng, run = np.random.default_rng(seed + epoch), np.random.default_rng(seed)
    if algo == "naive":
        return rng.permutation(size)
    ids, ends = np.arange(size), np.cumsum(lengths)
    spans: Spans = list(zip((ends - lengths).tolist(), ends.tolist(), strict=True))
    run.shuffle(spans)
    if algo == "py2s":
        _shuffle_each(ids, spans, run)
    nodes, found = _divided(spans, size, num_parts), []
    # With py2s all of a node is drawn before the next one.
    for node in nodes if algo != "py2s" else ():
        rng.shuffle(node)
    staggers = rng.integers(0, int(0.75 * block), num_parts) if algo == "py1br" else None
    for number, node in enumerate(nodes):
        if algo == "py2s":
            rng.shuffle(node)
        if staggers is None and algo != "py1b":
            _shuffle_each(ids, node, rng)
        mine = np.concatenate([ids[:0], *(ids[start:stop] for start, stop in node)])
        if algo == "py1e":
            mine = mine[np.argsort(_expanded(node, len(mine), block, rng))]
        elif algo == "py1b":
            starts = range(0, len(mine), block)
            _shuffle_each(mine, [(start, start + block) for start in starts], rng)
        elif staggers is not None:
            _shuffle_each(mine, _staggered(len(mine), int(staggers[number]), block, rng), rng)
        found.append(mine)
    return np.concatenate(found)


def _shuffle_each(ids: Int64s, spans: Spans, rng: np.random.Generator) -> None:
    for start, stop in spans:
        rng.shuffle(ids[start:stop])


def _divided(spans: Spans, size: int, num_parts: int) -> list[Spans]:
    """Return spans in parts of nearly one size; one that lies across a bound is cut."""
    found: list[Spans] = []
    at = done = 0
    for part in range(num_parts):
        end, mine = size * (part + 1) // num_parts, []
        while at < len(spans):
            start, stop = spans[at]
            if end < done + stop - start:
                if done < end:
                    cut = start + end - done
                    mine.append((start, cut))
                    spans[at], done = (cut, stop), end
                break
            mine.append((start, stop))
            at, done = at + 1, done + stop - start
        found.append(mine)
    return found


def _expanded(node: Spans, size: int, block: int, rng: np.random.Generator) -> Int64s:
    """Return where py1e puts the samples of a node, each span spread over about a block."""
    if not size:
        raise ValueError("a canonical node has no samples; reduce num_canonical_nodes")
    places, at = np.arange(size).astype(np.float64), 0
    for start, stop in node:
        length = stop - start
        width = rng.integers(int(0.75 * block), int(1.25 * block))
        cutoff = max((width - length) / 2, 0)
        low, high = max(-cutoff, -at), min(cutoff, size - at - length)
        places[at : at + length] += rng.uniform(low=low, high=high, size=length)
        at += length
    return places  # type: ignore[return-value]


def _staggered(size: int, stagger: int, block: int, rng: np.random.Generator) -> Spans:
    """Return the blocks in which py1br shuffles a node, whose first is shorter by `stagger`."""
    found, end = [], 0
    while end < size:
        width = int(rng.integers(int(0.75 * block), int(1.25 * block)))
        start, stop = max(end - stagger, 0), min(end + width - stagger, size)
        found.append((start, stop))
        end += stop - start
    return found
