"""SC001 to SC017: shuffles and seeds that do less than they seem to, or that timing decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardctl.base.text import counted
from shardctl.base.tfds_rules import SEED_MODULUS, WHOLE_DATASET
from shardctl.settings.table import ENDLESS
from shardctl.stages import stages as ast
from shardctl.verbs.lint.context import (
    LintContext,
    Read,
    count_of,
    of_type,
    repeats,
    reshuffles,
    shuffles,
)
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
        # One epoch has nothing to be like, and these differ in each.
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
        # A switch that keeps the shuffle from changing; else people choose a shuffle and its seed.
        change = {} if context.writes_stages else dict.fromkeys(names)
        yield Violation(why, fix, specs=(one.read.spec,), settings=names, change=change)


@rule("SC002", "buffer")
def small_buffer(context: LintContext) -> Iterator[Violation]:
    """Find a buffer that holds a small part of the files read at a time."""
    for read in context.trained:
        cycle, sizes = context.cycle_of_host(read), [*_buffers(context, read)]
        # Examples in the files that are open at a time, on average.
        opened = read.num_examples / read.num_files * cycle
        if not sizes or max(sizes) * FAR_SMALLER >= opened:
            continue
        size = round(opened)
        buffer = f"shuffle({size})" if context.writes_stages else f"--buffer {size}"
        files = f"the {counted(cycle, 'file')} read at a time"
        why = f"the buffer holds {max(sizes):,} of the {size:,} examples in {files}"
        fix = f"{buffer}, or what memory allows; `shardctl quality` says what it gains"
        yield Violation(why, fix, read)


def _buffers(context: LintContext, read: Read) -> Iterator[int]:
    """Yield the sizes of the buffers that a spec goes through before it is batched."""
    for one in context.trainings:
        if one.read != read or (one.source.spec, one.source.data) != (None, None):
            continue
        for stage in one.stages:
            # A buffer behind it holds batches, and its size is not in examples.
            if isinstance(stage, ast.Batch):
                break
            if isinstance(stage, ast.Shuffle) and stage.buffer != 1:
                yield read.num_examples if stage.buffer == WHOLE_DATASET else stage.buffer


@rule("SC003", "shuffle_seed", "shuffle_files")
def files_only(context: LintContext) -> Iterator[Violation]:
    """Find several epochs whose files are shuffled and whose examples are not."""
    if not (context.several_epochs and context.reshuffles_files) or context.has_stage(shuffles):
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
            why = f"{one.who}: nothing shuffles it, so examples come in the order of storage{few}"
            files = "--shuffle-seed N and " * (context.files_of_host(one.read) > 1)
            yield Violation(why, f"{files}{context.shuffle_to_add}", specs=(one.read.spec,))


# SC011 to SC014: what seeds do not do, and what Keras makes of them.


@rule("SC011", "global_seed")
def global_seed(context: LintContext) -> Iterator[Violation]:
    """Find a global seed beside a shuffle seed."""
    # A pair of the kernel has the global seed in it.
    own = [one.name for one in context.seeded() if isinstance(one.seed, int)]
    if own and context.settings.global_seed is not None:
        named = " and ".join(dict.fromkeys(own))
        both = f"the order depends on --global-seed as well as on {named}"
        why = f"{both}: another tf.random.set_seed gives another order"
        yield Violation(why, "build the dataset before tf.random.set_seed, or fix that seed too")


@rule("SC012", "seeds", for_data_source=True)
def equal_seeds(context: LintContext) -> Iterator[Violation]:
    """Find seeds that are one to TensorFlow."""
    for group in _alike(context.usage.seeds, context.settings.global_seed):
        why = f"seed {group[0]} is there {len(group)} times: these runs have one order"
        if len(set(group)) > 1:
            seeds = ", ".join(map(str, group))
            why = f"seeds {seeds} are one seed modulo {SEED_MODULUS}: their runs have one order"
        yield Violation(why, f"seeds from 0 to {SEED_MODULUS - 1}, all different")


def _alike(seeds: Sequence[int], global_seed: int | None) -> Iterator[list[int]]:
    if len(seeds) < 2:
        return
    from shardctl.tfdata.shuffle_seeds import shuffle_kernel_seeds  # loads numpy

    groups: dict[object, list[int]] = {}
    for seed in seeds:
        # The seeds that reach the kernel; two seeds that become the same pair give one order.
        groups.setdefault(shuffle_kernel_seeds(seed, global_seed), []).append(seed)
    yield from (group for group in groups.values() if len(group) > 1)


@rule("SC013", "global_seed")
def drawn_seed(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle whose seed depends on what was built before it."""
    unseeded = [one.fix for one in context.seeded() if one.seed is None]
    if unseeded and context.settings.global_seed is not None:
        changes = "every random op built before the shuffle changes the order"
        yield Violation(f"a seed is drawn from the global one: {changes}", " and ".join(unseeded))


@rule("SC014", "loop")
def keras_pairs(context: LintContext) -> Iterator[Violation]:
    """Find Keras epochs over a shuffle that reshuffles."""
    if context.settings.loop == "keras-fit" and _reshuffles(context):
        differ = "those of a Python loop differ, and initial_epoch begins anew"
        why = f"Keras makes two iterators an epoch, so epochs take every second order: {differ}"
        fix = "steps_per_epoch, --loop python, or --ignore SC014 where it is known"
        yield Violation(why, fix)


def _reshuffles(context: LintContext) -> bool:
    """Whether the shuffle on top gives each iterator an order, of a length that Keras knows.

    Where the length is unknown or has no end Keras makes an iterator an epoch.
    """
    pipeline = context.chains[0].pipeline
    read = next(iter(context.trained), None)
    count = count_of(pipeline, lambda source: context.count_of_read(source, read))
    if count is None or math.isinf(count):
        return False
    if any(map(reshuffles, pipeline.stages)):
        return True
    return context.reshuffles_files and not of_type(pipeline.stages, ast.Shuffle)


# SC007 to SC009: orders that timing decides, or that never begin.


@rule("SC007", "deterministic")
def not_deterministic(context: LintContext) -> Iterator[Violation]:
    """Find `options.deterministic = False`, and maps and options that yield what is ready."""
    again = "in another order each run, whatever the seeds"
    if context.settings.deterministic is False:
        why = f"examples come as their decoding ends, {again}"
        yield Violation(why, "leave out --no-deterministic", change={"deterministic": None})
        return
    places = [
        str(here)
        for here in context.stages_at(None)
        if isinstance(here.stage, ast.Map | ast.WithOptions) and here.stage.deterministic is False
        # One at a time is in order.
        if not (isinstance(here.stage, ast.Map) and here.stage.calls in (None, 1))
    ]
    if places:
        why = f"{'; '.join(places)}: elements come as they are ready, {again}"
        yield Violation(why, "leave out deterministic=False", settings=("stages",))


@rule("SC008", "shuffle_files", "global_seed")
def racy_interleave(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that only the global seed fixes."""
    if context.races and context.settings.global_seed is not None:
        fixes = "the global seed fixes the files' order, not the examples'"
        why = f"without a shuffle seed TFDS interleaves files as they are ready: {fixes}"
        yield Violation(why, "--shuffle-seed N, or --deterministic")


@rule("SC009", "buffer", "repeat_files")
def buffer_never_fills(context: LintContext) -> Iterator[Violation]:
    """Find a buffer for the whole of what has no end."""
    read = next(iter(context.trained), None)
    for here in context.stages_at(read):
        whole = isinstance(here.stage, ast.Shuffle) and here.stage.buffer == WHOLE_DATASET
        if whole and here.num_elements == math.inf:
            fix = "a buffer of a number, or the shuffle before what repeats"
            if not context.writes_stages:
                fix = f"--buffer N with a number, or --epochs N in place of {ENDLESS}"
            why = f"{context.called(here)} waits for the end of what has none, and memory runs out"
            yield Violation(why, fix)
