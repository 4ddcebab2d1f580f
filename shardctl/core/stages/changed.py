"""A pipeline with some of its parts changed, wherever in it they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Filter,
    Pipeline,
    Read,
    SampleFromDatasets,
    Source,
    Stage,
    Zip,
)


def with_changed(
    pipeline: Pipeline,
    *,
    read: Callable[[Read], Read] | None = None,
    kept: Callable[[str], str] | None = None,
) -> Pipeline:
    """Return a pipeline with every reader as `read` changes it; None leaves them as they are.

    kept: what becomes of the name of a file that says which examples pass a filter.

    >>> pipeline = Pipeline(source=Read(spec="a"), stages=(Concatenate(other=Pipeline()),))
    >>> changed = with_changed(pipeline, read=lambda read: Read(spec="b"))
    >>> changed.source.spec, changed.stages[0].other.source.spec
    ('b', 'b')
    """

    def whole(part: Pipeline) -> Pipeline:
        return Pipeline(source=source(part.source), stages=tuple(map(stage, part.stages)))

    def source(part: Source) -> Source:
        match part:
            case Read():
                return part if read is None else read(part)
            case Zip() | SampleFromDatasets():
                return replace(part, inputs=tuple(map(whole, part.inputs)))
            case ChooseFromDatasets():
                inputs = tuple(map(whole, part.inputs))
                return replace(part, inputs=inputs, choices=whole(part.choices))
            case _:
                return part

    def stage(part: Stage) -> Stage:
        if isinstance(part, Concatenate):
            return replace(part, other=whole(part.other))
        if isinstance(part, Filter) and part.kept is not None and kept is not None:
            return replace(part, kept=kept(part.kept))
        return part

    return whole(pipeline)
