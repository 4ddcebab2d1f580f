"""A pipeline with some of its parts changed, wherever in it they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import cast

from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Pipeline,
    Read,
    SampleFromDatasets,
    Shared,
    Shuffle,
    Source,
    Stage,
    Zip,
)


def with_changed(
    pipeline: Pipeline,
    *,
    read: Callable[[Read], Read] | None = None,
    kept: Callable[[str], str] | None = None,
    part: Callable[[Source | Stage], Source | Stage] | None = None,
) -> Pipeline:
    """Return a pipeline with every reader as `read` changes it; None leaves them as they are.

    kept: what becomes of the name of a file that says which examples pass a filter.
    part: what becomes of each source and stage, inner ones first.

    >>> pipeline = Pipeline(source=Read(spec="a"), stages=(Concatenate(other=Pipeline()),))
    >>> changed = with_changed(pipeline, read=lambda read: Read(spec="b"))
    >>> changed.source.spec, changed.stages[0].other.source.spec
    ('b', 'b')
    """

    def whole(pipeline: Pipeline) -> Pipeline:
        changed = source(pipeline.source)
        return Pipeline(source=changed, stages=tuple(map(stage, pipeline.stages)))

    def source(given: Source) -> Source:
        changed = inner(given)
        return changed if part is None else cast(Source, part(changed))

    def inner(given: Source) -> Source:
        match given:
            case Read():
                return given if read is None else read(given)
            case Shared():
                return replace(given, pipeline=whole(given.pipeline))
            case Zip() | SampleFromDatasets():
                return replace(given, inputs=tuple(map(whole, given.inputs)))
            case ChooseFromDatasets():
                inputs = tuple(map(whole, given.inputs))
                return replace(given, inputs=inputs, choices=whole(given.choices))
            case _:
                return given

    def stage(given: Stage) -> Stage:
        if isinstance(given, Concatenate):
            given = replace(given, other=whole(given.other))
        if isinstance(given, Filter) and given.kept is not None and kept is not None:
            given = replace(given, kept=kept(given.kept))
        return given if part is None else cast(Stage, part(given))

    return whole(pipeline)


def with_seeds(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline whose shuffles and mixtures without a seed have 1, 2, ... for theirs.

    What is shared is one object, whose seed is the same wherever it stands.

    >>> with_seeds(Pipeline(stages=(Shuffle(buffer=9), Shuffle(buffer=9, seed=7)))).stages
    (Shuffle(buffer=9, seed=1, reshuffle=None), Shuffle(buffer=9, seed=7, reshuffle=None))
    """
    seeds = count(1)
    shared: dict[str, Source | Stage] = {}

    def part(given: Source | Stage) -> Source | Stage:
        if isinstance(given, Shared):
            return shared.setdefault(given.label, given)
        if isinstance(given, Shuffle | SampleFromDatasets) and given.seed is None:
            return replace(given, seed=next(seeds))
        return given

    return with_changed(pipeline, part=part)
