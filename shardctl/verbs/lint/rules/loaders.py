"""SC081 to SC096: what other loaders make of workers, hosts, windows, shards, seeds and steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardctl.base.phrase import option
from shardctl.base.text import counted
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.loaders.hugging_face_eras import era_of
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import LintContext, Read, chains
from shardctl.verbs.lint.rule import Violation, rule

if TYPE_CHECKING:
    from shardctl.loaders.grain_stages import IndexSampler
    from shardctl.loaders.hugging_face_streams import Stream
    from shardctl.order.loader_order import LoaderOrder

_GRAIN = ("grain",)


@rule("SC081", "workers", loaders=_GRAIN)
def worker_batches(context: LintContext) -> Iterator[Violation]:
    """Find batches that several workers make."""
    workers, batch = context.settings.workers or 0, context.settings.batch or 0
    why = (
        f"with {option('workers', workers)} each worker batches what it reads itself; with "
        "another number of them other examples meet in a batch"
    )
    for read, order in _orders(context, context.trained if workers > 1 and batch > 1 else ()):
        if order.num_examples > 1:
            fix = "keep --workers fixed, or batch a MapDataset before to_iter_dataset"
            yield Violation(why, fix, read)


@rule("SC082", "drop_shard_remainder", "host", loaders=_GRAIN)
def lost_remainder(context: LintContext) -> Iterator[Violation]:
    """Find hosts that cannot share evenly what an IndexSampler has."""
    sampler, num_hosts = _sampler(context), context.num_hosts
    if sampler is None or sampler.drop_remainder or not sampler.num_epochs:
        return
    epochs = sampler.num_epochs
    for read, _ in _orders(context, context.used):
        each, rest = divmod(read.num_examples, num_hosts)
        if not rest:
            continue
        size = epochs * read.num_examples // num_hosts
        # All hosts read `size` examples. A host with a piece of each + 1 examples ends before it
        # has read all of them; one with `each` begins its piece anew.
        lost, again = epochs * (each + 1) - size, size - epochs * each
        those = f"{rest} of them {'is' if rest == 1 else 'are'} {lost} short of"
        share = "its share" if epochs == 1 else f"{epochs} epochs"
        others = f", the others read {again} once more" if again else ""
        each_host = f"each of {num_hosts} hosts reads {counted(size, 'example')}"
        fix = "--drop-shard-remainder, or --host-by examples, which reads every example"
        if context.as_written.stages is not None:
            fix = "drop_remainder=True, or a MapDataset with slice(host, None, hosts)"
        yield Violation(f"{each_host}; {those} {share}{others}", fix, read)


@rule("SC083", "shuffle_seed", "host", loaders=_GRAIN)
def host_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts whose pieces are shuffled alike."""
    sampler, num_hosts = _sampler(context), context.num_hosts
    for read in context.trained if sampler is not None and sampler.seed is not None else ():
        each, rest = divmod(read.num_examples, num_hosts)
        # Pieces of equal length are permuted alike under one seed: `longer` hosts have a piece of
        # one example more, the others have the same shorter length.
        longer = 0 if sampler is not None and sampler.drop_remainder else rest
        alike = max(longer, num_hosts - longer)
        if each > 1 and alike > 1:
            who = f"{alike:,} of {num_hosts:,} hosts" if longer else f"all {num_hosts:,} hosts"
            why = f"{who} read the same positions of their pieces at the same time"
            fix = "a seed for each host, as in seed + 1000 * host, or --host-by examples"
            yield Violation(why, fix, read)


@rule("SC085", "buffer", "epochs", loaders=_GRAIN)
def overlapping_window(context: LintContext) -> Iterator[Violation]:
    """Find windows that the examples do not fill."""
    window = context.settings.buffer or 1
    for read, _ in _orders(context, context.used):
        # How many positions the last window lacks.
        beyond = -(context.settings.epochs * read.num_examples) % window
        if beyond:
            why = (
                f"the last window of {option('buffer', window)} reaches "
                f"{counted(beyond, 'position')} beyond the end: some examples come once more, and "
                "others are left out"
            )
            yield Violation(why, "a --buffer that divides the examples", read)


def _sampler(context: LintContext) -> IndexSampler | None:
    """Return Grain's IndexSampler by which several hosts share, None where none does."""
    from shardctl.loaders.grain_stages import IndexSampler  # NumPy

    settings = context.settings
    if context.num_hosts == 1:
        return None
    if context.as_written.stages is not None:
        calls = (one for one in _calls(context) if isinstance(one, IndexSampler))
        return next((one for one in calls if one.shard_count is None), None)
    if settings.host_by != "even" or settings.buffer is not None:
        return None
    return IndexSampler(
        shuffle=settings.shuffle_seed is not None,
        seed=settings.shuffle_seed,
        num_epochs=settings.epochs,
        drop_remainder=settings.drop_shard_remainder,
    )


def _calls(context: LintContext) -> Iterator[Any]:
    """Yield the calls of the chain of a loader, those of its inputs too."""
    for chain in context.chains if context.as_written.stages is not None else ():
        yield from chain.pipeline.stages


def _orders(
    context: LintContext, reads: tuple[Read, ...] | None = None
) -> Iterator[tuple[Read, LoaderOrder]]:
    """Yield the specs that a loader reads with these settings, each with the order of a host."""
    for read in context.trained if reads is None else reads:
        order = context.loader_orders[read.spec]
        if not isinstance(order, ShardctlError):
            yield read, order


# PyTorch's loaders: workers, and hosts that do not divide.


@rule("SC087", "workers", "shuffle", "loader", loaders=("stateful",))
def worker_order(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle of StatefulDataLoader that workers change, or may change."""
    workers = context.settings.workers
    why = "without workers the order is different"
    if workers is None:
        why = "the order depends on whether there are workers, and their number is not set"
    fix = (
        "--workers N as in every run, or a StatefulDistributedSampler (--host 0/1 with "
        "--shuffle-seed N)"
    )
    reads = context.trained if workers != 0 and context.num_hosts == 1 else ()
    for read, order in _orders(context, reads):
        # With a sampler for hosts the order does not depend on workers.
        if order.settings.host is None and order.shuffles and read.num_examples > 1:
            yield Violation(why, fix, read)


@rule("SC088", "host", "hosts", "batch", loaders=("torch", "stateful", "accelerate"))
def repeated_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluations that are filled up with examples from their beginning."""
    num_hosts, gather = context.num_hosts, context.settings.reader.drops_repeated
    fix = "leave them out of the metric, or a number of hosts that divides"
    for read, order in _orders(context, context.evaluated if num_hosts > 1 else ()):
        # All processes are dealt as many, one after the other.
        dealt = num_hosts * order.epoch_size
        if dealt > read.num_examples:
            again = f"{read.num_examples:,}: {dealt - read.num_examples:,} are read again"
            why = f"{num_hosts:,} processes read {dealt:,} examples, and there are {again}"
            yield Violation(why, f"{gather}, which drops them" if gather else fix, read)


# What a script calls, and what it leaves out: set_epoch, seeds, steps of several batches.

_TORCH = ("torch", "stateful", "accelerate")


@rule("SC084", "stages", "epochs", loaders=(*_TORCH, "hf"))
def set_epoch_never_called(context: LintContext) -> Iterator[Violation]:
    """Find epochs that are alike since nothing tells the shuffle which epoch it is."""
    again = context.several_epochs and any(
        getattr(call, "set_epoch", None) is False and getattr(call, "shuffle", True)
        for call in _calls(context)
    )
    why = "set_epoch is never called, so every epoch has the order of the first"
    for read, order in _orders(context, context.trained if again else ()):
        if not order.sequence.is_shuffled_once:
            yield Violation(why, "set_epoch(epoch) before each epoch", read)


@rule("SC086", "shuffle", "global_seed", loaders=_TORCH)
def draws_in_between(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle by the default generator, from which whatever is made before it draws."""
    why = (
        "the shuffle draws from PyTorch's default generator: a model or another loader that is "
        "made between torch.manual_seed and the loop changes the order"
    )
    fix = "a generator of the loader's own, or torch.manual_seed right before the loop"
    for read, order in _orders(context):
        calls = _calls_of(order)
        known = any(getattr(call, "draws_before", 0) for call in calls)
        if order.shuffles and not known and any(map(_draws, calls)) and not _own_seed(calls):
            yield Violation(why, fix, read)


@rule("SC089", "stages", loaders=("accelerate",))
def seed_without_effect(context: LintContext) -> Iterator[Violation]:
    """Find a seed that is set beside a Trainer or a sampler that has its own."""
    calls = tuple(_calls(context))
    own, seeds = _own_seed(calls), [one for one in calls if one.name == "manual_seed"]
    split = any(one.name == "random_split" and one.generator is None for one in calls)
    for read, order in _orders(context, context.trained if own and seeds and not split else ()):
        if order.shuffles:
            name = "Trainer" if own.name == "Trainer" else "the seedable sampler"
            why = f"{name} shuffles by its own seed; {text_of_part(seeds[0])} changes no order"
            yield Violation(why, "seed=N or data_seed=N of the Trainer, before it is made", read)


@rule("SC095", "stages", "batch", loaders=("accelerate",))
def partial_accumulation(context: LintContext) -> Iterator[Violation]:
    """Find epochs whose last step accumulates fewer batches than the others."""
    for read, order in _orders(context):
        for call in _calls(context):
            steps = getattr(call, "gradient_accumulation_steps", 1)
            size = steps > 1 and (call.per_device_train_batch_size or order.config.batch or 1)
            batches = -(-order.epoch_size // size) if size else 0
            if rest := batches % steps:
                number, last = batches // steps + 1, counted(rest, "batch", "batches")
                why = (
                    f"{batches:,} batches an epoch are {number:,} steps of {steps}, the last of "
                    f"{last}: a count of steps times {steps} is beyond the epoch, and a "
                    "checkpoint within a step has no count"
                )
                fix = (
                    "a number of steps that divides the batches, and checkpoints after whole steps"
                )
                yield Violation(why, fix, read)


@rule("SC094", "stages", loaders=("hf", "grain"))
def ends_with_the_first(context: LintContext) -> Iterator[Violation]:
    """Find mixtures that end with their first input, and leave out what the others still have."""
    cures = {
        "interleave_datasets": "stopping_strategy='all_exhausted'",
        "mix": "repeat() of the inputs, with an end behind the mix",
    }
    sources = [chain.pipeline.source for chain in context.chains]
    mixed = [one for one in sources if one.name in cures and _stops_early(one)]
    # What else leaves examples out hides what the mixture does.
    alone = context.num_hosts == 1 and not any(one.name in _SHORTER for one in _calls(context))
    reads = context.trained if mixed and alone else ()
    for _, order in islice(_orders(context, reads), 1):  # of the chain, whatever it is given
        total, found = int(order.reads.take.sum()), order.epoch_size
        if not order.is_endless and found < total:
            name = mixed[0].name
            why = f"{name} ends with its first input: {found:,} of {total:,} examples are yielded"
            yield Violation(why, cures[name])


@rule("SC096", "stages", "hosts", loaders=("streaming",))
def canonical_nodes(context: LintContext) -> Iterator[Violation]:
    """Find canonical nodes that follow from the number of nodes, and the order with them."""
    said = any(getattr(call, "num_canonical_nodes", None) for call in _calls(context))
    why = (
        "num_canonical_nodes follows from the number of nodes: on other nodes the same seed gives "
        "another order, which load_state_dict alone keeps"
    )
    fix = "num_canonical_nodes=N in StreamingDataset, a multiple of each number of nodes"
    reads = context.trained if context.num_hosts > 1 and not said else ()
    for read, _ in _orders(context, reads):
        yield Violation(why, fix, read)


# Calls that leave examples out themselves.
_SHORTER = {"LimitIterDataset", "filter", "select", "shard", "skip", "slice", "split", "take"}
_SHORTER |= {"train_test_split", "split_dataset_by_node"}


def _stops_early(source: Any) -> bool:
    return getattr(source, "stopping_strategy", "first_exhausted") == "first_exhausted"


def _calls_of(order: LoaderOrder) -> tuple[Any, ...]:
    """Return the calls of PyTorch's chain, that for which settings stand where they say none."""
    from shardctl.loaders.torch import chain_of  # NumPy

    found = chains(chain_of(order.config, order.loader.name))
    return tuple(call for chain in found for call in chain.pipeline.stages)


def _draws(call: Any) -> bool:
    """Whether a call shuffles or splits by PyTorch's default generator."""
    has_one = getattr(call, "generator", 0) is None
    return has_one and bool(getattr(call, "shuffle", True))


def _own_seed(calls: Iterable[Any]) -> Any:
    """Return the call that shuffles by a seed of its own, None where none does."""
    return next((one for one in calls if getattr(one, "use_seedable_sampler", False)), None)


# What rules about shuffles find where another loader than TFDS's reads.

_EPOCHS = ("epochs", "pass")


def one_order(context: LintContext) -> Iterator[Violation]:
    """Find training whose epochs are alike, since nothing shuffles it, or shuffles it once."""
    why = "the examples come in the same order in every epoch, since "
    for read, order in _orders(context) if context.several_epochs else ():
        if not order.shuffles and read.num_examples > 1:
            cause, fix = "nothing shuffles it", seed_to_give(context)
            yield Violation(f"{why}{cause}", fix, read, settings=_EPOCHS)
    for read, order in _orders(context) if context.several_epochs else ():
        if order.sequence.is_shuffled_once:
            cause = "Dataset.shuffle mixes once and a Dataset has no set_epoch"
            fix = "ds.shuffle(seed=seed + epoch) in each epoch, or --streaming"
            yield Violation(f"{why}{cause}", fix, read, settings=_EPOCHS)


def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a read for training without any shuffle."""
    why = "nothing shuffles it, so examples come in the order of storage"
    for read, order in () if context.several_epochs else _orders(context):
        if not order.shuffles and read.num_examples > 1:
            yield Violation(why, seed_to_give(context), read)


def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find an order that the loader leaves open, most often for want of a seed."""
    for read in context.trained:
        found = context.loader_orders[read.spec]
        if isinstance(found, UnpredictableOrderError):
            names = ("shuffle", "loader")
            yield Violation(f"{found}", seed_to_give(context), read, settings=names)


def seed_to_give(context: LintContext) -> str:
    """Return the seeds that the loader takes, as settings to give."""
    takes = context.settings.takes
    if context.settings.stages is not None and not takes("shuffle_seed"):
        return "a shuffle with a seed among the --stages"
    ways = ["--shuffle-seed N"] if takes("shuffle_seed") else []
    if takes("global_seed") and takes("shuffle"):
        ways.append("--shuffle with --global-seed N")
    return ", or ".join(ways)


# Streaming with Hugging Face Datasets: shards, hosts and workers.

_HF = ("hf",)
_FAR_SMALLER = 2  # times


@rule("SC091", "hosts", "host_by", loaders=_HF)
def hosts_read_everything(context: LintContext) -> Iterator[Violation]:
    """Find hosts that share examples of a stream by stride without having asked for it."""
    for read, order, streaming in _streamed(context):
        asked = order.config
        if asked.num_hosts == 1 or streaming.strategy != "auto" or streaming.shares_shards():
            continue
        files, hosts, now = len(asked.lengths_of_shards), asked.num_hosts, ""
        if streaming.node.num_shards != files:
            now = f" (after the shuffle they count as {streaming.node.num_shards:,})"
        fix = f"a multiple of {hosts} as the number of shards"
        if files >= hosts and era_of(order.version).has_strategy:
            fix = f"{fix}, or --host-by files"
        shards = f"{hosts:,} hosts do not share {counted(files, 'shard')}{now} evenly"
        why = f"{shards}: each streams all of them and keeps one example in {hosts:,}"
        yield Violation(why, fix, read)


@rule("SC092", "workers", loaders=_HF)
def idle_workers(context: LintContext) -> Iterator[Violation]:
    """Find worker processes that get no shard."""
    for read, order, streaming in _streamed(context):
        workers = order.config.workers
        idle = streaming.workers(0, workers).count(None)
        if idle:
            fix = f"{option('workers', workers - idle)}, or more shards"
            yield Violation(f"{idle:,} of {counted(workers, 'worker')} get no shard", fix, read)


@rule("SC093", "buffer", loaders=_HF)
def small_stream_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the shards that fill it."""
    for read, order, streaming in _streamed(context):
        files = len(order.config.lengths_of_shards)
        in_turn = min(files, streaming.num_in_turn)
        # Examples in the shards that are read in turn, on average.
        filling = read.num_examples * in_turn // files
        if not streaming.buffer or streaming.buffer * _FAR_SMALLER > filling:
            continue
        shards = "one shard" if in_turn == 1 else f"{in_turn:,} shards in turn"
        held = f"the buffer holds {streaming.buffer:,} examples, and {shards} with {filling:,}"
        why = f"{held} fill it, so neighbours stay together"
        yield Violation(why, f"{option('buffer', filling)}, or smaller shards", read)


def _streamed(context: LintContext) -> Iterator[tuple[Read, LoaderOrder, Stream]]:
    from shardctl.loaders.hugging_face import stream_of  # NumPy

    for read, order in _orders(context):
        stream = stream_of(order.config)
        if stream is not None:
            yield read, order, stream
