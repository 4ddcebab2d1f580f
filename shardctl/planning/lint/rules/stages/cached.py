"""SC073 and SC074: caches that keep an order, or nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.stages.part import Stage
from shardctl.core.stages.stages import (
    AssertCardinality,
    Batch,
    Cache,
    Map,
    Prefetch,
    Read,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    WithOptions,
)
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import StageAt, reshuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule

_READ_AHEAD = 1024  # elements that AUTOTUNE may read before they are asked for


@rule("SC073", "cached-shuffle", "warning", "a cache behind the shuffle")
def cached_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a cache that keeps the order of a shuffle, with no shuffle behind it."""
    for read in context.staged_reads[:1]:
        for here in context.stages_at(read):
            if not isinstance(here.stage, Cache) or any(map(reshuffles, here.behind)):
                continue
            shuffle = next(filter(reshuffles, reversed(here.before)), None)
            files = isinstance(here.source, Read) and context.reshuffles_files_of(here.source)
            if shuffle is None and (not files or any(isinstance(s, Cache) for s in here.before)):
                continue
            frozen = "the shuffled files" if shuffle is None else text_of_part(shuffle)
            yield Violation(
                why=f"{here.place}, cache, keeps the first order of {frozen}: every later "
                "epoch comes in it too",
                fix="a shuffle behind the cache"
                if shuffle is None
                else f"cache before {text_of_part(shuffle)}",
                settings=("stages",),
            )


@rule("SC074", "unfilled-cache", "warning", "a cache that no pass ever fills")
def unfilled_cache(context: LintContext) -> Iterator[Violation]:
    """Find a cache whose input is cut before its end, or has none."""
    for read in context.staged_reads:
        for here in context.stages_at(read):
            if not isinstance(here.stage, Cache) or here.num_elements is None:
                continue
            if math.isinf(here.num_elements):
                if read is not context.staged_reads[0]:
                    continue  # said of the pipeline, whatever it reads
                yield Violation(
                    why=f"{here.place}, cache, keeps a stream without end, until memory runs out",
                    fix=_before_repeat(here),
                    settings=("stages",),
                    severity="error",
                )
                continue
            found = cut(here.behind)
            if found is not None and found[1] < here.num_elements:
                take, asked = found
                yield Violation(
                    why=f"{here.place}, cache, is asked for {asked:,} of {here.num_elements:,} "
                    f"elements by {text_of_part(take)}: it is never filled, and each pass reads "
                    "the files again",
                    fix=f"{text_of_part(take)} before the cache",
                    specs=() if read is None else (read.spec,),
                    settings=("stages",),
                )


def _before_repeat(here: StageAt) -> str:
    endless = [s for s in here.before if isinstance(s, Repeat) and s.count is None]
    return "cache before repeat" if endless else "leave out the cache"


def cut(behind: tuple[Stage, ...]) -> tuple[Take, int] | None:
    """Return the first take behind a cache and how many elements it asks the cache for at most.

    None where there is none, or where what lies between may ask for all.
    """
    between: list[Stage] = []
    for stage in behind:
        if isinstance(stage, Take) and stage.count >= 0:
            asked: int | None = stage.count
            for lower in reversed(between):
                asked = None if asked is None else _asked(lower, asked)
            return None if asked is None else (stage, asked)
        between.append(stage)
    return None


def _asked(stage: Stage, count: int) -> int | None:
    """Return how many elements a stage asks its input for, at most, to hand out `count`."""
    if isinstance(stage, Batch):
        return count * stage.size
    if isinstance(stage, Skip):
        return None if stage.count < 0 else count + stage.count
    if isinstance(stage, Shard):
        return count * stage.num_shards
    if isinstance(stage, Shuffle):
        return None if stage.buffer < 0 else count + stage.buffer - 1
    if isinstance(stage, Prefetch):
        return count + (_READ_AHEAD if stage.size == "auto" else stage.size)
    if isinstance(stage, Map):
        ahead = _READ_AHEAD if stage.calls == "auto" else stage.calls or 0
        return count + ahead
    if isinstance(stage, Repeat | Cache | AssertCardinality | WithOptions | Take):
        return count
    return None
