"""SC017: training without any shuffle."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import EVERY_LOADER, Story, Violation, rule
from shardctl.planning.lint.rules.loaders import shuffles as of_loaders
from shardctl.planning.lint.rules.stages import as_settings


@rule(
    "SC017",
    "no-shuffle",
    "warning",
    "training examples that nothing shuffles",
    story=Story(
        happens=phrase(
            "tfds.load and as_dataset do not shuffle by themselves: shuffle_files is False. "
            "Without it and without ds.shuffle every run reads the examples in the one order in "
            "which the files are interleaved. Each batch then holds stretches of a few files, as "
            "long as a block, and the next run, or fit's next epoch over the same dataset, makes "
            "the same batches again.\n\n"
            "The finding is about specs that are trained on. An evaluation needs no shuffle, an "
            "ordered dataset is meant to stay in order, and where several epochs are read the "
            "finding is SC001."
        ),
        source="`shuffle_files: bool = False` in TFDS core/load.py (load) and core/dataset_builder"
        ".py (as_dataset). `shardctl quality -d imagenet2012` scores 0.004 of 1 without a shuffle, "
        "0.07 with shuffled files, 0.59 with a buffer of 10,000 besides.",
        fix=phrase(
            "Give {shuffle_seed=N} where there are several files, and {buffer=N} with "
            "{buffer_seed=N}; `shardctl quality` says how well that shuffles. Where the order is "
            "meant, {ignore=[SC017]}; what is no training is named by {evaluated=SPEC}."
        ),
        example="shardctl lint -d imagenet2012",
    ),
    loaders=EVERY_LOADER,
)
def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a read for training without any shuffle."""
    if context.loader != "tfds":
        yield from of_loaders.no_shuffle(context)
        return
    if context.stage_chains:
        yield from as_settings.no_shuffle(context)
        return
    settings = context.settings
    if settings.shuffles_files or settings.buffer is not None:
        return  # one that shuffles nothing is a finding of its own
    if context.several_epochs or context.dataset.ordered:
        return
    for read in context.trained:
        if read.num_examples == 1:
            continue
        several = context.files_of_host(read) > 1
        yield Violation(
            why=f"{read.spec}: nothing shuffles it, so examples come in the order of storage"
            + (", a few files at a time" if context.cycle_of_host(read) > 1 else ""),
            fix=_fix(context) if several else context.shuffle_to_add,
            specs=(read.spec,),
        )


def _fix(context: LintContext) -> str:
    if context.writes_stages:
        return phrase("{shuffle_seed=N} and shuffle(N, seed=N) among the stages")
    return phrase("{shuffle_seed=N} and {buffer=N} with {buffer_seed=N}")
