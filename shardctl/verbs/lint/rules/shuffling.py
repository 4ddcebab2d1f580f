"""SC001 to SC006 and SC017: shuffles that shuffle less than they seem to, or none at all."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.base.text import counted
from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.stages import stages as ast
from shardctl.verbs.lint.chains import repeats, reshuffles, shuffles
from shardctl.verbs.lint.context import LintContext, Read, Training
from shardctl.verbs.lint.rule import EVERY_LOADER, Violation, rule
from shardctl.verbs.lint.rules import loaders

FAR_SMALLER = 10  # times that a buffer is smaller than the files open at a time


@rule(
    "SC001", *("epochs", "repeat_files", "pass"), loaders=EVERY_LOADER, of_loaders=loaders.one_order
)
def one_order(context: LintContext) -> Iterator[Violation]:
    """Find training whose epochs are alike."""
    for one in () if context.settings.deterministic is False else context.trainings:
        # The random numbers of a buffer continue over what repeats before it, one endless epoch.
        buffer = next((i for i, stage in enumerate(one.stages) if shuffles(stage)), None)
        early = one.settings.is_endless or any(map(repeats, one.stages[:buffer]))
        several = early or any(map(repeats, one.stages)) or context.settings.pass_index > 0
        if not several or any(map(reshuffles, one.stages)) or (early and buffer is not None):
            continue
        if context.reshuffles_files_of(one.source, one.read):
            continue
        names: tuple[str, ...] = ()
        cause, fix = "nothing shuffles it", context.shuffle_to_add
        if buffer is not None:
            cause, names = "its buffer is shuffled the same way each time", ("buffer_reshuffle",)
            fix = "leave out reshuffle=False"
            if not context.writes_stages:
                fix = "leave out --no-buffer-reshuffle"
        elif context.files_of_host(one.read) > 1:
            if not one.settings.shuffles_files:
                fix = f"--shuffle-seed N, or {fix}"
            else:
                cause, names = "its files are shuffled the same way each time", ("reshuffle",)
                fix = "leave out --no-reshuffle"
        elif one.settings.shuffles_files:
            cause = "it lies in one file"
        what = "files come" if one.settings.is_endless else "examples come"
        why = f"{one.who}: the {what} in the same order in every epoch, since {cause}"
        yield Violation(why, fix, specs=(one.read.spec,), settings=names)


@rule("SC002", "buffer")
def small_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the files read at a time."""
    for read in context.trained:
        cycle, sizes = context.cycle_of_host(read), [*_buffers(context, read)]
        opened = read.num_examples / read.num_files * cycle
        if not sizes or max(sizes) * FAR_SMALLER >= opened:
            continue
        size = round(opened)
        buffer = f"shuffle({size})" if context.writes_stages else f"--buffer {size}"
        yield Violation(
            f"the buffer holds {max(sizes):,} of the {size:,} examples in the "
            f"{counted(cycle, 'file')} read at a time",
            f"{buffer}, or what memory allows; `shardctl quality` says what it gains",
            read,
        )


def _buffers(context: LintContext, read: Read) -> Iterator[int]:
    """Yield the sizes of the buffers that a spec goes through before it is batched."""
    for one in context.trainings:
        if one.read != read or (one.source.spec, one.source.data) != (None, None):
            continue
        for stage in one.stages:
            if isinstance(stage, ast.Batch):
                break
            if isinstance(stage, ast.Shuffle) and stage.buffer != 1:
                yield read.num_examples if stage.buffer == WHOLE_DATASET else stage.buffer


@rule("SC003", "shuffle_seed", "shuffle_files")
def files_only(context: LintContext) -> Iterator[Violation]:
    """Find several epochs whose files are shuffled and whose examples are not."""
    if not (context.several_epochs and context.reshuffles_files) or context.buffers:
        return
    block, kept = context.settings.block, "a file's examples keep their order"
    if block > 1:
        kept = f"the {block:,} examples of a block stay neighbours in every epoch"
    for read in context.trained:
        if context.files_of_host(read) > 1:
            yield Violation(f"only files are shuffled, so {kept}", context.shuffle_to_add, read)


@rule("SC004", "shuffle_files", "shuffle_seed")
def one_file_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that has one file to shuffle."""
    for read in context.trained if context.settings.shuffles_files else ():
        if context.files_of_host(read) == 1:
            part = context.num_hosts > 1 and read.num_files > 1
            where = "a host's part lies" if part else "it lies"
            why = f"shuffling files changes nothing, since {where} in one file"
            yield Violation(why, context.shuffle_to_add, read)


@rule("SC005", "buffer")
def buffer_of_one(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds one example."""
    for who, shuffle in context.shuffles_at():
        if shuffle.buffer == 1:
            name, fix = "ds.shuffle(1)", "a larger --buffer, or none"
            if context.writes_stages:
                name, fix = who, "a larger buffer, or no shuffle"
            yield Violation(f"{name} leaves every element where it is", fix)


@rule("SC006", loaders=EVERY_LOADER, of_loaders=loaders.no_seed)
def no_seed(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle that is seeded by the machine."""
    for one in context.seeded() if context.settings.global_seed is None else ():
        if one.seed is None:
            why = f"{one.what} in each run, which cannot be repeated or resumed"
            yield Violation(why, one.fix, settings=one.settings)


@rule("SC017", loaders=EVERY_LOADER, of_loaders=loaders.no_shuffle)
def no_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a read for training without any shuffle."""
    if context.dataset.ordered or context.settings.pass_index:
        return
    for one in context.trainings:
        # A shuffle that changes nothing, and several epochs, are findings of their own.
        if one.settings.shuffles_files or one.settings.is_endless or one.read.num_examples == 1:
            continue
        if not any(isinstance(stage, ast.Shuffle) or repeats(stage) for stage in one.stages):
            few = ", a few files at a time" if context.cycle_of_host(one.read) > 1 else ""
            yield Violation(
                f"{one.who}: nothing shuffles it, so examples come in the order of storage{few}",
                _fix(context, one),
                specs=(one.read.spec,),
            )


def _fix(context: LintContext, one: Training) -> str:
    if context.files_of_host(one.read) > 1:
        return f"--shuffle-seed N and {context.shuffle_to_add}"
    return context.shuffle_to_add
