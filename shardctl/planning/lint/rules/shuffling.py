"""SC00x: shuffles that shuffle less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import EVERY_LOADER, Violation, rule
from shardctl.planning.lint.rules import loaders
from shardctl.planning.lint.rules.stages import as_seeds, as_settings

FAR_SMALLER = 10  # times that a buffer is smaller than the files open at a time


@rule(
    "SC001",
    "one-order",
    "warning",
    "several epochs in one order",
    loaders=EVERY_LOADER,
    of_loaders=loaders.one_order,
)
def one_order(context: LintContext) -> Iterator[Violation]:
    """Find training whose epochs are alike."""
    if context.stage_chains:
        yield from as_settings.one_order(context)
        return
    settings = context.settings
    if not context.several_epochs or settings.deterministic is False:
        return
    # The random numbers of a buffer continue over files that repeat, which are one endless epoch.
    fixed = settings.buffer_reshuffle is False and not context.repeats_files()
    if context.buffers and not fixed:
        return
    for read in context.trained:
        if context.reshuffles_files and context.files_of_host(read) > 1:
            continue
        names: tuple[str, ...] = ("epochs", "repeat_files", "pass")
        fix = phrase("{buffer=N} with {buffer_seed=N}")
        if context.buffers:
            cause = "its buffer is shuffled the same way each time"
            fix, names = phrase("leave out {buffer_reshuffle=False}"), ("buffer_reshuffle",)
        elif context.files_of_host(read) == 1:
            cause = "it lies in one file" if settings.shuffles_files else "nothing shuffles it"
        elif settings.shuffles_files:
            cause = "its files are shuffled the same way each time"
            fix, names = phrase("leave out {reshuffle=False}"), ("reshuffle",)
        else:
            cause, fix = "nothing shuffles it", phrase("{shuffle_seed=N}, or {}", fix)
        what = "files come" if context.repeats_files() else "examples come"
        yield Violation(
            why=f"{read.spec}: the {what} in the same order in every epoch, since {cause}",
            fix=fix,
            specs=(read.spec,),
            settings=names,
        )


@rule(
    "SC002", "small-buffer", "warning", "a buffer far smaller than a shard times the cycle length"
)
def small_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the files read at a time."""
    if not context.buffers:
        return
    for read in context.trained:
        size, cycle = context.buffer_size(read), context.cycle_of_host(read)
        shard = read.num_examples / read.num_files
        if size is None or size * FAR_SMALLER >= shard * cycle:
            continue
        files = "1 file" if cycle == 1 else f"{cycle:,} files"
        yield Violation(
            why=f"{read.spec}: the buffer holds {size:,} of the {round(shard * cycle):,} examples "
            f"in the {files} read at a time",
            fix=phrase(
                "{}, or what memory allows; `shardctl quality` says what it gains",
                context.buffer_of(round(shard * cycle)),
            ),
            specs=(read.spec,),
            settings=("buffer",),
        )


@rule("SC003", "files-only", "notice", "epochs that differ in the order of files only")
def files_only(context: LintContext) -> Iterator[Violation]:
    """Find several epochs whose files are shuffled and whose examples are not."""
    settings = context.settings
    if not (context.several_epochs and context.reshuffles_files) or context.buffers:
        return
    for read in context.trained:
        if context.files_of_host(read) > 1:
            yield Violation(
                why=f"{read.spec}: only files are shuffled, so the {settings.block:,} examples of "
                "a block stay neighbours in every epoch"
                if settings.block > 1
                else f"{read.spec}: only files are shuffled, so a file's examples keep their order",
                fix=context.shuffle_to_add,
                specs=(read.spec,),
                settings=("shuffle_seed", "shuffle_files"),
            )


@rule("SC004", "one-file-shuffle", "warning", "a shuffle of a single file")
def one_file_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that has one file to shuffle."""
    if not context.settings.shuffles_files:
        return
    for read in context.trained:
        if context.files_of_host(read) == 1:
            where = (
                "a host's part lies"
                if context.num_hosts > 1 and read.num_files > 1
                else ("it lies")
            )
            yield Violation(
                why=f"{read.spec}: shuffling files changes nothing, since {where} in one file",
                fix=context.shuffle_to_add,
                specs=(read.spec,),
                settings=("shuffle_files", "shuffle_seed"),
            )


@rule("SC005", "buffer-of-one", "warning", "a shuffle buffer of one example")
def buffer_of_one(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds one example."""
    if context.stage_chains:
        yield from as_settings.buffer_of_one(context)
        return
    if context.settings.buffer == 1:
        yield Violation(
            why="ds.shuffle(1) leaves every example where it is",
            fix=phrase("a larger {buffer}, or none"),
            settings=("buffer",),
        )


@rule(
    "SC006",
    "no-seed",
    "warning",
    "a shuffle without a seed",
    loaders=EVERY_LOADER,
    of_loaders=loaders.no_seed,
)
def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle that is seeded by the machine."""
    settings = context.settings
    if settings.global_seed is not None:
        return
    if settings.shuffles_files and settings.shuffle_seed is None:
        yield Violation(
            why="files are shuffled in another order in each run, which cannot be repeated or "
            "resumed",
            fix=phrase("{shuffle_seed=N}"),
            settings=("shuffle_files",),
        )
    if context.stage_chains:
        yield from as_seeds.no_seed(context)
    elif context.buffers and settings.buffer_seed is None:
        yield Violation(
            why="the buffer shuffles in another order in each run, which cannot be repeated or "
            "resumed",
            fix=phrase("{buffer_seed=N}"),
            settings=("buffer",),
        )


# SC017: training without any shuffle.


@rule(
    "SC017",
    "no-shuffle",
    "warning",
    "training examples that nothing shuffles",
    loaders=EVERY_LOADER,
    of_loaders=loaders.no_shuffle,
)
def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a read for training without any shuffle."""
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
