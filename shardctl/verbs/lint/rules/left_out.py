"""SC046 and SC051, SC007 to SC009: what is left out, orders that timing decides or never begin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from shardctl.base.tfds_rules import WHOLE_DATASET
from shardctl.errors import ShardctlError
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import ENDLESS
from shardctl.stages import stages as ast
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import LintContext, Read
from shardctl.verbs.lint.rule import EVERY_LOADER, Violation, rule

_COUNTABLE = 1_000_000  # examples up to which those of the slice are counted
_STEP = 1 << 16
_PAD = "pad the last batch and mask it, as shardctl.tfds.evaluation does"


@rule("SC046", "take")
def take_for_slice(context: LintContext) -> Iterator[Violation]:
    """Find a `take` that reads other examples than the slice would."""
    several = context.num_hosts > 1
    for take, names in _takes(context):
        for read in (*context.trained, *context.evaluated):
            if take >= (context.shares(read).num_examples.max if several else read.num_examples):
                continue
            num_same, known = _num_in_slice(context, read, take), ""
            if num_same == take:
                continue
            if num_same is not None and not several:
                known = f": it has {num_same:,} of the slice's {take:,} examples"
            fix = "a slice of the spec, which is then split among the hosts"
            yield Violation(
                f"take({take}) keeps the first of the order, not of the spec{known}",
                fix if several else _slice(read, take),
                read,
                settings=names,
            )


def _takes(context: LintContext) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield what is taken of the reader's order, and the setting that says so."""
    if context.usage.take is not None:
        yield context.usage.take, ("take",)
    pipeline = context.chains[0].pipeline
    for stage in pipeline.stages if pipeline.source == ast.Read() else ():
        if isinstance(stage, ast.Take) and stage.count > 0:
            yield stage.count, ("stages",)
        if not isinstance(
            stage, ast.Map | ast.Prefetch | ast.Cache | ast.AssertCardinality | ast.WithOptions
        ):
            return


def _slice(read: Read, take: int) -> str:
    (first, *rest) = read.resolved.ranges
    if rest or take > first.num_examples:
        return "a spec that selects them, as train[:n] does"
    part = f"{first.split.name}[{first.start or ''}:{first.start + take}]"
    return f"read {part} in place of take({take})"


def _num_in_slice(context: LintContext, read: Read, take: int) -> int | None:
    """Return how many of the first `take` the slice has too, None where nobody can say."""
    import numpy as np

    from shardctl.order.plan_order import order_of

    host = context.host if context.num_hosts > 1 else None
    once = replace(context.settings.followed, epochs=1, pass_index=0, stages=None, host=host)
    settings = replace(once, batch=None, drop_remainder=False)
    in_storage_order = ReadSettings(cycle=1, host=host)
    try:
        order, stored = (
            order_of(read.resolved, each).order for each in (settings, in_storage_order)
        )
    except ShardctlError:  # an order that is left open, or that other rules are about
        return None
    num_kept = min(take, order.num_examples, stored.num_examples)
    for start in range(0, num_kept, _STEP):
        stop = min(start + _STEP, num_kept)
        if not np.array_equal(order.read(start, stop), stored.read(start, stop)):
            break
    else:
        return take
    if num_kept > _COUNTABLE:
        return None
    return len(np.intersect1d(order.read(0, num_kept), stored.read(0, num_kept)))


@rule("SC051", "drop_remainder", "batch", loaders=EVERY_LOADER)
def dropped_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluation examples that fill no batch."""
    settings = context.settings
    for read in context.evaluated:
        for here in context.stages_at(read) if not settings.takes("epochs") else ():
            batch, count = here.stage, here.num_elements
            if not isinstance(batch, ast.Batch) or not batch.drop_remainder:
                continue
            if count is not None and not math.isinf(count) and count % batch.size:
                yield Violation(
                    f"{int(count) % batch.size:,} of {int(count):,} elements fill no "
                    f"{text_of_part(batch)} and are never evaluated",
                    _PAD,
                    read,
                )
        drops = settings.drop_remainder and settings.batch is not None
        columns = context.shares(read).columns if drops else None
        if settings.batch is None or columns is None:
            continue
        dropped = int((columns.num_examples % settings.batch).sum())
        # What a loader reads twice, so that all hosts have as many, is not lost once dropped.
        lost = min(dropped, read.num_examples - int(columns.num_examples.sum()) + dropped)
        if lost > 0:
            hosts = f" on {context.num_hosts:,} hosts" if context.num_hosts > 1 else ""
            yield Violation(
                f"{lost:,} of {read.num_examples:,} examples fill no batch of "
                f"{settings.batch:,}{hosts} and are never evaluated",
                _PAD,
                read,
            )


@rule("SC007", "deterministic")
def not_deterministic(context: LintContext) -> Iterator[Violation]:
    """Find `options.deterministic = False`, and maps and options that hand out what is ready."""
    if context.settings.deterministic is False:
        yield Violation(
            "examples come as their decoding ends, in another order each run, whatever the seeds",
            "leave out --no-deterministic",
        )
        return
    places = [
        str(here)
        for here in context.stages_at(None)
        if isinstance(here.stage, ast.Map | ast.WithOptions) and here.stage.deterministic is False
        # One at a time is in order.
        if not (isinstance(here.stage, ast.Map) and here.stage.calls in (None, 1))
    ]
    if places:
        yield Violation(
            f"{'; '.join(places)}: elements come as they are ready, in another order each run, "
            "whatever the seeds",
            "leave out deterministic=False",
            settings=("stages",),
        )


@rule("SC008", "shuffle_files", "global_seed")
def racy_interleave(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that only the global seed fixes."""
    if context.races and context.settings.global_seed is not None:
        yield Violation(
            "without a shuffle seed TFDS interleaves files as they are ready: the global seed "
            "fixes the files' order, not the examples'",
            "--shuffle-seed N, or --deterministic",
        )


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
