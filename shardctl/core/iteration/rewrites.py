"""What TensorFlow makes of a pipeline before it runs it, as far as that shows in an order.

Its rewrites (tensorflow/core/grappler/optimizers/data) drop stages that do nothing, let maps run in
parallel, make one op of a shuffle and the repeat right behind it, and read ahead at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from shardctl.core.stages.part import Stage
from shardctl.core.stages.pipelines import options_of
from shardctl.core.stages.stages import Pipeline, Prefetch, Repeat, Shuffle, WithOptions


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
        source=pipeline.source.mapped(_optimized),
        stages=tuple(
            stage.as_run.mapped(_optimized) for stage in pipeline.stages if not stage.is_noop
        ),
    )
