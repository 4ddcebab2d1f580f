"""What was found of a pipeline: its stages as they are, each beside the operation that it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from shardctl.core.stages.stages import Pipeline, Source, Stage
from shardctl.tfds.recognizing.graph import Operation
from shardctl.tfds.recognizing.reader import FoundReader


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundStage:
    """A stage or source of the pipeline, the operations that it stands for, and remarks.

    level: how deep it is among the inputs of combinations, from 0.
    reader: the reader that it is, None for all else.
    removed: whether TensorFlow's optimizer takes it out, so that it is no stage of the pipeline.
    """

    part: Stage | Source
    operations: tuple[Operation, ...]
    level: int = 0
    reader: FoundReader | None = None
    removed: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundPipeline:
    """A pipeline whose seeds are pairs of kernels, with the stages in their order.

    The readers are `Read` sources without a spec, each the `part` of a found stage with a reader.
    """

    pipeline: Pipeline
    stages: tuple[FoundStage, ...]
    options: Any = field(repr=False)

    @property
    def readers(self) -> tuple[FoundReader, ...]:
        """The readers, in the order of the stages."""
        return tuple(stage.reader for stage in self.stages if stage.reader is not None)
