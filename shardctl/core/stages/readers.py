"""The readers of a pipeline, in the order in which a script writes them."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Pipeline,
    Read,
    SampleFromDatasets,
    Shared,
    Source,
    Stage,
    Zip,
)


def sources_of(pipeline: Pipeline, *, seen: set[str] | None = None) -> Iterator[Source]:
    """Yield the sources of examples, each as often as it is there; not those of choices.

    What is shared is there once; `seen` are the labels of it that came before.

    >>> one = Pipeline(source=Read(spec="train"))
    >>> two = Pipeline(source=Zip(inputs=(one, one)), stages=(Concatenate(other=one),))
    >>> len(list(sources_of(two)))
    3
    """
    source, seen = pipeline.source, set() if seen is None else seen
    if isinstance(source, Shared):
        if source.label not in seen:
            seen.add(source.label)
            yield from sources_of(source.pipeline, seen=seen)
    elif isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        for part in source.inputs:
            yield from sources_of(part, seen=seen)
    else:
        yield source
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            yield from sources_of(stage.other, seen=seen)


def parts_of(pipeline: Pipeline, *, choices: bool = False) -> Iterator[Source | Stage]:
    """Yield all sources and stages, a whole before its parts; those of choices if wanted."""
    source = pipeline.source
    yield source
    if isinstance(source, Shared):
        yield from parts_of(source.pipeline, choices=choices)
    if isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        for part in source.inputs:
            yield from parts_of(part, choices=choices)
    if choices and isinstance(source, ChooseFromDatasets):
        yield from parts_of(source.choices, choices=True)
    for stage in pipeline.stages:
        yield stage
        if isinstance(stage, Concatenate):
            yield from parts_of(stage.other, choices=choices)


def readers_of(pipeline: Pipeline) -> list[Read]:
    """Return the readers, each as often as it is there."""
    return [source for source in sources_of(pipeline) if isinstance(source, Read)]
