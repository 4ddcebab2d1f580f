"""From the stages of a pipeline to the nodes, one for each `tf.data.Dataset` object.

Also what TensorFlow's optimizer changes before a pipeline runs, as far as an order shows it, and
the iterator of a later pass.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from shardctl.base.text import quoted
from shardctl.base.tfds_rules import LONGEST_RANGE, Loop
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.batch import Batch, Unbatch, Windows
from shardctl.iteration.combinations import Chosen, Directed, Interleaved, Sampled, Zip
from shardctl.iteration.iteration import EVERYTHING, Iteration, Node, Source
from shardctl.iteration.regrouped import Kept, Regrouped
from shardctl.iteration.repeat import Concatenate, Repeat
from shardctl.iteration.selection import Asserted, Cache, Strided
from shardctl.iteration.shuffle import Shuffle
from shardctl.stages import part as parts
from shardctl.stages import stages as call
from shardctl.stages.part import Stage
from shardctl.stages.pipelines import as_built, options_of
from shardctl.stages.stages import Pipeline, Prefetch, WithOptions
from shardctl.tfdata.mixture import cumulative_of, uniform_cumulative
from shardctl.tfdata.shuffle_seeds import ScriptSeeds, SeedGenerator

SourceOf = Callable[[Any], Node]  # of a `Read`, or of `Padding` beside one
KeptOf = Callable[[call.ByData], Kept]

_MOST_PARTS = 1_024  # stages and sources; the stack of C has room for them


def build(
    pipeline: call.Pipeline,
    source: SourceOf,
    *,
    seeds: ScriptSeeds | None = None,
    kept: KeptOf | None = None,
) -> Node:
    """Return the node of a whole pipeline as TensorFlow runs it (see `optimized`).

    Each part of a pipeline is a dataset object of its own, however alike two of them are; what a
    script uses twice is a source `Shared`, one object wherever its label stands.

    source: makes the node of a TFDS reader.
    seeds: what ops without a seed get, counted on from here in the order of the script; `source`
        may hold it too.
    kept: returns what a stage does to each example, where a file says it.

    >>> from shardctl.iteration.iteration import NOTHING
    >>> stages = (call.Skip(count=2), call.Batch(size=2))
    >>> pipeline = call.Pipeline(source=call.Range(stop=7), stages=stages)
    >>> build(pipeline, lambda read: NOTHING).cardinality
    3

    Raises:
        UnpredictableOrderError: a stage is nondeterministic; a shuffle without a seed is refused
            only where its order is asked for.
        UsageError: TensorFlow refuses the pipeline, or its batches differ in a way that hides rows.
    """
    num_parts = sum(1 for _ in as_built(pipeline))
    if num_parts > _MOST_PARTS:
        raise UsageError(
            f"a pipeline of {num_parts:,} stages: at most {_MOST_PARTS:,} are followed"
        )
    if num_parts > 100:
        _make_room(num_parts)
    options = options_of(pipeline)
    # Options count for the whole pipeline, wherever it sets them, so they are gathered first.
    builder = Builder(source=source, seeds=seeds or ScriptSeeds(), options=options, kept=kept)
    return builder.node_of(optimized(pipeline))


def _make_room(num_parts: int) -> None:
    """Let iterators ask the ones before them, each up to eight functions deep."""
    with suppress(ImportError):  # there is no `resource` on Windows
        import resource

        # A shuffle takes 4 kB of the stack at most; -1 is no limit.
        if not 0 <= resource.getrlimit(resource.RLIMIT_STACK)[0] < 8_000_000:
            sys.setrecursionlimit(max(sys.getrecursionlimit(), 1_000 + 10 * num_parts))


@dataclass(frozen=True, kw_only=True)
class Builder:
    """Makes the nodes of parts, each by its function in `NODES`."""

    source: SourceOf
    seeds: ScriptSeeds
    options: WithOptions
    kept: KeptOf | None
    shared: dict[str, tuple[call.Pipeline, Node]] = field(default_factory=dict)

    def node_of(self, pipeline: call.Pipeline) -> Node:
        node = self._made(pipeline.source)
        before = _last_stage(pipeline.source)  # which a first stage may become one op with
        for stage in pipeline.stages:
            if before is not None and fuses(before, stage, self.options):
                assert isinstance(node, Shuffle)
                assert isinstance(stage, call.Repeat)
                # The same generator: the fused op takes its seeds from the shuffle that it
                # replaces.
                node = Shuffle(node.child, node.buffer, node.generator, stage.count)
            else:
                node = self._made(stage, node)
            before = stage
        return node

    def _made(self, part: parts.Part, *node: Node) -> Node:
        # A shuffle without a seed is refused where its order is asked for.
        if not isinstance(part, call.Shuffle | call.SampleFromDatasets):
            reason = part.why_open(self.options.deterministic, self.seeds.global_seed)
            if reason is not None:
                raise UnpredictableOrderError(
                    f"{part.called} makes the order nondeterministic: {reason}"
                )
        if type(part) not in NODES:
            raise UsageError(f"no order of {part.name}")
        return NODES[type(part)](self, part, *node)

    def read_ahead(self, node: Node, count: int | str, *, has_prefetch: bool = False) -> Node:
        return Strided(
            node,
            reads_ahead=count if isinstance(count, int) else None,
            warm=self.options.warm_start is True,
            has_prefetch=has_prefetch,
        )


def _sampled(self: Builder, source: call.SampleFromDatasets) -> Node:
    inputs = [self.node_of(one) for one in source.inputs]
    # Those of weight 0 are built too, and left out.
    numbers = source.kept_inputs
    if not numbers:
        return Strided(inputs[0], limit=0)
    if len(numbers) == 1:
        return inputs[numbers[0]]
    # Without weights all inputs are alike: their running totals are whole numbers, which no
    # rounding changes.
    if source.weights is None:
        cumulative = uniform_cumulative(len(inputs))
    else:
        weights = [source.weights[number] for number in numbers]
        cumulative = cumulative_of(weights, source.weights_dtype)
    kernel = self.seeds.kernel(source.seed)
    generator = SeedGenerator(kernel, source.rerandomize is True, stage=source.name)
    data = [inputs[number] for number in numbers]
    return Directed(data, Sampled(generator, cumulative), stop_on_empty=source.stop_on_empty)


def _interleaved(self: Builder, source: call.InterleaveDatasets) -> Node:
    inputs = [self.node_of(one) for one in source.inputs]
    _check_choices(source.choices)
    order = self.node_of(source.choices)
    if source.is_legacy and source.block_length > 1 < source.cycle_length:
        # What comes after the last elements of an input of less than a block is a matter of which
        # thread is ready first (parallel_interleave_dataset_op.cc, of experimental).
        lengths = [node.num_elements for node in inputs]
        if any(length < 0 or length % source.block_length for length in lengths):
            raise UnpredictableOrderError(
                f"parallel_interleave with block_length={source.block_length}: where a dataset "
                "ends within a block, timing decides what comes next; use ds.interleave"
            )
    # Threads take the next datasets before these are needed.
    chosen = order if source.calls is None else self.read_ahead(order, "auto")
    return Interleaved(inputs, Chosen(chosen), source.cycle_length, source.block_length)


def _chosen(self: Builder, source: call.ChooseFromDatasets) -> Node:
    inputs = [self.node_of(one) for one in source.inputs]
    _check_choices(source.choices)
    choices = Chosen(self.node_of(source.choices))
    return Directed(inputs, choices, stop_on_empty=source.stop_on_empty)


def _shared(self: Builder, source: call.Shared) -> Node:
    known = self.shared.get(source.label)
    if known is None:
        known = self.shared[source.label] = source.pipeline, self.node_of(source.pipeline)
    elif known[0] != source.pipeline:
        raise UsageError(
            f"shared: two different pipelines are called {quoted(source.label)}; one label is "
            "one dataset object"
        )
    return known[1]


def _shuffled(self: Builder, stage: call.Shuffle, node: Node) -> Node:
    kernel = self.seeds.kernel(stage.seed)
    generator = SeedGenerator(kernel, stage.reshuffle, stage=f"shuffle({stage.buffer})")
    return Shuffle(node, stage.buffer, generator)


def _skipped(self: Builder, stage: call.Skip, node: Node) -> Node:
    # skip(-1) skips everything; `first=1` keeps it apart from take(0), see
    # `Strided.cardinality_of`.
    return Strided(node, first=1, limit=0) if stage.count < 0 else Strided(node, first=stage.count)


def _by_data(self: Builder, stage: call.ByData, node: Node) -> Node:
    if self.kept is None:
        raise UnpredictableOrderError(f"{stage.name}: nothing here says what it does to an example")
    return Regrouped(node, self.kept(stage), stage.name)


# What makes the node of a part: of the builder, the part and, of a stage, the node before it.
NODES: dict[type[parts.Part], Callable[..., Node]] = {
    call.Read: lambda self, source: self.source(source),
    call.Padding: lambda self, source: self.source(source),
    **dict.fromkeys((call.Range, call.Generator), lambda self, source: Source(range(source.stop))),
    call.Counter: lambda self, source: Source(range(LONGEST_RANGE)),
    call.Values: lambda self, source: Source(source.values),
    call.Zip: lambda self, source: Zip([self.node_of(one) for one in source.inputs]),
    call.SampleFromDatasets: _sampled,
    call.ChooseFromDatasets: _chosen,
    call.InterleaveDatasets: _interleaved,
    call.Shared: _shared,
    call.Shuffle: _shuffled,
    call.Repeat: lambda self, stage, node: Repeat(node, stage.count),
    call.Batch: lambda self, stage, node: Batch(
        node, stage.size, drop_remainder=stage.drop_remainder
    ),
    call.Window: lambda self, stage, node: Windows(node, stage),
    call.Unbatch: lambda self, stage, node: Unbatch(node),
    call.Shard: lambda self, stage, node: Strided(node, first=stage.index, stride=stage.num_shards),
    call.Take: lambda self, stage, node: Strided(
        node, limit=None if stage.count < 0 else stage.count
    ),
    call.Skip: _skipped,
    call.Cache: lambda self, stage, node: Cache(node),
    call.Map: lambda self, stage, node: self.read_ahead(node, stage.calls or 0),
    call.Scan: lambda self, stage, node: Strided(node),
    call.Prefetch: lambda self, stage, node: self.read_ahead(node, stage.size, has_prefetch=True),
    call.AssertCardinality: lambda self, stage, node: Asserted(node, stage.count),
    call.WithOptions: lambda self, stage, node: Strided(node),
    call.Concatenate: lambda self, stage, node: Concatenate(node, self.node_of(stage.other)),
    **dict.fromkeys(call.ByData.__subclasses__(), _by_data),
}


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


# What TensorFlow makes of a pipeline before it runs it, as far as that shows in an order: what
# `apply_default_optimizations` does (noop_elimination, map_parallelization, inject_prefetch), and
# shuffle_and_repeat_fusion.


def fuses(before: Stage, stage: Stage, options: WithOptions) -> bool:
    """Return whether a stage is a repeat that becomes one op with the shuffle right before it.

    >>> fuses(call.Shuffle(buffer=9), call.Repeat(count=2), WithOptions())
    True
    >>> fuses(call.Repeat(count=2), call.Repeat(count=2), WithOptions())
    False
    """
    # Fusion is on by default; its own option counts before `apply_default_optimizations`.
    fusion = options.optimizations is not False if options.fusion is None else options.fusion
    return fusion and isinstance(before, call.Shuffle) and isinstance(stage, call.Repeat)


def optimized(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline as it runs, but for the fusions, which have no call of their own.

    >>> shuffle = call.Shuffle(buffer=9, seed=1)
    >>> stages = (shuffle, call.Take(count=-1), call.Repeat(count=1), call.Repeat(count=2))
    >>> [stage.name for stage in optimized(Pipeline(stages=stages)).stages]
    ['shuffle', 'repeat', 'prefetch']
    """
    if options_of(pipeline).optimizations is False:
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


def iteration_of_pass(node: Node, pass_index: int = 0, *, loop: Loop = "python") -> Iteration:
    """Return the iterator of a pass after the earlier ones were read, as far as the loop reads.

    node: a dataset object that has not been iterated yet.
    loop: "keras-fit" is `fit` or `evaluate` without steps_per_epoch, each epoch a pass. Of so many
        steps as the cardinality says Keras never asks for the end, and then makes an iterator that
        it drops. Without a cardinality it reads the first pass to its end, which costs it a step,
        and takes that number for all others (keras/src/trainers/epoch_iterator.py).

    >>> from shardctl.iteration.iteration import Source
    >>> iteration_of_pass(Source(range(3)), 5).pull(2)
    2

    Raises:
        UsageError: `pass_index` is below 0, or the passes before have no end.
    """
    if pass_index < 0:
        raise UsageError(f"pass {pass_index}: passes count from 0")
    if pass_index and node.is_infinite:
        raise UsageError("a pass that repeats forever has no end, so no pass follows it")
    # Nothing outlives an iterator, so the earlier passes leave no trace.
    if node.is_fixed:
        return node.iterate()
    num_steps = node.cardinality if loop == "keras-fit" and node.cardinality > 0 else None
    # The earlier passes are read in counts only, so that generators and caches are as they leave
    # them.
    for _ in range(pass_index):
        iteration = _reading(node, num_steps)
        iteration.pull(EVERYTHING)
        if iteration.pulled == num_steps:
            node.iterate().abandon()
        # Keras takes the steps of the first pass for all others, the one that met the end included.
        elif loop == "keras-fit" and node.cardinality < 0 and num_steps is None:
            num_steps = iteration.pulled + 1
    return _reading(node, num_steps)


def _reading(node: Node, num_steps: int | None) -> Iteration:
    """Return an iterator that is given up after so many steps.

    The prefetch that TensorFlow adds at the end of a pipeline may have asked for what follows.
    """
    return node.iterate() if num_steps is None else Strided(node, limit=num_steps).iterate()
