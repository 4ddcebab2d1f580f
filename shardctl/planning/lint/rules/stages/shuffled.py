"""SC071 and SC072: stages on the wrong side of a shuffle."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages.part import Stage
from shardctl.core.stages.stages import (
    Batch,
    Cache,
    Concatenate,
    Filter,
    Opaque,
    Read,
    Repeat,
    Shard,
    Skip,
    Take,
    Unbatch,
)
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import StageAt, of_type, repeats, reshuffles, shuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule


@rule("SC071", "shuffled-split", "error", "take or skip behind a shuffle that reshuffles")
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


@rule("SC072", "shuffled-batches", "warning", "a shuffle behind the batches")
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


# SC078 and SC079: stages whose count is open, that leave nothing, or that are never reached.


@rule("SC078", "open-count", "notice", "a stage whose elements only the data tells")
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


@rule("SC079", "nothing-left", "error", "a stage that leaves nothing, or is never reached")
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
