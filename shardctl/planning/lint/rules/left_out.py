"""SC046 and SC051: examples that are left out, by `take` or with a remainder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import ENDLESS
from shardctl.core.stages.stages import AssertCardinality, Cache, Map, Prefetch, Take, WithOptions
from shardctl.core.stages.stages import Read as StageRead
from shardctl.core.tfds_rules import WHOLE_DATASET
from shardctl.errors import ShardctlError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import EVERY_LOADER, Violation, rule
from shardctl.planning.lint.rules.stages import as_settings

_COUNTABLE = 1_000_000  # examples up to which those of the slice are counted
_STEP = 1 << 16


@rule("SC046", "take-for-slice", "warning", "take(n) taken for [:n]")
def take_for_slice(context: LintContext) -> Iterator[Violation]:
    """Find a `take` that reads other examples than the slice would."""
    for take, name in _takes(context):
        yield from _not_the_slice(context, take, name)


def _takes(context: LintContext) -> Iterator[tuple[int, str]]:
    """Yield what is taken of the reader's order, and the setting that says so."""
    if context.usage.take is not None:
        yield context.usage.take, "take"
    pipeline = context.chains[0].pipeline if context.chains else None
    if pipeline is None or pipeline.source != StageRead():
        return
    for stage in pipeline.stages:
        if isinstance(stage, Take) and stage.count > 0:
            yield stage.count, "stages"
        if not isinstance(stage, Map | Prefetch | Cache | AssertCardinality | WithOptions):
            return


def _not_the_slice(context: LintContext, take: int, name: str) -> Iterator[Violation]:
    for read in (*context.trained, *context.evaluated):
        several = context.num_hosts > 1
        if take >= (context.shares(read).num_examples.max if several else read.num_examples):
            continue
        num_same = _num_in_slice(context, read, take)
        if num_same == take:
            continue
        known = ""
        if num_same is not None and not several:
            known = f": it has {num_same:,} of the slice's {take:,} examples"
        yield Violation(
            why=f"{read.spec}: take({take}) keeps the first of the order, not of the spec{known}",
            fix="a slice of the spec, which is then split among the hosts"
            if several
            else _slice(read, take),
            specs=(read.spec,),
            settings=(name,),
        )


def _slice(read: Read, take: int) -> str:
    (first, *rest) = read.resolved.ranges
    if rest or take > first.num_examples:
        return "a spec that selects them, as train[:n] does"
    start = "" if not first.start else str(first.start)
    return f"read {first.split.name}[{start}:{first.start + take}] in place of take({take})"


def _num_in_slice(context: LintContext, read: Read, take: int) -> int | None:
    """Return how many of the first `take` the slice has too, None where nobody can say."""
    import numpy as np

    from shardctl.planning.order import order_of

    host = context.host if context.num_hosts > 1 else None
    settings = replace(
        context.settings.followed,
        host=host,
        epochs=1,
        batch=None,
        drop_remainder=False,
        stages=None,
        pass_index=0,
    )
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


@rule(
    "SC051",
    "dropped-in-evaluation",
    "warning",
    "a remainder that is dropped in evaluation",
    loaders=EVERY_LOADER,
)
def dropped_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluation examples that fill no batch."""
    yield from as_settings.dropped_in_evaluation(context)
    settings = context.settings
    if not settings.drop_remainder or settings.batch is None:
        return
    for read in context.evaluated:
        columns = context.shares(read).columns
        lost = 0
        if columns is not None:
            dropped = int((columns.num_examples % settings.batch).sum())
            # What a loader reads twice, so that all hosts have as many, is not lost once dropped.
            lost = min(dropped, read.num_examples - int(columns.num_examples.sum()) + dropped)
        if lost > 0:
            hosts = f" on {context.num_hosts:,} hosts" if context.num_hosts > 1 else ""
            yield Violation(
                why=f"{read.spec}: {lost:,} of {read.num_examples:,} examples fill no batch of "
                f"{settings.batch:,}{hosts} and are never evaluated",
                fix="pad the last batch and mask it, as shardctl.tfds.evaluation does",
                specs=(read.spec,),
                settings=("drop_remainder", "batch"),
            )


# SC007 to SC009: orders that timing decides, or that never begin.


@rule("SC007", "not-deterministic", "warning", "deterministic switched off")
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


@rule("SC008", "racy-interleave", "warning", "files shuffled by the global seed alone")
def racy_interleave(context: LintContext) -> Iterator[Violation]:
    """Find a file shuffle that only the global seed fixes."""
    if context.races and context.settings.global_seed is not None:
        yield Violation(
            why="without a shuffle seed TFDS interleaves files as they are ready: the global seed "
            "fixes the files' order, not the examples'",
            fix=phrase("{shuffle_seed=N}, or {deterministic=True}"),
            settings=("shuffle_files", "global_seed"),
        )


@rule("SC009", "buffer-never-fills", "error", "a buffer as large as a stream without end")
def buffer_never_fills(context: LintContext) -> Iterator[Violation]:
    """Find a buffer for the whole of what has no end."""
    yield from as_settings.buffer_never_fills(context)
    if context.repeats_files() and context.settings.buffer == WHOLE_DATASET:
        yield Violation(
            why="the buffer waits for the end of files that repeat for ever, and memory runs out",
            fix=phrase("{buffer=N} with a number, or {epochs=N} in place of {}", ENDLESS),
            settings=("buffer", "repeat_files"),
        )
