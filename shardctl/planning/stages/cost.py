"""How long does it take to follow a pipeline, before that is begun?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.stages.stages import (
    Batch,
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Pipeline,
    Read,
    Repeat,
    SampleFromDatasets,
    Shared,
    Shuffle,
    Source,
    Take,
    Zip,
)
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import UsageError

PER_SECOND = 1_000_000  # examples of a mixture or a filter, which are followed one by one
_MOST_READINGS = 1 << 22  # each an iterator with seeds of its own, a kilobyte

_LESS = phrase("end the stages earlier with take(N), or read a part as train[:1%]")


@dataclass(frozen=True, kw_only=True)
class _Extent:
    """At most how many examples a pipeline hands out, in elements of how many, and of what.

    readings: how often a dataset of it is read. counted: whether that takes a count of each
    example. seeded: whether each reading takes seeds.
    """

    examples: float
    width: float = 1
    readings: float = 1
    counted: bool = False
    seeded: bool = False


def progress_of(
    stages: Pipeline, sizes: Mapping[Read, int], pass_index: int = 0
) -> Progress | None:
    """Return what is told how far a pipeline is followed; None where counting takes no time.

    `sizes` are the examples of its readers.

    Raises:
        UsageError: it would take more than a day, or more memory than there is.
    """
    extent = _extent(stages, sizes)
    passes = pass_index + 1
    readings = extent.readings * passes
    if extent.seeded and readings != inf and readings > _MOST_READINGS:
        raise UsageError(
            phrase(
                "{stages} read a dataset {:,} times, each with seeds of its own, and more than "
                "{:,} times is refused; repeat it less often",
                int(readings),
                _MOST_READINGS,
            )
        )
    if extent.examples != inf and extent.examples > INT64_MAX:
        raise UsageError(phrase("{stages} repeat too often: positions go up to {}", INT64_MAX))
    total = extent.examples * passes if extent.counted and extent.examples != inf else 0
    if not total:
        return None
    return Progress(
        None, "examples of the stages", int(total), per_second=PER_SECOND, instead=_LESS
    )


def _extent(pipeline: Pipeline, sizes: Mapping[Read, int]) -> _Extent:
    extent = _source_extent(pipeline.source, sizes)
    examples, width = extent.examples, extent.width
    readings, counted, seeded = extent.readings, extent.counted, extent.seeded
    for stage in pipeline.stages:
        if isinstance(stage, Repeat):
            times = inf if stage.count is None else stage.count
            examples, readings = _times(examples, times), _times(readings, times)
        elif isinstance(stage, Batch):
            width *= stage.size
        elif isinstance(stage, Take) and stage.count >= 0:
            examples = min(examples, stage.count * width)
            # Of what has no end, as often as there are examples left of it at most.
            readings = min(readings, max(1.0, examples))
        elif isinstance(stage, Concatenate):
            other = _extent(stage.other, sizes)
            examples, width = examples + other.examples, max(width, other.width)
            readings, counted = max(readings, other.readings), counted or other.counted
            seeded |= other.seeded
        elif isinstance(stage, Shuffle):
            seeded |= stage.reshuffle is not False
        counted |= isinstance(stage, Filter)
    return _Extent(
        examples=examples, width=width, readings=readings, counted=counted, seeded=seeded
    )


def _source_extent(source: Source, sizes: Mapping[Read, int]) -> _Extent:
    if isinstance(source, Read):
        return _Extent(examples=sizes[source], seeded=bool(source.settings))
    if isinstance(source, Shared):
        return _extent(source.pipeline, sizes)
    if not isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        return _Extent(examples=inf)
    parts = [_extent(part, sizes) for part in source.inputs]
    return _Extent(
        examples=sum(part.examples for part in parts),
        width=sum(part.width for part in parts),
        readings=max(part.readings for part in parts),
        counted=not isinstance(source, Zip) or any(part.counted for part in parts),
        seeded=any(part.seeded for part in parts),
    )


def _times(number: float, times: float) -> float:
    return 0 if not number else number * times
