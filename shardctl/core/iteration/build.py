"""From the stages of a pipeline to the nodes that stand for its dataset objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatchmethod

from shardctl.core.iteration.batch import Batch, Unbatch
from shardctl.core.iteration.cache import Cache
from shardctl.core.iteration.generator import ScriptSeeds, SeedGenerator
from shardctl.core.iteration.iteration import Node
from shardctl.core.iteration.repeat import Concatenate, Repeat
from shardctl.core.iteration.shuffle import Shuffle
from shardctl.core.iteration.source import Source
from shardctl.core.iteration.strided import Strided
from shardctl.core.stages import stages as call
from shardctl.errors import UsageError

SourceOf = Callable[[call.Read], Node]


def build(pipeline: call.Pipeline, source: SourceOf, *, seeds: ScriptSeeds | None = None) -> Node:
    """Return the node of a whole pipeline; `source` makes that of a TFDS reader.

    seeds: what ops without a seed get, counted on from here in the order of the script; `source`
        may hold it too.

    >>> from shardctl.core.iteration.source import NOTHING
    >>> stages = (call.Skip(count=2), call.Batch(size=2))
    >>> pipeline = call.Pipeline(source=call.Range(stop=7), stages=stages)
    >>> build(pipeline, lambda read: NOTHING).cardinality
    3
    """
    return _Builder(source=source, seeds=seeds or ScriptSeeds()).node_of(pipeline)


@dataclass(frozen=True, kw_only=True)
class _Builder:
    source: SourceOf
    seeds: ScriptSeeds

    def node_of(self, pipeline: call.Pipeline) -> Node:
        node = self.source_node(pipeline.source)
        for stage in pipeline.stages:
            node = self.stage_node(stage, node)
        return node

    @singledispatchmethod
    def source_node(self, source: call.Source) -> Node:
        raise UsageError(f"{source.name} leaves the order open")

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
        raise UsageError(f"{stage.name} leaves the order open")

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
        return Strided(node, reads_ahead=None)

    @stage_node.register
    def _(self, stage: call.Prefetch, node: Node) -> Node:
        return Strided(node, reads_ahead=None if stage.size == "auto" else stage.size)

    @stage_node.register
    def _(self, stage: call.WithOptions, node: Node) -> Node:
        return Strided(node)

    @stage_node.register
    def _(self, stage: call.Concatenate, node: Node) -> Node:
        return Concatenate(node, self.node_of(stage.other))
