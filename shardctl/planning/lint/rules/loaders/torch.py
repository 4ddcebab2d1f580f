"""SC087 and SC088: what PyTorch's loaders make of workers, and of hosts that do not divide."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import Argument, listed, phrase
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation, rule


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
    for read in context.trained if workers != 0 and context.num_hosts == 1 else ():
        order = context.loader_order(read)
        if isinstance(order, ShardctlError) or order.settings.host is not None:
            continue
        if order.shuffles and read.num_examples > 1:
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
    for read in context.evaluated if context.num_hosts > 1 else ():
        order = context.loader_order(read)
        if isinstance(order, ShardctlError):
            continue
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
    for read in context.trained:
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError) and not order.shuffles and read.num_examples > 1:
            yield read


def _shuffled_once(context: LintContext) -> Iterator[Read]:
    for read in context.trained:
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError) and order.handed_out.is_shuffled_once:
            yield read
