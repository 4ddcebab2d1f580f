"""SC078 and SC079: stages whose count is open, that leave nothing, or that are never reached."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages.stages import (
    Batch,
    Concatenate,
    Filter,
    Opaque,
    Repeat,
    Shard,
    Skip,
    Take,
)
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import StageAt, of_type
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Story, Violation, rule


@rule(
    "SC078",
    "open-count",
    "notice",
    "a stage whose elements only the data tells",
    story=Story(
        happens="How many elements pass ds.filter, or come out of ds.flat_map and generators, is "
        "known when the data has been read. tf.data then gives the dataset no length: Keras "
        "learns in its first epoch how long an epoch is, progress has no end, and the number of "
        "steps says nothing about the place in the files, so that nothing resumes by counting.\n\n"
        "Hosts that train together do not get equally many, and the one with more waits for the "
        "others in its last steps (a warning with several hosts).",
        source="tensorflow/core/kernels/data/filter_dataset_op.cc: its cardinality is unknown.",
        fix=phrase(
            "Name the examples that pass, filter(kept='FILE'), a list of ids or a mask: then all "
            "is exact. Or prepare a dataset of these examples alone; with several hosts repeat "
            "and take as many steps on each. Where it is known, {ignore=[SC078]}."
        ),
        example="shardctl lint --stages 'filter | shuffle(1000, seed=1) | batch(64)' -d mnist",
    ),
)
def open_count(context: LintContext) -> Iterator[Violation]:
    """Find a stage that leaves the number of elements to the data."""
    for read in context.staged_reads[:1]:
        for here in context.stages_at(read):
            stage = here.stage
            if isinstance(stage, Filter) and stage.kept is None:
                why, fix = "how many pass depends on the data", "filter(kept='FILE')"
            elif isinstance(stage, Opaque):
                why, fix = stage.reason or "its order depends on the data", "a stage that counts"
            else:
                continue
            several = context.num_hosts > 1 and not math.isinf(_end(here))
            if several:
                why += f", and {context.num_hosts:,} hosts end at different steps"
            yield Violation(
                why=f"{here.place}, {text_of_part(stage)}: {why}",
                fix=phrase("{}, or {ignore=[SC078]} where it is known", fix),
                settings=("stages",),
                severity="warning" if several else None,
            )


def _end(here: StageAt) -> float:
    """Return `math.inf` where what follows a stage repeats without end."""
    endless = any(stage.count is None for stage in of_type(here.behind, Repeat))
    return math.inf if endless else 0


@rule(
    "SC079",
    "nothing-left",
    "error",
    "a stage that leaves nothing, or is never reached",
    story=Story(
        happens="A skip of more elements than there are, a batch that drops a remainder which is "
        "all there is, take(0): the dataset is empty, and nothing fails. A loop over it makes no "
        "step; Keras says that its input ran out of data.\n\n"
        "It comes about where take and skip are put behind batch: there they count batches. "
        "Likewise ds.repeat().concatenate(other) never comes to `other`.",
        source="tensorflow/core/kernels/data/skip_dataset_op.cc, batch_dataset_op.cc and "
        "concatenate_dataset_op.cc.",
        fix="Count in the elements that come there: batches behind batch, examples before it; "
        "concatenate before the repeat.",
        example="shardctl lint --stages 'batch(64) | skip(5000)' -d mnist",
    ),
)
def nothing_left(context: LintContext) -> Iterator[Violation]:
    """Find a stage behind which there is nothing though something came."""
    for read in context.staged_reads:
        for here in context.stages_at(read):
            if isinstance(here.stage, Concatenate) and here.num_elements == math.inf:
                yield Violation(
                    why=f"{here.place}, {text_of_part(here.stage)}, comes behind a stream without "
                    "end, and is never read",
                    fix="concatenate before the repeat, or sample_from_datasets",
                    settings=("stages",),
                )
            if here.num_left != 0 or not here.num_elements:
                continue
            came = "elements without end"
            if not math.isinf(here.num_elements):
                came = f"the {here.num_elements:,} elements that come there"
            batch = next(iter(of_type(here.before, Batch)), None)
            counts = batch is not None and isinstance(here.stage, Skip | Take | Shard)
            unit = f" (batches of {batch.size:,})" if batch is not None and counts else ""
            yield Violation(
                why=f"{here.place}, {text_of_part(here.stage)}, leaves nothing of {came}{unit}",
                fix="a count below that" if isinstance(here.stage, Skip) else "leave it out",
                specs=() if read is None else (read.spec,),
                settings=("stages",),
            )
