"""What was found: stages beside the operations that they are."""

from __future__ import annotations

from shardctl.stages.stages import Pipeline, Range
from shardctl.tfds.recognizing.walk import FoundPipeline, FoundStage


def test_readers_are_those_of_the_stages() -> None:
    source = Range(stop=3)
    stage = FoundStage(part=source, operations=())
    found = FoundPipeline(pipeline=Pipeline(source=source), stages=(stage,))
    assert found.readers == ()
