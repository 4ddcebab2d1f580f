"""The readers of a pipeline, in the order in which a script writes them."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Pipeline,
    Read,
    SampleFromDatasets,
    Source,
    Zip,
)


def sources_of(pipeline: Pipeline) -> Iterator[Source]:
    """Yield the sources of examples, each as often as it is there; not those of choices.

    >>> one = Pipeline(source=Read(spec="train"))
    >>> two = Pipeline(source=Zip(inputs=(one, one)), stages=(Concatenate(other=one),))
    >>> len(list(sources_of(two)))
    3
    """
    source = pipeline.source
    if isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        for part in source.inputs:
            yield from sources_of(part)
    else:
        yield source
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            yield from sources_of(stage.other)


def readers_of(pipeline: Pipeline) -> list[Read]:
    """Return the readers, each as often as it is there."""
    return [source for source in sources_of(pipeline) if isinstance(source, Read)]
