"""SC071 and SC072: stages on the wrong side of a shuffle."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages.stages import Batch, Cache, Read, Skip, Stage, Take, Unbatch
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import StageAt, repeats, reshuffles, shuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Story, Violation, rule


@rule(
    "SC071",
    "shuffled-split",
    "error",
    "take or skip behind a shuffle that reshuffles",
    story=Story(
        happens="ds.shuffle(..) gives each iteration another order, and take and skip count places "
        "of it. ds.take(n) for validation and ds.skip(n) for training then part the dataset anew "
        "in every epoch: what was validated on is trained on in the next epoch, and the "
        "validation metric becomes one of training data. A subset made by take(n) is another one "
        "in each epoch.\n\n"
        "Files that are shuffled by shuffle_files do the same. Behind a repeat the finding is not "
        "made: there take(n) says how many steps to make.",
        source="tensorflow/core/kernels/data/shuffle_dataset_op.cc: reshuffle_each_iteration is "
        "true where it is not given. The leak is a hundred times on Stack Overflow and in "
        "TensorFlow's issues.",
        fix="Slice the spec, 'train[:90%]' and 'train[90%:]', which costs nothing; or put take "
        "and skip before the shuffle; or shuffle with reshuffle_each_iteration=False and a seed, "
        "and shuffle the training part again behind it.",
        example="shardctl lint --stages 'shuffle(10000, seed=1) | skip(5000)' -d mnist",
    ),
)
def shuffled_split(context: LintContext) -> Iterator[Violation]:
    """Find a part of a dataset that is another one in each iteration."""
    for read in context.staged_reads[:1]:
        for here in context.stages_at(read):
            stage = here.stage
            if not isinstance(stage, Take | Skip) or here.num_left == here.num_elements:
                continue
            cause = _reshuffled_by(here, context)
            if cause is None:
                continue
            what = "keeps" if isinstance(stage, Take) else "leaves out"
            yield Violation(
                why=f"{here.place}, {text_of_part(stage)}, {what} other examples in each "
                f"iteration, since {cause} before it: parts made so share examples",
                fix=phrase("slice the spec, or put {} before the shuffle", text_of_part(stage)),
                settings=("stages",),
                # A subset may be meant to change; the rest of one never is.
                severity="warning" if isinstance(stage, Take) else None,
            )


def _reshuffled_by(here: StageAt, context: LintContext) -> str | None:
    """Return what gives each iteration another order before a stage, None where nothing does."""
    for stage in reversed(here.before):
        if repeats(stage) or isinstance(stage, Cache):
            return None
        if reshuffles(stage):
            return f"{text_of_part(stage)} reshuffles"
    if isinstance(here.source, Read) and context.reshuffles_files_of(here.source):
        return "the files are shuffled anew"
    return None


@rule(
    "SC072",
    "shuffled-batches",
    "warning",
    "a shuffle behind the batches",
    story=Story(
        happens="Behind ds.batch(b) an element is a batch, and ds.shuffle moves whole batches: the "
        "examples of a batch are the same ones in every epoch, neighbours in the files as a rule. "
        "The buffer also holds b times as many examples as its size says.\n\n"
        "Where a shuffle before the batches mixes examples the finding is not made.",
        source="tensorflow/core/kernels/data/shuffle_dataset_op.cc counts elements.",
        fix="Shuffle, then batch.",
        example="shardctl lint --stages 'batch(64) | shuffle(1000, seed=1)' -d imagenet2012",
    ),
)
def shuffled_batches(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle of batches whose examples nothing has shuffled."""
    for read in context.staged_reads[:1]:
        for here in context.stages_at(read):
            if not shuffles(here.stage) or any(map(shuffles, here.before)):
                continue
            batch = _open_batch(here.before)
            if batch is not None and batch.size > 1:
                yield Violation(
                    why=f"{here.place}, {text_of_part(here.stage)}, moves whole batches: the "
                    f"{batch.size:,} examples of a batch stay together in every epoch",
                    fix=f"{text_of_part(here.stage)} before {text_of_part(batch)}",
                    settings=("stages",),
                )


def _open_batch(stages: tuple[Stage, ...]) -> Batch | None:
    """Return the innermost batch that no `unbatch` has undone."""
    stack: list[Batch] = []
    for stage in stages:
        if isinstance(stage, Batch):
            stack.append(stage)
        elif isinstance(stage, Unbatch) and stack:
            stack.pop()
    return stack[-1] if stack else None
