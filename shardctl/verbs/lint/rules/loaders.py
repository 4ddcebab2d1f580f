"""SC081 to SC093: what other loaders make of workers, hosts, windows, shards and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.base.phrase import option
from shardctl.base.text import counted
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.loaders.hugging_face_eras import era_of
from shardctl.verbs.lint.context import LintContext, Read
from shardctl.verbs.lint.rule import Violation, rule

if TYPE_CHECKING:
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
    epochs, num_hosts = context.settings.epochs, context.num_hosts
    if not _samples(context) or context.settings.drop_shard_remainder:
        return
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
        yield Violation(f"{each_host}; {those} {share}{others}", fix, read)


@rule("SC083", "shuffle_seed", "host", loaders=_GRAIN)
def host_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts whose pieces are shuffled alike."""
    settings, num_hosts = context.settings, context.num_hosts
    shuffled = _samples(context) and settings.shuffle_seed is not None
    for read in context.trained if shuffled else ():
        each, rest = divmod(read.num_examples, num_hosts)
        # Pieces of equal length are permuted alike under one seed: `longer` hosts have a piece of
        # one example more, the others have the same shorter length.
        longer = 0 if settings.drop_shard_remainder else rest
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


def _samples(context: LintContext) -> bool:
    """Whether several hosts share by Grain's IndexSampler."""
    settings = context.settings
    return context.num_hosts > 1 and settings.host_by == "even" and settings.buffer is None


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
    takes = context.settings.reader.takes
    ways = ["--shuffle-seed N"] if "shuffle_seed" in takes else []
    if "global_seed" in takes and "shuffle" in takes:
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
