"""SC007 to SC009: orders that timing decides, or that never begin."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Story, Violation, rule
from shardctl.planning.lint.rules.stages import as_settings


@rule(
    "SC007",
    "not-deterministic",
    "warning",
    "deterministic switched off",
    story=Story(
        happens="With options.deterministic = False the maps of a pipeline hand out examples as "
        "they are ready. Timing then decides the order, also with every seed set: seeds fix the "
        "files and the draws of a buffer, but what is there to be drawn differs in each run.\n\n"
        "The interleave itself stays in order, because TFDS says so for it; what scrambles is "
        "TFDS's parallel decoding, and every parallel map behind it.",
        source="TFDS core/reader.py passes deterministic to the interleave and not to the map that "
        "decodes. With a shuffle seed and the option off, 21 of 24 runs came in different orders; "
        "with num_parallel_calls_for_decode=1, none.",
        fix=phrase(
            "Leave options.deterministic alone ({deterministic=True}), or give up exact resumption."
        ),
        example="shardctl lint --no-deterministic --shuffle-seed 1 -d imagenet2012",
    ),
)
def not_deterministic(context: LintContext) -> Iterator[Violation]:
    """Find `options.deterministic = False`."""
    if context.settings.deterministic is not False:
        yield from as_settings.not_deterministic(context)
    else:
        yield Violation(
            why="examples come as their decoding ends, in another order each run, whatever the "
            "seeds",
            fix=phrase("leave out {deterministic=False}"),
            settings=("deterministic",),
        )


@rule(
    "SC008",
    "racy-interleave",
    "warning",
    "files shuffled by the global seed alone",
    story=Story(
        happens="tf.random.set_seed fixes the order of the files, but TFDS looks at shuffle_seed: "
        "where it is None and files are shuffled, TFDS interleaves them with deterministic=False. "
        "The files then come in the same order in each run, and the examples do not.",
        source="TFDS core/reader.py, _read_files (`deterministic = False`). With a global seed "
        "alone 5 of 24 runs agreed; with options.deterministic = True all 24.",
        fix=phrase(
            "Give {shuffle_seed=N}; or {deterministic=True}, where ReadConfig.options says so."
        ),
        example="shardctl lint --shuffle-files --global-seed 1 -d imagenet2012",
    ),
)
def racy_interleave(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that only the global seed fixes."""
    if context.races and context.settings.global_seed is not None:
        yield Violation(
            why="without a shuffle seed TFDS interleaves files as they are ready: the global seed "
            "fixes the files' order, not the examples'",
            fix=phrase("{shuffle_seed=N}, or {deterministic=True}"),
            settings=("shuffle_files", "global_seed"),
        )


@rule(
    "SC009",
    "buffer-never-fills",
    "error",
    "a buffer as large as a stream without end",
    story=Story(
        happens="With repeat_filenames the reader never ends. ds.shuffle(tf.data.UNKNOWN_"
        "CARDINALITY), a buffer of -2, reads its whole input before it hands out the first "
        "example: it reads for ever, until memory ends.",
        source="tensorflow/core/kernels/data/shuffle_dataset_op.cc: a buffer size of -2 grows with "
        "its input.",
        fix=phrase("Give {buffer=N}, or repeat after the shuffle with {epochs=N}."),
        example="shardctl lint --repeat-files --shuffle-seed 1 --buffer -2 --buffer-seed 1 "
        "-d imagenet2012",
    ),
)
def buffer_never_fills(context: LintContext) -> Iterator[Violation]:
    """Find a buffer for the whole of what has no end."""
    yield from as_settings.buffer_never_fills(context)
    if context.settings.repeat_files and context.settings.buffer == WHOLE_DATASET:
        yield Violation(
            why="the buffer waits for the end of files that repeat for ever, and memory runs out",
            fix=phrase("{buffer=N} with a number, or {epochs=N} in place of {repeat_files=True}"),
            settings=("buffer", "repeat_files"),
        )
