"""SC00x: shuffles that shuffle less than they seem to."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import EVERY_LOADER, Story, Violation, rule
from shardctl.planning.lint.rules.loaders import torch
from shardctl.planning.lint.rules.stages import as_seeds, as_settings

FAR_SMALLER = 10  # times that a buffer is smaller than the files open at a time


@rule(
    "SC001",
    "one-order",
    "warning",
    "several epochs in one order",
    story=Story(
        happens=phrase(
            "Every epoch hands out the same examples in the same order, so every epoch makes "
            "the same batches. A model then sees one fixed set of batches however long it "
            "trains, and the noise between epochs that shuffling is meant to give is missing.\n\n"
            "It comes about without any shuffle, with reshuffle_each_iteration=False, and "
            "where the only shuffle is that of a single file. With {repeat_files=True} the "
            "files come in one order again and again."
        ),
        source="A shuffle with reshuffle_each_iteration=False draws from the same two seeds for "
        "each iterator (tensorflow/core/kernels/data/shuffle_dataset_op.cc). The TFDS determinism "
        "guide says that a shuffle_seed alone repeats the order in each epoch; since "
        "shuffle_reshuffle_each_iteration exists it no longer does.",
        fix=phrase(
            "Give {shuffle_seed=N} where there are several files, or {buffer=N} with "
            "{buffer_seed=N}, and leave out {reshuffle=False} and {buffer_reshuffle=False}."
        ),
        example="shardctl lint --epochs 90 -d imagenet2012",
    ),
    loaders=EVERY_LOADER,
    of_loaders=torch.one_order,
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
    "SC002",
    "small-buffer",
    "warning",
    "a buffer far smaller than a shard times the cycle length",
    story=Story(
        happens="The reader interleaves as many files as the cycle length at a time, from their "
        "beginning to their end. A buffer that holds a small part of these mixes neighbours only: "
        "a batch holds examples of a few files, from the same stretch of each, and an example can "
        "come at most one buffer earlier than it is read.\n\n"
        f"The finding is made where the buffer is {FAR_SMALLER} times smaller than the mean shard "
        "times the cycle length (or the number of files, where that is smaller).",
        source=phrase(
            "The buffer hands out what it read up to one buffer length before; it never looks "
            "further ahead (tensorflow/core/kernels/data/shuffle_dataset_op.cc). `shardctl "
            "quality` measures how well an order is mixed, and with {target} how large the "
            "buffer has to be."
        ),
        fix="Make the buffer about as large as a shard times the cycle length, where memory "
        "allows; or store the examples shuffled and in more, smaller shards.",
        example="shardctl lint --buffer 1000 --buffer-seed 1 -d imagenet2012",
    ),
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


@rule(
    "SC003",
    "files-only",
    "notice",
    "epochs that differ in the order of files only",
    story=Story(
        happens="Only the files are shuffled. Within a file the examples come in storage order in "
        "every epoch, and the interleave hands them out block by block: the examples of a block "
        "are neighbours in every epoch, so batches of a block's size or below repeat.",
        source="TFDS shuffles the list of file instructions and nothing else (TFDS core/reader.py, "
        "_read_files); blocks are ReadConfig.interleave_block_length, 16.",
        fix=phrase("Add ds.shuffle: {buffer=N} with {buffer_seed=N}."),
        example="shardctl lint --epochs 90 --shuffle-seed 1 -d imagenet2012",
    ),
)
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


@rule(
    "SC004",
    "one-file-shuffle",
    "warning",
    "a shuffle of a single file",
    story=Story(
        happens="shuffle_files shuffles the list of files. Where a spec, or a host's part of it, "
        "lies in one file there is nothing to shuffle, and the examples come in storage order. "
        "Small datasets such as mnist have one shard.",
        source="TFDS core/reader.py, _read_files: `instruction_ds.shuffle(len(file_instructions))` "
        "comes before the files are opened.",
        fix=phrase(
            "Shuffle examples: {buffer=N} with {buffer_seed=N} (a small dataset fits whole)."
        ),
        example="shardctl lint --shuffle-seed 1 -d mnist",
    ),
)
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


@rule(
    "SC005",
    "buffer-of-one",
    "warning",
    "a shuffle buffer of one example",
    story=Story(
        happens="ds.shuffle(1) hands out each example as it is read: the order does not change. "
        "It is easily left over from a run that was made deterministic for a test.",
        source="tensorflow/core/kernels/data/shuffle_dataset_op.cc: an example is drawn from the "
        "buffer, which holds one.",
        fix="Leave the shuffle out, or give it a real buffer.",
        example="shardctl lint --buffer 1 --buffer-seed 1 -d imagenet2012",
    ),
)
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
    story=Story(
        happens="Without a shuffle seed and without tf.random.set_seed TensorFlow takes seeds from "
        "the machine, and every run has another order. Such a run cannot be repeated, its order "
        "cannot be predicted, and it cannot resume where it stopped: a restart reads some "
        "examples twice and others not at all in that epoch.",
        source="tensorflow/python/framework/random_seed.py, get_seed: two zeros, which tell the "
        "kernel to seed itself.",
        fix=phrase("Give {shuffle_seed=N} for files and {buffer_seed=N} for the buffer."),
        example="shardctl lint --shuffle-files -d imagenet2012",
    ),
    loaders=EVERY_LOADER,
    of_loaders=torch.no_seed,
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
    of_loaders=torch.no_shuffle,
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
