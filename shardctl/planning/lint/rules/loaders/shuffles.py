"""What rules about shuffles find where another loader than TFDS's reads."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.loaders.loader import LOADERS
from shardctl.core.phrase import Argument, listed, phrase
from shardctl.errors import ShardctlError, UnpredictableOrderError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation


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
    takes = LOADERS[context.loader].takes
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
    """Yield what Hugging Face reads by index, shuffled."""
    for read in context.trained if context.loader == "hf" else ():
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError) and order.shuffles and not order.asked.streams:
            yield read
