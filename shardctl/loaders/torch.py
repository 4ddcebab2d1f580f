"""The orders of PyTorch's DataLoader, of torchdata's and of Accelerate's, of chains of their calls.

Each shuffles by rows that an iteration of a sampler draws, which are then dealt to hosts and
workers. Plain settings are the chain that they stand for (`chain_of`).

Sources: torch/utils/data/sampler.py, torch/utils/data/distributed.py (DistributedSampler),
torch/utils/data/dataloader.py (_BaseDataLoaderIter draws `_base_seed` from the loader's generator
at each iteration, whatever the workers), torchdata/stateful_dataloader and torchdata/nodes,
accelerate/data_loader.py (SeedableRandomSampler, BatchSamplerShard, IterableDatasetShard,
DataLoaderDispatcher, prepare_data_loader), transformers/trainer.py and trainer_pt_utils.py.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders import loader_sequence
from shardctl.loaders import torch_stages as calls
from shardctl.loaders.loader_sequence import LoaderConfig, LoaderSequence, Permutation
from shardctl.loaders.torch_generator import Generator, check_seed, num_draws, seeded
from shardctl.loaders.torch_stages import Row, Script
from shardctl.stages.part import Stage
from shardctl.stages.stages import Pipeline
from shardctl.tfdata.shuffle_buffer import MAX_BUFFER

_BASE_SEED = 2  # draws of 32 bits, for the `_base_seed` of an iteration
_NUMBER = 2  # draws of a number of 64 bits, with which a sampler seeds a generator of its own
_ITS_SEED = "the seed of the DataLoader's generator"
_AS_THE_TRAINER = (
    "use_seedable_sampler=True, as the Trainer sets it; Accelerator() alone has another order, "
    "which --shuffle with --global-seed N is, the seed of set_seed or torch.manual_seed"
)
_OWN_GENERATOR = (
    "the seed is that of the loader's own generator=torch.Generator().manual_seed(N); for "
    "torch.manual_seed(N) alone give --shuffle --global-seed N"
)
_NOT_SHUFFLED = "shuffle=False, so the global seed changes nothing; with shuffle=True add --shuffle"
_WORKERS_END = (
    "worker processes end with each epoch; if they stay, --persistent-workers, later "
    "epochs have another order; --no-persistent-workers leaves this out"
)


def torch_sequence(config: LoaderConfig) -> LoaderSequence:
    """Return what one process yields.

    Of torchdata that of a StatefulDataLoader, or of nodes; of Accelerate that of a DataLoader which
    it has prepared, or the Trainer.
    """
    if config.persistent_workers and not config.workers:
        raise refused("{persistent_workers=True} needs {workers=N}, as torch says")
    script = Script(config=config)
    if config.stages is not None and config.global_seed is not None:
        script.generators.append(Generator(check_seed(config.global_seed, "the global seed")))
    _run(script, chain_of(config, config.loader))
    if script.nodes or script.mixture is not None:
        return _followed(script)
    found = _dealt(script)
    if config.stages is None:
        found.assumptions = (*_assumed_of_settings(config), *found.assumptions)
    return found


def chain_of(config: LoaderConfig, loader: str) -> Pipeline:
    """Return the chain of a configuration, that for which its settings stand if they say none.

    Raises:
        UsageError: the settings contradict one another.
        UnpredictableOrderError: they shuffle without a seed.
    """
    if config.stages is not None:
        return config.stages
    if config.shares and loader != "accelerate":
        if config.global_seed is not None:
            raise refused(
                "{global_seed} has no meaning for DistributedSampler, which shares the examples "
                "among hosts; give its seed, {shuffle_seed=N}, which is 0 by default"
            )
        # Its default is shuffle=True with seed=0; here a seed, or the switch, asks for it.
        seed, drops = config.seed or 0, config.drop_shard_remainder
        shares = calls.DistributedSampler(shuffle=config.shuffles, seed=seed, drop_last=drops)
        return Pipeline(stages=(shares,))
    if config.drop_shard_remainder:
        raise refused("{drop_shard_remainder=True} needs {host=I/N}")
    stages: list[Stage] = []
    is_prepared, chosen = loader == "accelerate", config.seed if config.shuffles else None
    if config.shuffles:
        own = "the seed of the DataLoader's own generator"
        _check_one_seed(config, "the data_seed or seed of the Trainer" if is_prepared else own)
        if config.global_seed is not None:
            stages.append(calls.ManualSeed(seed=config.global_seed))
        kind = calls.StatefulDataLoader if loader == "stateful" else calls.DataLoader
        stages.append(kind(shuffle=True, generator=None if is_prepared else chosen))
    if is_prepared:
        stages.append(calls.Prepare(use_seedable_sampler=chosen is not None, data_seed=chosen))
    return Pipeline(stages=tuple(stages))


def _check_one_seed(config: LoaderConfig, own: str) -> None:
    """Refuse two seeds, of which one would be ignored, and none; `own` is what `seed` is.

    Raises:
        UsageError: both are given.
        UnpredictableOrderError: neither is.
    """
    if config.seed is not None and config.global_seed is not None:
        raise refused(
            "{shuffle_seed} is {}, {global_seed} is torch.manual_seed, which it then does not "
            "come from; leave one out",
            own,
        )
    if config.seed is None and config.global_seed is None:
        raise UnpredictableOrderError(
            f"--shuffle without a seed has another order in each run; give --shuffle-seed N, {own}"
            ", or --global-seed N, that of torch.manual_seed"
        )


def _assumed_of_settings(config: LoaderConfig) -> tuple[str, ...]:
    """Return what is assumed of a seed that a script may use in two ways, or not at all."""
    if config.loader != "accelerate" and config.shares:
        return ()
    if config.seed is not None:
        is_trainer = config.loader == "accelerate" and config.shuffles
        return (_AS_THE_TRAINER if is_trainer else _OWN_GENERATOR,)
    silent = config.global_seed is not None and not config.shuffles and config.shuffle is None
    return (_NOT_SHUFFLED,) if silent else ()


# What a script is made of, in the order in which it makes them.
_PLACES = ("dataset", "sampler", "batch_sampler", "loader", "node")


def _run(script: Script, chain: Pipeline) -> None:
    """Do what the calls of a chain do."""
    source, config = chain.source, script.config
    script.elements = config.read_by(source).indices
    if isinstance(source, calls.ConcatDataset | calls.MultiNodeWeightedSampler):
        for one in source.fed_by:
            made = Script(config=config, generators=script.generators)
            _run(made, one)
            script.inputs += (made,)
        if isinstance(source, calls.ConcatDataset):
            script.elements = np.concatenate([np.array(one.elements) for one in script.inputs])
        else:
            script.mixture = source
    last = 0 if script.mixture is None else len(_PLACES) - 1
    for stage in chain.stages:
        assert isinstance(stage, calls.TorchStage)
        if why := stage.why_open(None, None):
            raise UnpredictableOrderError(f"{why}, in another order in each run")
        place = _PLACES.index(stage.makes) if stage.makes else last
        if place < last or (place == last and stage.makes in ("sampler", "batch_sampler")):
            raise UsageError(f"--stages: {stage.name} has no place behind what is before it")
        stage.call(script)
        last = place


def _rows(script: Script, row: Row) -> tuple[Callable[[int], Permutation] | None, bool]:
    """Return the row of each epoch that is read, counted from the first; None as it is stored.

    Also whether it depends on whether workers stay from epoch to epoch.
    """
    config, prepared, made_by = script.config, script.prepared, script.made_by
    first = config.first_epoch
    if row.pieces is None:
        return None, False
    if row.seeds_itself and prepared is not None and prepared.use_seedable_sampler:
        # SeedableRandomSampler: the epoch counts from the first one read, and the seed from 0.
        seed = prepared.data_seed
        if seed is None:
            seed = script.default("prepare(use_seedable_sampler=True)").initial_seed
        row = replace(row, seed=seed, by_epoch=True)
    if row.by_epoch:
        assert not isinstance(row.seed, tuple)
        seed, step = row.seed or 0, int(script.set_epoch)
        # Seeds grow with the epoch, so the first and the last are the extremes.
        for epoch in (first * step, (first + config.epochs - 1) * step):
            said = f"the seed {seed} + epoch {epoch}" if epoch else "the seed"
            check_seed(seed + epoch, said)
        return (lambda epoch: row.order(Generator(seed + (first + epoch) * step))), False
    is_own, shuffles = row.seed is not None, made_by is not None and made_by.shuffle
    is_shard = prepared is not None and config.num_hosts > 1 and not prepared.dispatch_batches
    is_shard = is_shard and not (prepared is not None and prepared.use_seedable_sampler)
    generator = _generator(script, row)
    # An iteration of a loader draws its `_base_seed` first, from its generator or the default one;
    # workers that stay have one for all iterations.
    is_shared = shuffles if is_own else made_by is None or made_by.generator is None
    base = _BASE_SEED if is_shared else 0
    again = 0 if config.persistent_workers else base
    begin = generator.drawn
    seeds, draws, start = not is_own and row.seeds_itself, row.draws, begin + base
    if script.config.loader == "stateful" and shuffles:
        generator = generator if is_own else Generator(generator.int64())
        is_shared = made_by is not None and made_by.generator is not None
        start, draws = _stateful(row, config, base if is_own and is_shared else 0)
        start += begin if is_own else 0
        seeds, again, is_shared = False, 0, True
    elif not is_own and is_shard:
        # prepare_data_loader gives it a generator, the same in all processes.
        generator, start, again, seeds, is_shared = Generator(generator.int64()), 0, 0, False, False
    step = (_NUMBER if seeds else draws) + again

    def order(epoch: int) -> Permutation:
        there = generator.seek(start + (first + epoch) * step)
        return row.order(Generator(there.int64()) if seeds else there)

    return order, is_shared


def _generator(script: Script, row: Row) -> Generator:
    """Return what a row draws from: a generator of its own, or the default one."""
    return script.default("a sampler") if row.seed is None else seeded(row.seed, _ITS_SEED)


def _stateful(row: Row, config: LoaderConfig, base: int) -> tuple[int, int]:
    """Return the first draw of torchdata's RandomSampler, and the draws of an epoch.

    Sources: torchdata/stateful_dataloader/sampler.py (it is seeded when the loader is made, and an
    iterator of it permutes when it is made) and stateful_dataloader.py (an iterator of the loader
    makes one of the sampler, and another in `_reset`, which is called where there are workers;
    workers that stay are started once, and their epochs begin with `_reset` alone). What a state
    restores is the generator before the permutation in use, so epochs after a resume are those of
    a run that was not interrupted.
    """
    permutation, stays = num_draws(row.size), config.persistent_workers
    if not config.workers:
        return 0, permutation + base
    # With workers an iterator makes two iterators of the sampler, with `_base_seed` between them;
    # with workers that stay, only `_reset` does.
    return permutation + base, permutation if stays else 2 * permutation + base


def _dealt(script: Script) -> LoaderSequence:
    """Return the epochs of a loader, each of which is dealt the same way."""
    config, prepared, batch = script.config, script.prepared, script.batch
    if batch is not None and config.batch is not None:
        raise refused(
            "{batch=} beside a batch size in the chain: leave one out", batch=config.batch
        )
    batch = config.batch if batch is None else batch
    drops = (script.drops or config.drop_remainder) and batch is not None
    if script.drops and batch is None:
        raise UsageError("DataLoader: drop_last=True needs a batch size, as torch says")
    if prepared is not None and batch is None:  # prepare_data_loader drops the sampler, too
        raise refused(
            "Accelerate deals whole batches to its processes; give {batch=N} of one process"
        )
    row = script.row or Row(size=len(script.elements))
    order, by_workers = _rows(script, row)
    said: tuple[str, ...] = ()
    if by_workers and config.workers and config.persistent_workers is None:
        said = (_WORKERS_END,) if config.first_epoch + config.epochs > 1 else ()
    sizes = None
    if script.stream is not None or (prepared is not None and prepared.dispatch_batches):
        places, sizes, repeats = _in_turn(script, row, batch, drops)
        said += repeats
    else:
        deal, batch = _deal(script, row.size, batch, drops)
        size = None if batch is None else batch * script.steps
        is_whole = order is None or row.is_permutation
        if is_whole and isinstance(script.elements, range) and script.elements == range(row.size):
            found: LoaderSequence = loader_sequence.Dealt(
                row.size, deal, epochs=config.epochs, permutation=order, batch=size
            )
            found.assumptions = said
            return found
        if row.size > MAX_BUFFER:
            raise UsageError(
                f"a sampler of {row.size:,} examples takes about {row.size * 16 // 10**9} GB here, "
                f"and more than {MAX_BUFFER:,} are refused; give a smaller num_samples, or a part "
                "of the spec"
            )
        places = _places(deal, row.size)
    elements, kept = np.array(script.elements, np.int64), len(places)

    def epoch(number: int) -> Int64s:
        return elements[places if order is None else order(number)[places]]

    batches: loader_sequence.EqualBatches | loader_sequence.UnequalBatches | None = None
    if sizes is not None and batch is not None:
        steps = np.add.reduceat(sizes, np.arange(0, len(sizes), script.steps)) if kept else sizes
        batches = loader_sequence.UnequalBatches(np.tile(steps, config.epochs))
    elif batch is not None:
        batches = loader_sequence.EqualBatches(kept, batch * script.steps, epochs=config.epochs)
    shuffles = order is not None
    found = loader_sequence.EpochByEpoch(
        [kept] * config.epochs, epoch, batches=batches, shuffles=shuffles
    )
    found.is_uniform, found.assumptions = shuffles and row.is_permutation, said
    return found


def _places(deal: loader_sequence.Deal, n: int) -> Int64s:
    """Return the places among n that a deal has; those behind the end are filled from the start."""
    return deal.places(np.arange(deal.size)) % max(n, 1)


def _deal(
    script: Script, n: int, batch: int | None = None, drops: bool = False
) -> tuple[loader_sequence.Deal, int | None]:
    """Return which of n places a process is dealt, and the size of its batches."""
    config, prepared = script.config, script.prepared
    host, count, drops_rest = script.share
    if prepared is None or config.num_hosts == 1 or batch is None:
        size = n // count if drops_rest else -(-n // count)
        if drops and batch is not None:
            size = size // batch * batch
        return loader_sequence.Deal(host=host, num_hosts=count, size=size), batch
    host, count = config.host, config.num_hosts
    # Whole batches are dealt, or pieces of them.
    block = _share_of_batch(batch, prepared, count)
    full, left = divmod(n, block * count)
    size = full * block
    if not drops and left:
        # An incomplete round is filled from the start of the epoch, streams always.
        fills = prepared.even_batches or script.stream is not None
        size += block if fills else min(max(left - host * block, 0), block)
    return loader_sequence.Deal(host=host, num_hosts=count, block=block, size=size), block


def _share_of_batch(batch: int, prepared: calls.Prepare, count: int) -> int:
    if prepared.split_batches and batch % count:
        raise UsageError(
            f"split_batches: a batch of {batch} cannot be split among {count} processes, as "
            "Accelerate says; give a multiple"
        )
    return batch // count if prepared.split_batches else batch


def _in_turn(
    script: Script, row: Row, batch: int | None, drops: bool
) -> tuple[Int64s, Int64s, tuple[str, ...]]:
    """Return places and sizes of the batches that workers read in turn, and what is assumed.

    Of an `IterableDataset` each worker makes batches of its own.
    """
    config, stream, prepared = script.config, script.stream, script.prepared
    said: tuple[str, ...] = ()
    streams, size = [np.arange(row.size)], batch or 1
    if stream is not None:
        if row.pieces is not None or (stream.hosts and prepared is not None):
            raise UsageError("IterableDataset: it has no sampler, and Accelerate no hosts=True")
        streams, said = _of_workers(row.size, stream, config)
    if stream is not None and prepared is not None and not prepared.dispatch_batches:
        for number, each in enumerate(streams):
            deal, _ = _deal(script, len(each), batch, drops)
            streams[number] = each[_places(deal, len(each))]
        size = _share_of_batch(size, prepared, config.num_hosts)
    places, sizes = loader_sequence.dealt_by_workers(streams, size, drops=drops)
    if prepared is not None and prepared.dispatch_batches:
        places, sizes = _dispatched(places, sizes, script, size, drops)
    return places, sizes, said


def _of_workers(
    n: int, stream: calls.IterableDataset, config: LoaderConfig
) -> tuple[list[Int64s], tuple[str, ...]]:
    """Return what each worker yields of a stream, and what is assumed."""
    workers, shares = config.workers or 1, stream.worker_info != "ignored"
    found = []
    for worker in range(workers):
        number, count = (config.host, config.num_hosts) if stream.hosts else (0, 1)
        if shares:
            number, count = number * workers + worker, count * workers
        block, row = -(-n // count), np.arange(n)
        is_block = stream.worker_info == "block"
        found.append(row[number * block :][:block] if is_block else row[number::count])
    if workers == 1 or shares:
        return found, ()
    said = (
        f"each of the {workers} workers yields all examples, since the IterableDataset does not "
        "ask get_worker_info; worker_info=stride, or block, shares them"
    )
    return found, (said,)


def _dispatched(
    places: Int64s, sizes: Int64s, script: Script, batch: int, drops: bool
) -> tuple[Int64s, Int64s]:
    """Return what a process gets of the batches that the first one reads and sends in pieces."""
    assert script.prepared is not None
    host, count = script.config.host, script.config.num_hosts
    _share_of_batch(batch, script.prepared, count)
    together = 1 if script.prepared.split_batches else count
    rounds = [int(np.sum(sizes[at : at + together])) for at in range(0, len(sizes), together)]
    if drops and len(sizes) % together:
        rounds.pop()
    found, start, first = [np.empty(0, np.int64)], 0, places[: sum(rounds[:1])][:count]
    for number, length in enumerate(rounds, 1):
        piece, (share, left) = places[start : start + length], divmod(length, count)
        # Only the last round is filled, from the start; of others the remainder is lost.
        if left and number == len(rounds) and not drops:
            piece, share = np.concatenate([piece, first]), share + 1
        found.append(piece[host * share : (host + 1) * share])
        start += length
    if not rounds or not all(map(len, found[1:])):
        raise UsageError("dispatch_batches: a process gets no example, where Accelerate fails")
    return np.concatenate(found), np.array([len(piece) for piece in found[1:]], np.int64)


# Nodes are followed, since of a mixture what one draws depends on where others end.


class _Node:
    """The last node of a chain: iterated anew after each `reset`, as those of torchdata."""

    def __init__(self, script: Script) -> None:
        mixed = script.inputs if script.mixture is not None else ()
        self.script, self.parts = script, [_Node(one) for one in mixed]
        self.is_batched: bool = any(part.is_batched for part in self.parts)
        for node in script.nodes:
            if isinstance(node, calls.Batcher | calls.Unbatcher):
                if isinstance(node, calls.Batcher) is self.is_batched:
                    raise UsageError(f"{node.name}: batches are its elements already, or none are")
                self.is_batched = not self.is_batched
        if not script.nodes and script.mixture is None:
            raise UsageError(
                "MultiNodeWeightedSampler: its inputs are nodes, as SequentialSampler | "
                "SamplerWrapper"
            )
        self._row = row = script.row or Row(size=len(script.elements))
        draws = row.pieces is not None and not row.by_epoch
        self._generator = _generator(script, row) if draws else None
        self.epoch, self._started, self._is_done = 0, False, False
        self._elements: Iterator[list[int]] = iter(())

    def reset(self) -> None:
        """Begin another epoch, where anything was asked for in this one."""
        reads_ahead = any(isinstance(node, calls.ThreadedNode) for node in self.script.nodes)
        if reads_ahead and self._row.pieces and self._started and not self._is_done:
            raise UnpredictableOrderError(
                "a node that reads ahead is left before its end, so how much its sampler has drawn "
                "depends on time; put Prefetcher and ParallelMapper behind the mixture"
            )
        self.epoch += self._started
        self._started = self._is_done = False
        for part in self.parts:
            part.reset()
        self._elements = self._source() if self.script.mixture is None else self._mixed()
        for node in self.script.nodes:
            self._elements = _behind(self._elements, node)

    def next(self) -> list[int] | None:
        """Return the indices that are in the next element, None at the end."""
        self._started = True
        found = next(self._elements, None)
        self._is_done = found is None
        return found

    def _source(self) -> Iterator[list[int]]:
        row, script = self._row, self.script
        generator = self._generator
        if row.by_epoch and not isinstance(row.seed, tuple):
            wrappers = [one for one in script.nodes if isinstance(one, calls.SamplerWrapper)]
            first = sum(one.initial_epoch for one in wrappers)
            generator = Generator((row.seed or 0) + self.epoch + first)
        elif generator is not None and row.seed is None and row.seeds_itself:
            generator = Generator(generator.int64())
        pieces = iter([np.arange(row.size)])
        if row.pieces is not None and generator is not None:
            pieces = row.pieces(generator)
        elements = np.array(script.elements, np.int64)
        for piece in pieces:
            places = piece
            if script.share[1] > 1:  # of DistributedSampler, which has one piece
                places = piece[_places(_deal(script, row.size)[0], row.size)]
            yield from ([index] for index in elements[places].tolist())

    def _mixed(self) -> Iterator[list[int]]:
        source, config = self.script.mixture, self.script.config
        assert source is not None
        rank = config.host if source.rank is None else source.rank
        of_rank = Generator(source.seed * (source.world_size or config.num_hosts) + rank)
        generator = Generator(of_rank.seek(2 * self.epoch).int64((1 << 32) - 1))
        how, exhausted = source.stop_criteria, [False] * len(self.parts)
        only_once = how == "ALL_DATASETS_EXHAUSTED"
        while True:
            # Which node comes next is drawn 1,000 at a time.
            for key in generator.multinomial(np.array(source.weights), 1000, True).tolist():
                part = self.parts[key]
                found = None if exhausted[key] and only_once else part.next()
                if found is None:
                    exhausted[key] = True
                    is_end = all(exhausted) or how == "FIRST_DATASET_EXHAUSTED"
                    if is_end and how != "CYCLE_FOREVER":
                        return
                    if only_once:
                        continue
                    part.reset()
                    if (found := part.next()) is None:
                        raise UsageError(f"{source.name}: an input has no elements")
                yield found


def _behind(elements: Iterator[list[int]], node: calls.NodeStage) -> Iterator[list[int]]:
    """Yield what a node makes of elements."""
    if isinstance(node, calls.Batcher):
        while some := list(islice(elements, node.batch_size)):
            if len(some) == node.batch_size or not node.drop_last:
                yield [index for one in some for index in one]
    elif isinstance(node, calls.Unbatcher):
        for one in elements:
            yield from ([index] for index in one)
    else:
        yield from elements


def _followed(script: Script) -> LoaderSequence:
    """Return what nodes yield, epoch after epoch from the first."""
    config, node = script.config, _Node(script)
    is_endless = script.mixture is not None and script.mixture.stop_criteria == "CYCLE_FOREVER"
    if is_endless and config.first_epoch + config.epochs > 1:
        raise UsageError("CYCLE_FOREVER: its first epoch has no end, so no other comes")
    if config.batch is not None:
        raise refused("{batch=} has no meaning for nodes; write Batcher there", batch=config.batch)

    def epochs() -> Iterator[Iterator[list[int]]]:
        for epoch in range(-config.first_epoch, config.epochs):
            node.reset()
            elements = iter(node.next, None)
            if epoch >= 0:
                yield elements
            deque(elements, maxlen=0)  # those before draw as well

    shuffles = script.row is not None and script.row.pieces is not None
    return loader_sequence.Followed(
        loader_sequence.pieces_of(epochs()),
        batches=node.is_batched,
        shuffles=script.mixture is not None or shuffles,
        is_endless=is_endless,
    )
