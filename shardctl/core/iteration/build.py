"""From the stages of a pipeline to the nodes that stand for its dataset objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

from shardctl.core.iteration.iteration import Node
from shardctl.core.iteration.nodes.batch import Batch, Unbatch
from shardctl.core.iteration.nodes.cache import Asserted, Cache
from shardctl.core.iteration.nodes.choosing import Chosen, Sampled
from shardctl.core.iteration.nodes.directed import Directed
from shardctl.core.iteration.nodes.filtered import Filter, Passing
from shardctl.core.iteration.nodes.repeat import Concatenate, Repeat
from shardctl.core.iteration.nodes.shuffle import Shuffle
from shardctl.core.iteration.nodes.source import Source
from shardctl.core.iteration.nodes.strided import Strided
from shardctl.core.iteration.nodes.zipped import Zip
from shardctl.core.mixture.weights import cumulative_of, uniform_cumulative
from shardctl.core.shuffle.generator import ScriptSeeds, SeedGenerator
from shardctl.core.stages import part as parts
from shardctl.core.stages import stages as call
from shardctl.core.stages.part import Stage
from shardctl.core.stages.pipelines import options_of
from shardctl.core.stages.stages import Pipeline, Prefetch, WithOptions
from shardctl.core.text import quoted
from shardctl.errors import UnpredictableOrderError, UsageError

SourceOf = Callable[[call.Read], Node]
PassingOf = Callable[[call.Filter], Passing]


def build(
    pipeline: call.Pipeline,
    source: SourceOf,
    *,
    seeds: ScriptSeeds | None = None,
    kept: PassingOf | None = None,
) -> Node:
    """Return the node of a whole pipeline as TensorFlow runs it (see `optimized`).

    Each part of a pipeline is a dataset object of its own, however alike two of them are; what a
    script uses twice is a source `Shared`, one object wherever its label stands.

    source: makes the node of a TFDS reader.
    seeds: what ops without a seed get, counted on from here in the order of the script; `source`
        may hold it too.
    kept: returns which codes pass a filter that has a list of those kept.

    >>> from shardctl.core.iteration.nodes.source import NOTHING
    >>> stages = (call.Skip(count=2), call.Batch(size=2))
    >>> pipeline = call.Pipeline(source=call.Range(stop=7), stages=stages)
    >>> build(pipeline, lambda read: NOTHING).cardinality
    3

    Raises:
        UnpredictableOrderError: a stage leaves the order open; a shuffle without a seed does so
            only where its order is asked for.
        UsageError: TensorFlow refuses the pipeline, or its batches differ in a way that hides rows.
    """
    options = options_of(pipeline)
    builder = Builder(
        source=source,
        seeds=seeds or ScriptSeeds(),
        options=options,
        rewrites=Rewrites.of(options),
        kept=kept,
    )
    return builder.node_of(optimized(pipeline))


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Makes the nodes of parts; those of one part more are registered as `stage_node`s here are."""

    source: SourceOf
    seeds: ScriptSeeds

    options: WithOptions
    rewrites: Rewrites
    kept: PassingOf | None
    shared: dict[str, tuple[call.Pipeline, Node]] = field(default_factory=dict)

    def node_of(self, pipeline: call.Pipeline) -> Node:
        self._check(pipeline.source)
        node = self.source_node(pipeline.source)
        for index, stage in enumerate(pipeline.stages):
            self._check(stage)
            if self._fuses(pipeline, index):
                assert isinstance(node, Shuffle)
                node = _fused(node, stage)
            else:
                node = self.stage_node(stage, node)
        return node

    def _fuses(self, pipeline: call.Pipeline, index: int) -> bool:
        """Whether a stage becomes one op with the one before, which may be that of its source."""
        if index:
            return self.rewrites.fuses(pipeline.stages, index)
        before = _last_stage(pipeline.source)
        return before is not None and self.rewrites.fuses((before, pipeline.stages[0]), 1)

    def _check(self, stage: parts.Part) -> None:
        if isinstance(stage, call.Shuffle | call.SampleFromDatasets):
            return
        reason = stage.why_open(self.options.deterministic, self.seeds.global_seed)
        if reason is not None:
            raise UnpredictableOrderError(f"{stage.called} leaves the order open: {reason}")

    @singledispatchmethod
    def source_node(self, source: parts.Source) -> Node:
        raise UsageError(f"no order of {source.name}")

    @source_node.register
    def _(self, source: call.Read) -> Node:
        return self.source(source)

    @source_node.register
    def _(self, source: call.Range) -> Node:
        return Source(range(source.stop))

    @source_node.register
    def _(self, source: call.Values) -> Node:
        return Source(source.values)

    @source_node.register
    def _(self, source: call.Zip) -> Node:
        return Zip([self.node_of(one) for one in source.inputs])

    @source_node.register
    def _(self, source: call.SampleFromDatasets) -> Node:
        inputs = [self.node_of(one) for one in source.inputs]
        # Those of weight 0 are built too, and left out.
        numbers = source.kept_inputs
        if not numbers:
            return Strided(inputs[0], limit=0)
        if len(numbers) == 1:
            return inputs[numbers[0]]
        if source.weights is None:
            cumulative = uniform_cumulative(len(inputs))
        else:
            weights = [source.weights[number] for number in numbers]
            cumulative = cumulative_of(weights, source.weights_dtype)
        generator = SeedGenerator(
            self.seeds.kernel(source.seed), source.rerandomize is True, stage=source.name
        )
        choices = Sampled(generator, cumulative)
        data = [inputs[number] for number in numbers]
        return Directed(data, choices, stop_on_empty=source.stop_on_empty)

    @source_node.register
    def _(self, source: call.ChooseFromDatasets) -> Node:
        inputs = [self.node_of(one) for one in source.inputs]
        _check_choices(source.choices)
        choices = Chosen(self.node_of(source.choices))
        return Directed(inputs, choices, stop_on_empty=source.stop_on_empty)

    @source_node.register
    def _(self, source: call.Shared) -> Node:
        known = self.shared.get(source.label)
        if known is None:
            known = self.shared[source.label] = source.pipeline, self.node_of(source.pipeline)
        elif known[0] != source.pipeline:
            raise UsageError(
                f"shared: two different pipelines are called {quoted(source.label)}; one label is "
                "one dataset object"
            )
        return known[1]

    @singledispatchmethod
    def stage_node(self, stage: parts.Stage, node: Node) -> Node:
        raise UsageError(f"no order of {stage.name}")

    @stage_node.register
    def _(self, stage: call.Shuffle, node: Node) -> Node:
        text = f"shuffle({stage.buffer})"
        generator = SeedGenerator(self.seeds.kernel(stage.seed), stage.reshuffle, stage=text)
        return Shuffle(node, stage.buffer, generator)

    @stage_node.register
    def _(self, stage: call.Repeat, node: Node) -> Node:
        return Repeat(node, stage.count)

    @stage_node.register
    def _(self, stage: call.Batch, node: Node) -> Node:
        return Batch(node, stage.size, drop_remainder=stage.drop_remainder)

    @stage_node.register
    def _(self, stage: call.Unbatch, node: Node) -> Node:
        return Unbatch(node)

    @stage_node.register
    def _(self, stage: call.Shard, node: Node) -> Node:
        return Strided(node, first=stage.index, stride=stage.num_shards)

    @stage_node.register
    def _(self, stage: call.Take, node: Node) -> Node:
        return Strided(node, limit=None if stage.count < 0 else stage.count)

    @stage_node.register
    def _(self, stage: call.Skip, node: Node) -> Node:
        if stage.count < 0:
            return Strided(node, first=1, limit=0)
        return Strided(node, first=stage.count)

    @stage_node.register
    def _(self, stage: call.Cache, node: Node) -> Node:
        return Cache(node)

    @stage_node.register
    def _(self, stage: call.Map, node: Node) -> Node:
        return self._read_ahead(node, 0 if stage.calls is None else stage.calls)

    @stage_node.register
    def _(self, stage: call.Prefetch, node: Node) -> Node:
        return self._read_ahead(node, stage.size, has_prefetch=True)

    @stage_node.register
    def _(self, stage: call.AssertCardinality, node: Node) -> Node:
        return Asserted(node, stage.count)

    @stage_node.register
    def _(self, stage: call.WithOptions, node: Node) -> Node:
        return Strided(node)

    @stage_node.register
    def _(self, stage: call.Concatenate, node: Node) -> Node:
        return Concatenate(node, self.node_of(stage.other))

    @stage_node.register
    def _(self, stage: call.Filter, node: Node) -> Node:
        if self.kept is None:
            raise UnpredictableOrderError(
                f"{stage.name}: nothing here says which examples are kept"
            )
        return Filter(node, self.kept(stage))

    def _read_ahead(self, node: Node, count: int | str, *, has_prefetch: bool = False) -> Node:
        return Strided(
            node,
            reads_ahead=count if isinstance(count, int) else None,
            warm=self.options.warm_start is True,
            has_prefetch=has_prefetch,
        )


def _last_stage(source: parts.Source) -> parts.Stage | None:
    """Return the last stage of what a source is, where it is but one other pipeline."""
    if isinstance(source, call.Shared):
        pipeline = source.pipeline
    elif isinstance(source, call.SampleFromDatasets) and len(source.kept_inputs) == 1:
        # TensorFlow returns the one input itself.
        pipeline = source.inputs[source.kept_inputs[0]]
    else:
        return None
    return pipeline.stages[-1] if pipeline.stages else _last_stage(pipeline.source)


def _check_choices(choices: call.Pipeline) -> None:
    """Refuse choices that are no numbers of the script itself: those of examples are data."""
    source = choices.source
    if isinstance(source, call.Read | call.Zip):
        raise UsageError(
            f"choose_from_datasets: its choices are those of {source.name}, whose elements are "
            "data; range(n) and values([..]) say numbers"
        )
    others = [stage.other for stage in choices.stages if isinstance(stage, call.Concatenate)]
    for pipeline in (*source.pipelines, *others):
        _check_choices(pipeline)


def _fused(shuffle: Shuffle, repeat: parts.Stage) -> Node:
    assert isinstance(repeat, call.Repeat)
    return Shuffle(shuffle.child, shuffle.buffer, shuffle.generator, repeat.count)


# What TensorFlow makes of a pipeline before it runs it, as far as that shows in an order.


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

        >>> stages = (call.Shuffle(buffer=9), call.Repeat(count=2), call.Repeat(count=2))
        >>> [Rewrites().fuses(stages, index) for index in range(3)]
        [False, True, False]
        """
        return (
            self.fusion
            and index > 0
            and isinstance(stages[index], call.Repeat)
            and isinstance(stages[index - 1], call.Shuffle)
        )


def optimized(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as it runs, but for the fusions, which have no call of their own.

    >>> shuffle = call.Shuffle(buffer=9, seed=1)
    >>> stages = (shuffle, call.Take(count=-1), call.Repeat(count=1), call.Repeat(count=2))
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
