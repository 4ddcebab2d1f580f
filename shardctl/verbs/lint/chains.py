"""The chains of stages in a pipeline: what lies before and behind each stage, and how many come."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from shardctl.stages import stages as ast
from shardctl.stages.part import Count, Source, Stage
from shardctl.stages.text import place_of, text_of_part

CountOfRead = Callable[[ast.Read], Count]
AnyStage = TypeVar("AnyStage", bound=Stage)


@dataclass(frozen=True, kw_only=True)
class StageAt:
    """A stage in its chain: `before` it lie the stages that feed it, `behind` it all that follow.

    behind: of an input of a mixture, those of the mixture follow too.
    place: where it is, "stage 2" or "stage 1 of input 0".
    num_elements: how many elements its input hands out in an iteration; batches behind a batch.
    num_left: how many it hands out itself.
    """

    stage: Stage
    source: Source
    before: tuple[Stage, ...]
    behind: tuple[Stage, ...]
    place: str
    num_elements: Count
    num_left: Count

    def __str__(self) -> str:
        return f"{self.place}, {text_of_part(self.stage)}"


@dataclass(frozen=True, kw_only=True)
class Chain:
    """A source and the stages behind it; `place` is "" for the pipeline, else "input 0"."""

    pipeline: ast.Pipeline
    behind: tuple[Stage, ...] = ()
    place: str = ""

    def __str__(self) -> str:
        name = self.pipeline.source.name
        return f"{name} of {self.place}" if self.place else name

    def stages(self, count_of_read: CountOfRead) -> Iterator[StageAt]:
        """Yield every stage of the chain."""
        source, inlined = _inlined(self.pipeline.source)
        stages = self.pipeline.stages
        counts = list(counts_of(self.pipeline, count_of_read))
        for index, stage in enumerate(stages):
            yield StageAt(
                stage=stage,
                source=source,
                before=inlined + stages[:index],
                behind=stages[index + 1 :] + self.behind,
                place=place_of(index, self.place),
                num_elements=counts[index],
                num_left=counts[index + 1],
            )


def _inlined(source: Source) -> tuple[Source, tuple[Stage, ...]]:
    """Return what a source is in the end, and the stages of what is shared behind that."""
    stages: tuple[Stage, ...] = ()
    while isinstance(source, ast.Shared):
        stages = source.pipeline.stages + stages
        source = source.pipeline.source
    return source, stages


def inputs_of(pipeline: ast.Pipeline) -> Iterator[tuple[str, ast.Pipeline, tuple[Stage, ...]]]:
    """Yield what feeds a pipeline besides its source: name, pipeline, the stages behind it."""
    source = pipeline.source
    if isinstance(source, ast.Shared):
        yield f"shared {source.label}", source.pipeline, pipeline.stages
    else:
        for index, one in enumerate(source.fed_by):
            yield f"input {index}", one, pipeline.stages
    for index, stage in enumerate(pipeline.stages):
        for one in stage.fed_by:
            yield f"{stage.name}, {place_of(index)}", one, pipeline.stages[index + 1 :]


def chains(pipeline: ast.Pipeline) -> Iterator[Chain]:
    """Yield the chain of a pipeline, then those of its inputs, from the outside in.

    What is shared comes once, with what is behind its first use.
    """
    waiting = [Chain(pipeline=pipeline)]
    shared = set()
    while waiting:
        chain = waiting.pop(0)
        yield chain
        for name, one, behind in inputs_of(chain.pipeline):
            place = f"{name} of {chain.place}" if chain.place else name
            if (
                isinstance(chain.pipeline.source, ast.Shared)
                and one is chain.pipeline.source.pipeline
            ):
                place = name
                if place in shared:
                    continue
                shared.add(place)
            waiting.append(Chain(pipeline=one, behind=behind + chain.behind, place=place))


def of_type(stages: tuple[Stage, ...], kind: type[AnyStage]) -> tuple[AnyStage, ...]:
    """Return the stages of a kind."""
    return tuple(stage for stage in stages if isinstance(stage, kind))


def shuffles(stage: Stage) -> bool:
    """Whether a stage is a shuffle that changes an order."""
    return isinstance(stage, ast.Shuffle) and stage.buffer != 1


def reshuffles(stage: Stage) -> bool:
    """Whether a stage is a shuffle that gives each iteration another order."""
    return isinstance(stage, ast.Shuffle) and stage.buffer != 1 and stage.reshuffle is not False


def repeats(stage: Stage) -> bool:
    """Whether a stage hands out its input more than once."""
    return isinstance(stage, ast.Repeat) and (stage.count is None or stage.count not in (0, 1))


def count_of(pipeline: ast.Pipeline, count_of_read: CountOfRead) -> Count:
    """Return how many elements a pipeline hands out in an iteration."""
    *_, last = counts_of(pipeline, count_of_read)
    return last


def counts_of(pipeline: ast.Pipeline, count_of_read: CountOfRead) -> Iterator[Count]:
    """Yield how many elements the source hands out, and each stage behind it.

    >>> stages = (ast.Batch(size=64), ast.Repeat(), ast.Take(count=1000))
    >>> list(counts_of(ast.Pipeline(stages=stages), lambda read: 60_000))
    [60000, 938, inf, 1000]
    """
    count = _count_of_source(pipeline.source, count_of_read)
    yield count
    singles: list[Count] = []  # counts before the batches that lie open, for unbatch
    for stage in pipeline.stages:
        if isinstance(stage, ast.Batch):
            singles.append(count)
        elif isinstance(stage, ast.Unbatch):
            count = singles.pop() if singles else None
            yield count
            continue
        before = count
        count = stage.length(count, [count_of(one, count_of_read) for one in stage.pipelines])
        if isinstance(stage, ast.Batch) and stage.drop_remainder and singles[-1] is not None:
            singles[-1] = _whole(singles[-1], stage.size)
        elif count != before and not isinstance(stage, ast.Batch):
            singles = [None] * len(singles)
        yield count


def _whole(count: float, size: int) -> Count:
    return count if math.isinf(count) else count - count % size


def _count_of_source(source: Source, count_of_read: CountOfRead) -> Count:
    if isinstance(source, ast.Read):
        return count_of_read(source)
    return source.length([count_of(one, count_of_read) for one in source.pipelines])
