"""SC073 and SC074: caches that keep an order, or nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator

from shardctl.core.stages import stages as ast
from shardctl.core.stages.part import Stage
from shardctl.core.stages.text import text_of_part
from shardctl.planning.lint.chains import of_type, reshuffles
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule

_READ_AHEAD = 1024  # elements that AUTOTUNE may read before they are asked for


@rule("SC073", "stages")
def cached_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a cache that keeps the order of a shuffle, with no shuffle behind it."""
    for here, _ in context.at_stages(ast.Cache):
        shuffle = next(filter(reshuffles, reversed(here.before)), None)
        files = context.reshuffles_files_of(here.source) and not of_type(here.before, ast.Cache)
        if any(map(reshuffles, here.behind)) or (shuffle is None and not files):
            continue
        frozen = "the shuffled files" if shuffle is None else text_of_part(shuffle)
        yield Violation(
            f"{here}, keeps the first order of {frozen}: every later epoch comes in it too",
            "a shuffle behind the cache" if shuffle is None else f"cache before {frozen}",
        )


@rule("SC074", "stages")
def unfilled_cache(context: LintContext) -> Iterator[Violation]:
    """Find a cache whose input is cut before its end, or has none."""
    for here, _ in context.at_stages(ast.Cache):
        if here.num_elements == math.inf:
            endless = [stage for stage in of_type(here.before, ast.Repeat) if stage.count is None]
            yield Violation(
                f"{here}, keeps a stream without end, until memory runs out",
                "cache before repeat" if endless else "leave out the cache",
                severity="error",
            )
    for read in context.staged_reads:
        for here in context.stages_at(read):
            found = cut(here.behind) if isinstance(here.stage, ast.Cache) else None
            if found is None or not found[1] < (here.num_elements or 0) < math.inf:
                continue
            take = text_of_part(found[0])
            yield Violation(
                f"{here}, is asked for {found[1]:,} of {here.num_elements:,} elements by {take}: "
                "it is never filled, and each pass reads the files again",
                f"{take} before the cache",
                specs=() if read is None else (read.spec,),
            )


def cut(behind: tuple[Stage, ...]) -> tuple[ast.Take, int] | None:
    """Return the first take behind a cache and how many elements it asks the cache for at most.

    None where there is none, or where what lies between may ask for all.
    """
    places = (
        i for i, stage in enumerate(behind) if isinstance(stage, ast.Take) and stage.count >= 0
    )
    place = next(places, None)
    if place is None:
        return None
    take = behind[place]
    assert isinstance(take, ast.Take)
    asked: int | None = take.count
    for lower in reversed(behind[:place]):
        asked = None if asked is None else _asked(lower, asked)
    return None if asked is None else (take, asked)


def _asked(stage: Stage, count: int) -> int | None:
    """Return how many elements a stage asks its input for, at most, to hand out `count`."""
    match stage:
        case ast.Batch():
            return count * stage.size
        case ast.Shard():
            return count * stage.num_shards
        case ast.Skip():
            return None if stage.count < 0 else count + stage.count
        case ast.Shuffle():
            return None if stage.buffer < 0 else count + stage.buffer - 1
        case ast.Prefetch():
            return count + (_READ_AHEAD if stage.size == "auto" else stage.size)
        case ast.Map():
            return count + (_READ_AHEAD if stage.calls == "auto" else stage.calls or 0)
        case ast.Repeat() | ast.Cache() | ast.AssertCardinality() | ast.WithOptions() | ast.Take():
            return count
    return None
