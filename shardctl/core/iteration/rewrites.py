"""What TensorFlow makes of a pipeline before it runs it, as far as that shows in an order.

Its rewrites (tensorflow/core/grappler/optimizers/data) drop stages that do nothing, let maps run in
parallel, make one op of a shuffle and the repeat right behind it, and read ahead at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from shardctl.core.stages.stages import (
    ChooseFromDatasets,
    Concatenate,
    Map,
    Pipeline,
    Prefetch,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shared,
    Shuffle,
    Skip,
    Source,
    Stage,
    Take,
    WithOptions,
    Zip,
)


def options_of(pipeline: Pipeline) -> WithOptions:
    """Return the options in force: those of all its stages and inputs, later ones first.

    >>> stages = (WithOptions(fusion=False), Repeat(), WithOptions(deterministic=True))
    >>> options_of(Pipeline(stages=stages)).fusion
    False
    """
    merged = WithOptions()
    for given in _options(pipeline):
        merged = WithOptions(
            deterministic=_later(given.deterministic, merged.deterministic),
            fusion=_later(given.fusion, merged.fusion),
            optimizations=_later(given.optimizations, merged.optimizations),
            warm_start=_later(given.warm_start, merged.warm_start),
        )
    return merged


def _later(one: bool | None, before: bool | None) -> bool | None:
    return before if one is None else one


def _options(pipeline: Pipeline) -> Iterator[WithOptions]:
    for one in inputs_of(pipeline.source):
        yield from _options(one)
    for stage in pipeline.stages:
        if isinstance(stage, WithOptions):
            yield stage
        elif isinstance(stage, Concatenate):
            yield from _options(stage.other)


def inputs_of(source: Source) -> tuple[Pipeline, ...]:
    """Return the pipelines that a source combines, in the order in which a script builds them."""
    if isinstance(source, ChooseFromDatasets):
        return (*source.inputs, source.choices)
    if isinstance(source, Shared):
        return (source.pipeline,)
    return source.inputs if isinstance(source, Zip | SampleFromDatasets) else ()


def kept_inputs(source: SampleFromDatasets) -> list[int]:
    """Return the inputs of which `sample_from_datasets` samples: those of a weight above 0.

    They are chosen before weights are rounded. Of one that is left it makes no mixture, and draws
    nothing (tensorflow/python/data/ops/sample_from_datasets_op.py).

    >>> inputs = (Pipeline(), Pipeline(), Pipeline())
    >>> kept_inputs(SampleFromDatasets(inputs=inputs, weights=(0.5, 0.0, 1e-60)))
    [0, 2]
    """
    weights = source.weights
    numbers = range(len(source.inputs))
    return [number for number in numbers if weights is None or weights[number] > 0]


@dataclass(frozen=True, kw_only=True)
class Rewrites:
    """Which rewrites are made.

    by_default: those of `apply_default_optimizations`: noop_elimination, map_parallelization and
        inject_prefetch.
    fusion: shuffle_and_repeat_fusion.
    """

    by_default: bool = True
    fusion: bool = True

    @classmethod
    def of(cls, options: WithOptions) -> Rewrites:
        """Return those that options leave on."""
        by_default = options.optimizations is not False
        fusion = by_default if options.fusion is None else options.fusion
        return cls(by_default=by_default, fusion=fusion)

    def fuses(self, stages: tuple[Stage, ...], index: int) -> bool:
        """Whether a stage is a repeat that becomes one op with the shuffle right before it.

        >>> stages = (Shuffle(buffer=9), Repeat(count=2), Repeat(count=2))
        >>> [Rewrites().fuses(stages, index) for index in range(3)]
        [False, True, False]
        """
        return (
            self.fusion
            and index > 0
            and isinstance(stages[index], Repeat)
            and isinstance(stages[index - 1], Shuffle)
        )


def optimized(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as it runs, but for the fusions, which have no call of their own.

    >>> stages = (Shuffle(buffer=9, seed=1), Take(count=-1), Repeat(count=1), Repeat(count=2))
    >>> [stage.name for stage in optimized(Pipeline(stages=stages)).stages]
    ['shuffle', 'repeat', 'prefetch']
    """
    if not Rewrites.of(options_of(pipeline)).by_default:
        return pipeline
    pipeline = _optimized(pipeline)
    # TensorFlow looks past options, and adds none behind a prefetch.
    last = next((one for one in pipeline.stages[::-1] if not isinstance(one, WithOptions)), None)
    if isinstance(last, Prefetch):
        return pipeline
    return replace(pipeline, stages=(*pipeline.stages, Prefetch()))


def _optimized(pipeline: Pipeline) -> Pipeline:
    return Pipeline(
        source=_optimized_source(pipeline.source),
        stages=tuple(map(_optimized_stage, (one for one in pipeline.stages if not is_noop(one)))),
    )


def _optimized_source(source: Source) -> Source:
    if isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        source = replace(source, inputs=tuple(map(_optimized, source.inputs)))
    if isinstance(source, ChooseFromDatasets):
        source = replace(source, choices=_optimized(source.choices))
    if isinstance(source, Shared):
        source = replace(source, pipeline=_optimized(source.pipeline))
    return source


def _optimized_stage(stage: Stage) -> Stage:
    if isinstance(stage, Map) and stage.calls is None:
        return Map(calls="auto", deterministic=True)
    if isinstance(stage, Concatenate):
        return Concatenate(other=_optimized(stage.other))
    return stage


def is_noop(stage: Stage) -> bool:
    """Whether noop_elimination drops a stage: `take(-1)`, `skip(0)`, `repeat(1)`, `shard(1, 0)`.

    It leaves `prefetch(0)` where it is.
    """
    match stage:
        case Take(count=count):
            return count < 0
        case Skip(count=count):
            return count == 0
        case Repeat(count=count):
            return count == 1
        case Shard(num_shards=num_shards):
            return num_shards == 1
    return False
