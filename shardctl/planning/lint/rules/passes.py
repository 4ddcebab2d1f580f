"""SC014 to SC016: which iterator of a shuffle an epoch or a later pass reads."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.shuffle.passes import ShufflePasses, file_shuffle_passes
from shardctl.errors import UnpredictableOrderError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Story, Violation, rule
from shardctl.planning.lint.rules.stages import as_settings


@rule(
    "SC014",
    "keras-pairs",
    "notice",
    "Keras epochs that skip every second order",
    story=Story(
        happens="Each iterator of a reshuffling shuffle takes the next pair of seeds. Keras fit "
        "and evaluate, on a dataset of known length and without steps_per_epoch, make two "
        "iterators an epoch and read one: epochs use the pairs 0, 2, 4 and so on. The same "
        "pipeline in a Python loop uses 0, 1, 2: from the second epoch on the two read in "
        "different orders, and so does a fit with steps_per_epoch.\n\n"
        "initial_epoch=k does not advance the shuffles: training resumed with it reads the order "
        "of epoch 0 again. `shardctl resume --loop keras-fit` says what to read instead.",
        source="keras/src/trainers/epoch_iterator.py, Keras 3.15. Under a user shuffle only that "
        "one skips pairs; the file shuffle below is asked when an epoch is read.",
        fix=phrase(
            "Know it, and {ignore=[SC014]}; or give steps_per_epoch; or iterate in a Python loop "
            "({loop=python})."
        ),
        example="shardctl lint --loop keras-fit --shuffle-seed 1 -d imagenet2012",
    ),
)
def keras_pairs(context: LintContext) -> Iterator[Violation]:
    """Find Keras epochs over a shuffle that reshuffles."""
    settings = context.settings
    if context.stage_chains and settings.loop == "keras-fit" and context.buffers:
        yield from as_settings.keras_pairs(context)
        return
    buffer = context.buffers and settings.buffer_reshuffle is not False
    if settings.loop != "keras-fit" or settings.repeat_files or not context.knows_length:
        return  # an iterator an epoch where the length is unknown or has no end
    if buffer or (context.reshuffles_files and settings.buffer is None):
        yield Violation(
            why="Keras makes two iterators an epoch, so epochs take every second order: those of "
            "a Python loop differ, and initial_epoch begins anew",
            fix=phrase("steps_per_epoch, {loop=python}, or {ignore=[SC014]} where it is known"),
            settings=("loop",),
        )


@rule(
    "SC015",
    "extra-iterator",
    "notice",
    "a later pass that begins an order late",
    story=Story(
        happens="A repeat that TensorFlow does not fuse with the shuffle below it makes one "
        "iterator more than it has epochs: it asks for what follows the last one. That iterator "
        "takes a pair of seeds, so the next pass over the same dataset begins one order later "
        "than the number of epochs read would say.\n\n"
        "TFDS's file shuffle is never fused with a repeat, because the interleave is between the "
        "two; ds.shuffle(..).repeat(k) is, and ds.shuffle(..).map(..).repeat(k) is not.",
        source="tensorflow/core/kernels/data/repeat_dataset_op.cc; grappler's "
        "shuffle_and_repeat_fusion. 0/17,703 passes over random pipelines differed.",
        fix=phrase(
            "Name the pass ({pass_index=P}) in what you compare with, or iterate ds once per "
            "epoch in place of ds.repeat(k)."
        ),
        example="shardctl lint --shuffle-seed 1 --epochs 3 --pass 1 -d imagenet2012",
    ),
)
def extra_iterator(context: LintContext) -> Iterator[Violation]:
    """Find a later pass after a repeat that makes an iterator more."""
    if context.stage_chains:
        yield from as_settings.extra_iterator(context)
        return
    settings = context.settings
    if not settings.pass_index or settings.epochs < 2 or settings.repeat_files:
        return
    if settings.loop == "python" and settings.buffer is None and context.reshuffles_files:
        iterators = _file_passes(settings, partial=False).iterators_per_pass()
        yield Violation(
            why=f"a pass of {settings.epochs:,} epochs makes {iterators:,} iterators of the file "
            f"shuffle: pass {settings.pass_index:,} begins {settings.pass_index:,} later",
            fix="iterate the dataset once an epoch, or count so when you compare",
            settings=("pass", "epochs"),
        )


def _file_passes(settings: ReadSettings, *, partial: bool) -> ShufflePasses:
    return file_shuffle_passes(
        num_epochs=settings.epochs,
        loop=settings.loop,
        under_user_shuffle=settings.buffer is not None,
        repeat_filenames=settings.repeat_files,
        reshuffle=settings.reshuffle,
        partial_last_batch=partial,
    )


@rule(
    "SC016",
    "racy-pass",
    "warning",
    "later passes whose order timing decides",
    story=Story(
        happens="A later pass over the same dataset takes the seeds that follow those of the pass "
        "before. How many that one took can depend on threads that read ahead: after a pass over "
        "files that repeat for ever, which is always cut somewhere, and after a Keras epoch over "
        "ds.repeat(k) whose last batch is full. With every seed fixed the next pass then has "
        "several outcomes.",
        source="4 outcomes in 60 runs of repeat_filenames with take(13).repeat(2); 45 to 15 for "
        "repeat().prefetch and a break. The first pass has always one.",
        fix="Build the dataset anew for each pass; with Keras repeat by fit(epochs=k) in place of "
        "ds.repeat(k).",
        example="shardctl lint --repeat-files --shuffle-seed 1 --pass 1 -d imagenet2012",
    ),
)
def racy_pass(context: LintContext) -> Iterator[Violation]:
    """Find later passes that no seed fixes."""
    settings = context.settings
    if settings.repeat_files:
        if settings.pass_index and context.reshuffles_files:
            yield Violation(
                why="where the endless pass before was cut leaves the order of the files to timing",
                fix="build the dataset anew, which is pass 0",
                settings=("pass", "repeat_files"),
            )
        return
    if settings.loop != "keras-fit" or not (context.knows_length and context.reshuffles_files):
        return
    for read in context.trained:
        try:
            _file_passes(settings, partial=_ends_in_part(context, read)).iterators_per_pass()
        except UnpredictableOrderError:
            yield Violation(
                why=f"{read.spec}: each Keras epoch repeats the dataset {settings.epochs:,} times, "
                "and from the second on timing decides the order of the files",
                fix="fit(epochs=k) in place of ds.repeat(k)",
                specs=(read.spec,),
                settings=("epochs", "loop"),
            )


def _ends_in_part(context: LintContext, read: Read) -> bool:
    settings = context.settings
    if settings.batch is None or settings.drop_remainder:
        return False
    total = sum(piece.num_examples for piece in context.ranges_of_host(read))
    stride, phase = context.host_mode.stride_and_phase(context.host)
    return len(range(phase, total, stride)) * settings.epochs % settings.batch > 0
