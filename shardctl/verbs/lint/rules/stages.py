"""SC071 to SC074 and SC078: stages on the wrong side of others, and of an open count."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.stages import stages as ast
from shardctl.stages.part import Stage
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import LintContext, StageAt, of_type, repeats, reshuffles, shuffles
from shardctl.verbs.lint.rule import Severity, Violation, rule


@rule("SC071", "stages")
def shuffled_split(context: LintContext) -> Iterator[Violation]:
    """Find a part of a dataset that is another one in each iteration."""
    for here, stage in context.at_stages(Stage):
        cause = _reshuffled_by(here, context) if isinstance(stage, ast.Take | ast.Skip) else None
        # A take of everything, or a skip of nothing, is always the same part.
        if cause is None or here.num_left == here.num_elements:
            continue
        what = "keeps" if isinstance(stage, ast.Take) else "leaves out"
        other = f"{here}, {what} other examples in each iteration, since {cause} before it"
        fix = f"slice the spec, or put {text_of_part(stage)} before the shuffle"
        # A subset may be meant to change; the rest of one never is.
        severity: Severity | None = "warning" if isinstance(stage, ast.Take) else None
        yield Violation(f"{other}: parts made so share examples", fix, severity=severity)


def _reshuffled_by(here: StageAt, context: LintContext) -> str | None:
    """Return what gives each iteration another order before a stage, None where nothing does."""
    # The nearest one decides: a cache keeps the first order, and behind a repeat there is one
    # iteration.
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
            stay = f"the {batch.size:,} examples of a batch stay together in every epoch"
            fix = f"{text_of_part(shuffle)} before {text_of_part(batch)}"
            yield Violation(f"{here}, moves whole batches: {stay}", fix)


def _open_batch(stages: tuple[Stage, ...]) -> ast.Batch | None:
    """Return the innermost batch that no `unbatch` has undone."""
    stack: list[ast.Batch] = []
    for stage in stages:
        if isinstance(stage, ast.Batch):
            stack.append(stage)
        elif isinstance(stage, ast.Unbatch) and stack:
            stack.pop()
    return stack[-1] if stack else None


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
        # Without an end no host ends before others.
        endless = any(stage.count is None for stage in of_type(here.behind, ast.Repeat))
        several = context.num_hosts > 1 and not endless
        if several:
            why += f", and {context.num_hosts:,} hosts end at different steps"
        fix += ", or --ignore SC078 where it is known"
        yield Violation(f"{here}: {why}", fix, severity="warning" if several else None)


# SC073 and SC074: caches that keep an order, or nothing.


@rule("SC073", "stages")
def cached_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a cache that keeps the order of a shuffle, with no shuffle behind it."""
    for here, _ in context.at_stages(ast.Cache):
        shuffle = next(filter(reshuffles, reversed(here.before)), None)
        files = context.reshuffles_files_of(here.source) and not of_type(here.before, ast.Cache)
        if any(map(reshuffles, here.behind)) or (shuffle is None and not files):
            continue
        frozen = "the shuffled files" if shuffle is None else text_of_part(shuffle)
        why = f"{here}, keeps the first order of {frozen}: every later epoch comes in it too"
        behind = "a shuffle behind the cache"
        yield Violation(why, behind if shuffle is None else f"cache before {frozen}")


@rule("SC074", "stages")
def unfilled_cache(context: LintContext) -> Iterator[Violation]:
    """Find a cache whose input has no end."""
    for here, _ in context.at_stages(ast.Cache):
        if here.num_elements == math.inf:
            endless = [stage for stage in of_type(here.before, ast.Repeat) if stage.count is None]
            why = f"{here}, keeps a stream without end, until memory runs out"
            fix = "cache before repeat" if endless else "leave out the cache"
            yield Violation(why, fix)
