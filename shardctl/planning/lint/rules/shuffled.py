"""SC071 and SC072: stages on the wrong side of a shuffle."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.core.stages import stages as ast
from shardctl.core.stages.part import Stage
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import StageAt, of_type, repeats, reshuffles, shuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule


@rule("SC071", "stages")
def shuffled_split(context: LintContext) -> Iterator[Violation]:
    """Find a part of a dataset that is another one in each iteration."""
    for here, stage in context.at_stages(Stage):
        cause = _reshuffled_by(here, context) if isinstance(stage, ast.Take | ast.Skip) else None
        if cause is None or here.num_left == here.num_elements:
            continue
        what = "keeps" if isinstance(stage, ast.Take) else "leaves out"
        yield Violation(
            f"{here}, {what} other examples in each iteration, since {cause} before it: parts made "
            "so share examples",
            f"slice the spec, or put {text_of_part(stage)} before the shuffle",
            # A subset may be meant to change; the rest of one never is.
            severity="warning" if isinstance(stage, ast.Take) else None,
        )


def _reshuffled_by(here: StageAt, context: LintContext) -> str | None:
    """Return what gives each iteration another order before a stage, None where nothing does."""
    for stage in reversed(here.before):
        if repeats(stage) or isinstance(stage, ast.Cache):
            return None
        if reshuffles(stage):
            return f"{text_of_part(stage)} reshuffles"
    return "the files are shuffled anew" if context.reshuffles_files_of(here.source) else None


@rule("SC072", "stages")
def shuffled_batches(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle of batches whose examples nothing has shuffled."""
    for here, shuffle in context.at_stages(ast.Shuffle):
        batch = _open_batch(here.before)
        if not shuffles(shuffle) or any(map(shuffles, here.before)) or batch is None:
            continue
        if batch.size > 1:
            yield Violation(
                f"{here}, moves whole batches: the {batch.size:,} examples of a batch stay "
                "together in every epoch",
                f"{text_of_part(shuffle)} before {text_of_part(batch)}",
            )


def _open_batch(stages: tuple[Stage, ...]) -> ast.Batch | None:
    """Return the innermost batch that no `unbatch` has undone."""
    stack: list[ast.Batch] = []
    for stage in stages:
        if isinstance(stage, ast.Batch):
            stack.append(stage)
        elif isinstance(stage, ast.Unbatch) and stack:
            stack.pop()
    return stack[-1] if stack else None


# SC078 and SC079: stages whose count is open, that leave nothing, or that are never reached.


@rule("SC078", "stages")
def open_count(context: LintContext) -> Iterator[Violation]:
    """Find a stage that leaves the number of elements to the data."""
    for here, stage in context.at_stages(Stage):
        if isinstance(stage, ast.Filter) and stage.kept is None:
            why, fix = "how many pass depends on the data", "filter(kept='FILE')"
        elif isinstance(stage, ast.Opaque):
            why, fix = stage.reason or "its order depends on the data", "a stage that counts"
        else:
            continue
        endless = any(stage.count is None for stage in of_type(here.behind, ast.Repeat))
        several = context.num_hosts > 1 and not endless
        if several:
            why += f", and {context.num_hosts:,} hosts end at different steps"
        yield Violation(
            f"{here}: {why}",
            phrase("{}, or {ignore=[SC078]} where it is known", fix),
            severity="warning" if several else None,
        )


@rule("SC079", "stages")
def nothing_left(context: LintContext) -> Iterator[Violation]:
    """Find a stage behind which there is nothing though something came."""
    for read in context.staged_reads:
        for here in context.stages_at(read):
            stage, count = here.stage, here.num_elements
            if isinstance(stage, ast.Concatenate) and count == math.inf:
                yield Violation(
                    f"{here}, comes behind a stream without end, and is never read",
                    "concatenate before the repeat, or sample_from_datasets",
                )
            if here.num_left != 0 or not count:
                continue
            came = f"the {count:,} elements that come there"
            came = "elements without end" if math.isinf(count) else came
            batch = next(iter(of_type(here.before, ast.Batch)), None)
            if batch is not None and isinstance(stage, ast.Skip | ast.Take | ast.Shard):
                came += f" (batches of {batch.size:,})"
            yield Violation(
                f"{here}, leaves nothing of {came}",
                "a count below that" if isinstance(stage, ast.Skip) else "leave it out",
                specs=() if read is None else (read.spec,),
            )
