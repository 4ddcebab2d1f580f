"""From the stages of a pipeline to the nodes that stand for its dataset objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatchmethod

from shardctl.core.iteration.generator import ScriptSeeds, SeedGenerator
from shardctl.core.iteration.iteration import Node
from shardctl.core.iteration.nodes.batch import Batch, Unbatch
from shardctl.core.iteration.nodes.cache import Cache
from shardctl.core.iteration.nodes.repeat import Concatenate, Repeat
from shardctl.core.iteration.nodes.shuffle import Shuffle
from shardctl.core.iteration.nodes.source import Source
from shardctl.core.iteration.nodes.strided import Strided
from shardctl.core.iteration.openness import open_reason
from shardctl.core.iteration.rewrites import Rewrites, optimized, options_of
from shardctl.core.stages import stages as call
from shardctl.core.stages.stages import WithOptions
from shardctl.errors import UnpredictableOrderError, UsageError

SourceOf = Callable[[call.Read], Node]


def build(pipeline: call.Pipeline, source: SourceOf, *, seeds: ScriptSeeds | None = None) -> Node:
    """Return the node of a whole pipeline as TensorFlow runs it (see `optimized`).

    source: makes the node of a TFDS reader.

    seeds: what ops without a seed get, counted on from here in the order of the script; `source`
        may hold it too.

    >>> from shardctl.core.iteration.nodes.source import NOTHING
    >>> stages = (call.Skip(count=2), call.Batch(size=2))
    >>> pipeline = call.Pipeline(source=call.Range(stop=7), stages=stages)
    >>> build(pipeline, lambda read: NOTHING).cardinality
    3

    Raises:
        UnpredictableOrderError: a stage leaves the order open; a shuffle without a seed does so
            only where its order is asked for.
        UsageError: TensorFlow refuses the pipeline.
    """
    options = options_of(pipeline)
    builder = _Builder(
        source=source,
        seeds=seeds or ScriptSeeds(),
        options=options,
        rewrites=Rewrites.of(options),
    )
    return builder.node_of(optimized(pipeline))


@dataclass(frozen=True, kw_only=True)
class _Builder:
    source: SourceOf
    seeds: ScriptSeeds

    options: WithOptions
    rewrites: Rewrites

    def node_of(self, pipeline: call.Pipeline) -> Node:
        self._check(pipeline.source)
        node = self.source_node(pipeline.source)
        for index, stage in enumerate(pipeline.stages):
            self._check(stage)
            if self.rewrites.fuses(pipeline.stages, index):
                assert isinstance(node, Shuffle)
                node = _fused(node, stage)
            else:
                node = self.stage_node(stage, node)
        return node

    def _check(self, stage: call.Stage | call.Source) -> None:
        if isinstance(stage, call.Shuffle | call.SampleFromDatasets):
            return
        reason = open_reason(stage, self.options, self.seeds.global_seed)
        if reason is not None:
            name = stage.call if isinstance(stage, call.Opaque) else stage.name
            raise UnpredictableOrderError(f"{name} leaves the order open: {reason}")

    @singledispatchmethod
    def source_node(self, source: call.Source) -> Node:
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

    @singledispatchmethod
    def stage_node(self, stage: call.Stage, node: Node) -> Node:
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
        return Strided(node, limit=0) if stage.count < 0 else Strided(node, first=stage.count)

    @stage_node.register
    def _(self, stage: call.Cache, node: Node) -> Node:
        return Cache(node)

    @stage_node.register
    def _(self, stage: call.Map, node: Node) -> Node:
        return self._read_ahead(node, 0 if stage.calls is None else stage.calls)

    @stage_node.register
    def _(self, stage: call.Prefetch, node: Node) -> Node:
        return self._read_ahead(node, stage.size)

    @stage_node.register
    def _(self, stage: call.WithOptions, node: Node) -> Node:
        return Strided(node)

    @stage_node.register
    def _(self, stage: call.Concatenate, node: Node) -> Node:
        return Concatenate(node, self.node_of(stage.other))

    def _read_ahead(self, node: Node, count: int | str) -> Node:
        warm = self.options.warm_start is True
        return Strided(node, reads_ahead=count if isinstance(count, int) else None, warm=warm)


def _fused(shuffle: Shuffle, repeat: call.Stage) -> Node:
    assert isinstance(repeat, call.Repeat)
    count = repeat.count
    if count is not None and (count == 0 or count < -1):
        raise UsageError(
            f"TensorFlow refuses repeat({count}) right behind a shuffle: its count must be above "
            "0, or -1"
        )
    if count == -1:
        count = None
    return Shuffle(shuffle.child, shuffle.buffer, shuffle.generator, count)
