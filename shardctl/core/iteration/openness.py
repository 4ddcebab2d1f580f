"""Which stages leave an order open, whatever is played: by what they are, before anything runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.core.iteration.rewrites import inputs_of, kept_inputs, options_of
from shardctl.core.stages.stages import (
    Concatenate,
    Filter,
    Map,
    Opaque,
    Pipeline,
    Read,
    SampleFromDatasets,
    Shuffle,
    Source,
    Stage,
    WithOptions,
)

_SEEDLESS = "it has no seed, and so another order in each run: set its seed, or tf.random.set_seed"


@dataclass(frozen=True, kw_only=True)
class OpenStage:
    """A stage that leaves the order open, and why, a sentence without its full stop."""

    stage: Stage | Source
    reason: str


def open_stages(pipeline: Pipeline, *, global_seed: int | None = None) -> tuple[OpenStage, ...]:
    """Return the stages that leave the order open, in the order in which a script builds them.

    >>> stages = (Shuffle(buffer=9), Map(), Filter())
    >>> [each.stage.name for each in open_stages(Pipeline(stages=stages), global_seed=1)]
    ['filter']
    """
    options = options_of(pipeline)
    found = ((stage, open_reason(stage, options, global_seed)) for stage in _stages(pipeline))
    return tuple(OpenStage(stage=stage, reason=reason) for stage, reason in found if reason)


def _stages(pipeline: Pipeline) -> Iterator[Stage | Source]:
    for one in inputs_of(pipeline.source):
        yield from _stages(one)
    yield pipeline.source
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            yield from _stages(stage.other)
        yield stage


def open_reason(stage: Stage | Source, options: WithOptions, global_seed: int | None) -> str | None:
    """Return why a stage leaves the order open, None if it does not."""
    match stage:
        case Opaque():
            return stage.reason or "its order depends on more than metadata tells"
        case Filter(kept=None):
            return "how many elements pass depends on the data: name those that do with kept="
        case SampleFromDatasets() if len(kept_inputs(stage)) < 2:
            return None  # no mixture, but its one input
        case Shuffle(buffer=1):
            return None  # it hands out what it has just read, whatever its seeds are
        case Shuffle() | SampleFromDatasets():
            # Two zeros tell the kernel to take its seeds from the machine.
            if stage.seed == (0, 0) or (stage.seed is None and global_seed is None):
                return _SEEDLESS
        case Read(listed=True) if global_seed is None and _shuffles_anyhow(stage):
            return (
                "list_files shuffles the files without a seed, in another order in each run: set "
                "its seed, or shuffle=False, or tf.random.set_seed"
            )
        case Read() if options.deterministic is False:
            # TFDS decodes in parallel, as options decide (TFDS core/reader.py, Reader.read_files).
            return (
                "with_options(deterministic=False) hands out examples as their decoding ends, in "
                "another order each run"
            )
        case Map(calls=calls) if calls not in (None, 1):
            # Without num_parallel_calls TensorFlow keeps the order (map_parallelization.cc).
            deterministic = stage.deterministic
            if deterministic is False or (deterministic is None and options.deterministic is False):
                return "deterministic=False hands out what is ready first"
    return None


def _shuffles_anyhow(read: Read) -> bool:
    own = dict(read.settings)
    return bool(own.get("shuffle_files")) and "shuffle_seed" not in own
