"""SC081 to SC094: what other loaders make of workers, hosts, windows, shards and seeds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.core.loaders.hugging_face.eras import era_of, streams_tables
from shardctl.core.phrase import Argument, listed, phrase
from shardctl.core.text import counted
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation, rule

if TYPE_CHECKING:
    from shardctl.core.loaders.hugging_face.streaming import Streaming
    from shardctl.core.order.loader_order import LoaderOrder

_GRAIN = ("grain",)


@rule(
    "SC081",
    "worker-batches",
    "warning",
    "batches that depend on the number of workers",
    loaders=_GRAIN,
)
def worker_batches(context: LintContext) -> Iterator[Violation]:
    """Find batches that several workers make."""
    settings = context.settings
    if (settings.workers or 0) < 2 or (settings.batch or 0) < 2:
        return
    for read, order in _orders(context):
        if order.num_examples > 1:
            yield Violation(
                why=phrase(
                    "{}: with {} each worker batches what it reads itself; with another number of "
                    "them other examples meet in a batch",
                    read.spec,
                    Argument("workers", settings.workers),
                ),
                fix=phrase("keep {workers} fixed, or batch a MapDataset before to_iter_dataset"),
                specs=(read.spec,),
                settings=("workers",),
            )


@rule(
    "SC082",
    "lost-remainder",
    "warning",
    "a remainder of the hosts that Grain loses",
    loaders=_GRAIN,
)
def lost_remainder(context: LintContext) -> Iterator[Violation]:
    """Find hosts that cannot share evenly what an IndexSampler has."""
    settings, num_hosts = context.settings, context.num_hosts
    if not _samples(context) or settings.drop_shard_remainder:
        return
    from shardctl.core.loaders.grain.orders import equal_hosts  # NumPy

    for read, order in _orders(context, (*context.trained, *context.evaluated)):
        each, rest = divmod(read.num_examples, num_hosts)
        if not rest or not equal_hosts(order.version):
            continue
        size = settings.epochs * read.num_examples // num_hosts
        lost = settings.epochs * (each + 1) - size
        again = size - settings.epochs * each
        said = phrase(
            "{}: each of {} hosts reads {}; {} of them {} {} short of {}",
            read.spec,
            num_hosts,
            counted(size, "example"),
            rest,
            "is" if rest == 1 else "are",
            lost,
            "its share" if settings.epochs == 1 else f"{settings.epochs} epochs",
        )
        if again:
            said = phrase("{}, the others read {} once more", said, again)
        yield Violation(
            why=said,
            fix=phrase(
                "{drop_shard_remainder=True}, or {host_by=examples}, which reads every example"
            ),
            specs=(read.spec,),
            settings=("drop_shard_remainder", "host"),
        )


@rule("SC083", "host-permutation", "notice", "hosts that read in one permutation", loaders=_GRAIN)
def host_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts whose pieces are shuffled alike."""
    settings, num_hosts = context.settings, context.num_hosts
    if not _samples(context) or settings.shuffle_seed is None:
        return
    for read in context.trained:
        each, rest = divmod(read.num_examples, num_hosts)
        longer = 0 if settings.drop_shard_remainder else rest
        alike = max(longer, num_hosts - longer)
        if each < 2 or alike < 2:
            continue
        yield Violation(
            why=phrase(
                "{}: {} read the same places of their pieces at the same time",
                read.spec,
                f"all {num_hosts:,} hosts" if not longer else f"{alike:,} of {num_hosts:,} hosts",
            ),
            fix=phrase("a seed for each host, as in seed + 1000 * host, or {host_by=examples}"),
            specs=(read.spec,),
            settings=("shuffle_seed", "host"),
        )


@rule(
    "SC084",
    "doubled-example",
    "warning",
    "a shuffle that hands out one example twice",
    loaders=_GRAIN,
)
def doubled_example(context: LintContext) -> Iterator[Violation]:
    """Find shuffles of 4 ** k + 1 examples."""
    from shardctl.core.loaders.grain.index_shuffle import is_permutation  # NumPy
    from shardctl.core.loaders.grain.orders import host_share

    settings = context.settings
    for read, _ in _orders(context, (*context.trained, *context.evaluated)):
        lengths = set()
        if settings.shuffle_seed is not None:
            lengths = {read.num_examples}
            if _samples(context):
                drop, count = settings.drop_shard_remainder, context.num_hosts
                lengths = {
                    len(host_share(read.num_examples, host, count, drop=drop))
                    for host in (0, count - 1)
                }
        if settings.buffer is not None:
            lengths.add(settings.buffer)
        for length in sorted(lengths):
            if length and not is_permutation(length):
                yield Violation(
                    why=f"{read.spec}: a shuffle of {length:,} examples hands out one of them "
                    "twice and the last one never",
                    fix="one example less or more",
                    specs=(read.spec,),
                    settings=("shuffle_seed", "buffer"),
                )


@rule(
    "SC085",
    "overlapping-window",
    "warning",
    "a last window that reaches beyond the end",
    loaders=_GRAIN,
)
def overlapping_window(context: LintContext) -> Iterator[Violation]:
    """Find windows that the examples do not fill."""
    settings, window = context.settings, context.settings.buffer
    if window is None or window < 2:
        return
    for read, _ in _orders(context, (*context.trained, *context.evaluated)):
        beyond = -(settings.epochs * read.num_examples) % window
        if beyond:
            yield Violation(
                why=phrase(
                    "{}: the last window of {} reaches {} beyond the end: some examples come once "
                    "more, and others are left out",
                    read.spec,
                    Argument("buffer", window),
                    counted(beyond, "place"),
                ),
                fix=phrase("a {buffer} that divides the examples"),
                specs=(read.spec,),
                settings=("buffer", "epochs"),
            )


def _samples(context: LintContext) -> bool:
    """Whether several hosts share by Grain's IndexSampler."""
    settings = context.settings
    return context.num_hosts > 1 and settings.host_by == "even" and settings.buffer is None


def _orders(
    context: LintContext, reads: tuple[Read, ...] | None = None
) -> Iterator[tuple[Read, LoaderOrder]]:
    """Yield the specs that a loader reads with these settings, each with the order of a host."""
    for read in context.trained if reads is None else reads:
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError):
            yield read, order


# PyTorch's loaders: workers, and hosts that do not divide.


@rule(
    "SC087",
    "worker-order",
    "notice",
    "an order that the number of workers decides",
    loaders=("stateful",),
)
def worker_order(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle of StatefulDataLoader that workers change, or may change."""
    workers = context.settings.workers
    reads = context.trained if workers != 0 and context.num_hosts == 1 else ()
    for read, order in _orders(context, reads):
        if order.settings.host is None and order.shuffles and read.num_examples > 1:
            known = "without workers the order is another one"
            open_ = "with workers the order is another one than without, and nobody said how many"
            yield Violation(
                why=f"{read.spec}: {open_ if workers is None else known}",
                fix=phrase(
                    "{workers=N} as in every run, or a StatefulDistributedSampler ({host=0/1} "
                    "with {shuffle_seed=N})"
                ),
                specs=(read.spec,),
                settings=("workers", "shuffle", "loader"),
            )


@rule(
    "SC088",
    "repeated-in-evaluation",
    "warning",
    "an evaluation that counts examples twice",
    loaders=("torch", "stateful", "accelerate"),
)
def repeated_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluations that are filled up with examples from their beginning."""
    for read, order in _orders(context, context.evaluated if context.num_hosts > 1 else ()):
        # All processes are dealt as many, one after the other.
        repeated = context.num_hosts * order.epoch_size - read.num_examples
        if repeated > 0:
            gather = context.settings.reader.drops_repeated
            yield Violation(
                why=f"{read.spec}: {context.num_hosts:,} processes read "
                f"{context.num_hosts * order.epoch_size:,} examples, and there are "
                f"{read.num_examples:,}: {repeated:,} are read again",
                fix=f"{gather}, which drops them"
                if gather
                else "leave them out of the metric, or a number of hosts that divides",
                specs=(read.spec,),
                settings=("host", "hosts", "batch"),
            )


# What rules about shuffles find where another loader than TFDS's reads.


def one_order(context: LintContext) -> Iterator[Violation]:
    """Find training whose epochs are alike, since nothing shuffles it."""
    for read in _unshuffled(context) if context.several_epochs else ():
        yield Violation(
            why=f"{read.spec}: the examples come in the same order in every epoch, since nothing "
            "shuffles it",
            fix=seed_to_give(context),
            specs=(read.spec,),
            settings=("epochs", "pass"),
        )
    for read in _shuffled_once(context) if context.several_epochs else ():
        yield Violation(
            why=f"{read.spec}: the examples come in the same order in every epoch, since "
            "Dataset.shuffle mixes once and a Dataset has no set_epoch",
            fix=phrase("ds.shuffle(seed=seed + epoch) in each epoch, or {streaming=True}"),
            specs=(read.spec,),
            settings=("epochs", "pass"),
        )


def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a read for training without any shuffle."""
    for read in () if context.several_epochs else _unshuffled(context):
        yield Violation(
            why=f"{read.spec}: nothing shuffles it, so examples come in the order of storage",
            fix=seed_to_give(context),
            specs=(read.spec,),
        )


def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find an order that the loader leaves open, most often for want of a seed."""
    for read in context.trained:
        found = context.loader_order(read)
        if isinstance(found, UnpredictableOrderError):
            yield Violation(
                why=phrase("{}: {}", read.spec, found),
                fix=seed_to_give(context),
                specs=(read.spec,),
                settings=("shuffle", "loader"),
            )


def seed_to_give(context: LintContext) -> str:
    """Return the seeds that the loader takes, as settings to give."""
    takes = context.settings.reader.takes
    ways: list[str | Argument] = []
    if "shuffle_seed" in takes:
        ways.append(phrase("{shuffle_seed=N}"))
    if "global_seed" in takes and "shuffle" in takes:
        ways.append(phrase("{shuffle=True} with {global_seed=N}"))
    return listed(ways, ", or ")


def _unshuffled(context: LintContext) -> Iterator[Read]:
    for read, order in _orders(context):
        if not order.shuffles and read.num_examples > 1:
            yield read


def _shuffled_once(context: LintContext) -> Iterator[Read]:
    """Yield what Hugging Face reads by index, shuffled."""
    for read, order in _orders(context):
        if order.handed_out.is_shuffled_once:
            yield read


# Streaming with Hugging Face Datasets: shards, hosts and workers.

_HF = ("hf",)
_FAR_SMALLER = 2  # times


@rule("SC091", "hosts-read-everything", "warning", "hosts that each stream all shards", loaders=_HF)
def hosts_read_everything(context: LintContext) -> Iterator[Violation]:
    """Find hosts that share examples of a stream by stride without having asked for it."""
    for read, order, streaming in _streamed(context):
        asked = order.asked
        if asked.num_hosts == 1 or asked.host_by != "even" or streaming.shares_shards:
            continue
        files, hosts = len(asked.lengths_of_shards), asked.num_hosts
        now = ""
        if streaming.num_shards != files:
            now = f" (after the shuffle they count as {streaming.num_shards:,})"
        why = (
            f"{read.spec}: {hosts:,} hosts do not share {counted(files, 'shard')}{now} evenly: "
            f"each streams all of them and keeps one example in {hosts:,}"
        )
        by_files = phrase("{host_by=files}") if era_of(order.version).has_strategy else ""
        fix = phrase("a multiple of {} as the number of shards", hosts)
        yield Violation(
            why=why,
            fix=phrase("{}, or {}", fix, by_files) if by_files and files >= hosts else fix,
            specs=(read.spec,),
            settings=("hosts", "host_by"),
        )


@rule("SC092", "idle-workers", "warning", "fewer shards than worker processes", loaders=_HF)
def idle_workers(context: LintContext) -> Iterator[Violation]:
    """Find worker processes that get no shard."""
    for read, order, streaming in _streamed(context):
        idle, workers = streaming.num_idle_workers, order.asked.workers
        if idle:
            busy = workers - idle
            yield Violation(
                why=f"{read.spec}: {idle:,} of {counted(workers, 'worker')} get no shard",
                fix=phrase("{}, or more shards", Argument("workers", busy)),
                specs=(read.spec,),
                settings=("workers",),
            )


@rule(
    "SC093",
    "small-stream-buffer",
    "warning",
    "a buffer far smaller than the shards that fill it",
    loaders=_HF,
)
def small_stream_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the shards that fill it."""
    for read, order, streaming in _streamed(context):
        if order.asked.seed is None:
            continue
        files = len(order.asked.lengths_of_shards)
        in_turn = min(files, streaming.num_in_turn)
        filling = read.num_examples * in_turn // files
        if streaming.buffer * _FAR_SMALLER > filling:
            continue
        shards = "one shard" if in_turn == 1 else f"{in_turn:,} shards in turn"
        yield Violation(
            why=f"{read.spec}: the buffer holds {streaming.buffer:,} examples, and {shards} with "
            f"{filling:,} fill it, so neighbours stay together",
            fix=phrase("{}, or smaller shards", Argument("buffer", filling)),
            specs=(read.spec,),
            settings=("buffer",),
        )


@rule(
    "SC094",
    "lost-stride",
    "error",
    "a version that gives all examples to the first host",
    loaders=_HF,
)
def lost_stride(context: LintContext) -> Iterator[Violation]:
    """Find hosts that get nothing for a fault of the library."""
    for read, order, streaming in _streamed(context):
        asked = order.asked
        if asked.num_hosts == 1 or streaming.shares_shards:
            continue
        if era_of(order.version).strides_tables and streams_tables(asked):
            yield Violation(
                why=f"{read.spec}: datasets {order.version} gives all examples to the first of "
                f"{asked.num_hosts:,} hosts, and none to the others",
                fix=phrase("{loader_version=4.8.3} or newer"),
                specs=(read.spec,),
                settings=("loader_version", "hosts"),
            )


def _streamed(context: LintContext) -> Iterator[tuple[Read, LoaderOrder, Streaming]]:
    from shardctl.core.loaders.hugging_face.streaming import Streaming  # NumPy

    for read, order in _orders(context):
        if order.asked.streams:
            yield read, order, Streaming(order.asked, era_of(order.version))
