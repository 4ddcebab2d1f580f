"""Where does a pipeline with stages resume?

What only cuts the reader's order, maps it and makes batches of it goes on by file instructions. All
else is continued by shardctl.tfds, which builds the stages again and goes on behind what they have
handed out; the plan says how far that was, in all and of each source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

import numpy as np

from shardctl.core.hosts.host import Host
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.order.staged import StagedOrder
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import (
    WITHOUT_END,
    AfterRead,
    BatchCall,
    ConsumedSource,
    ResumePlan,
    TakeCall,
)
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages.part import Part, Stage
from shardctl.core.stages.pipelines import parts_of, readers_of, with_changed
from shardctl.core.stages.stages import (
    AssertCardinality,
    Batch,
    Cache,
    ChooseFromDatasets,
    Concatenate,
    Map,
    Pipeline,
    Prefetch,
    Read,
    Repeat,
    SampleFromDatasets,
    Shard,
    Shared,
    Skip,
    Take,
    Unbatch,
    WithOptions,
    Zip,
)
from shardctl.core.stages.text import text_of_part
from shardctl.errors import UsageError
from shardctl.planning.order import PlannedOrder
from shardctl.planning.resume.rest_of_epoch import (
    consumed_examples,
    epoch_at,
    plan_of,
    reader_state,
    rest_after,
    resume_point,
    within_a_batch,
)

_COMPARED = 64  # examples at both ends of a rest that are looked up in the pipeline's own order


def resume_staged(
    planned: PlannedOrder, *, consumed: int | None = None, steps: int | None = None
) -> ResumePlan:
    """Return how a pipeline with stages resumes after `consumed` examples, or `steps` elements.

    Raises:
        UsageError: past its end, not one of the two, or steps of what makes no batches.
    """
    order = planned.order
    assert isinstance(order, StagedOrder)
    consumed = consumed_examples(order, consumed=consumed, steps=steps)
    total = order.num_examples
    left = WITHOUT_END if order.is_endless else total - consumed
    plan = plan_of(
        planned,
        order.settings,
        consumed=consumed,
        epoch=epoch_at(order, consumed),
        remaining=left,
        remaining_total=left,
        continued_by=order.continued_by,
        sources=_sources(order, consumed),
        warnings=planned.warnings,
    )
    plan = _by_instructions(order, plan) or plan
    by = plan.continued_by
    return replace(plan, warnings=(*plan.warnings, *within_a_batch(order, consumed, by)))


def _sources(order: StagedOrder, consumed: int) -> tuple[ConsumedSource, ...]:
    readers = readers_of(order.stages)
    counts = [consumed] if len(readers) == 1 else order.consumed(consumed)
    return tuple(
        ConsumedSource(data=read.data, spec=read.spec, consumed=count)
        for read, count in zip(readers, counts, strict=True)
    )


def _by_instructions(order: StagedOrder, plan: ResumePlan) -> ResumePlan | None:
    """Return the plan with file instructions, None where these alone do not continue it."""
    found = _cut_of_reader(order)
    if found is None:
        return None
    first, batch = found
    reader, remaining = _reader_of(order, first + order.num_examples), plan.remaining
    start = min(first + plan.consumed, reader.num_examples)
    # Both ends of the rest are what the pipeline hands out there.
    head = np.arange(min(remaining, _COMPARED))
    places = np.unique(np.concatenate([head, remaining - 1 - head]))
    if not np.array_equal(order.codes_at(plan.consumed + places), reader.codes_at(start + places)):
        return None
    point = resume_point(reader, start)
    reading = reader.reading(point.stream)
    left = rest_after(reading, start if remaining else reading.num_examples, reader.reads.take)
    calls: list[AfterRead] = []
    if start + remaining < reading.num_examples:
        calls.append(TakeCall(count=remaining))
    if batch is not None:
        calls.append(BatchCall(batch_size=batch.size, drop_remainder=batch.drop_remainder))
    rest = replace(left.of(reader.reads), files=order.dataset)
    return replace(
        plan,
        instructions=rest if remaining else plan.instructions,
        reader_state=reader_state(reader, point.stream, start),
        continued_by="file_instructions",
        after_read=tuple(calls),
    )


def _cut_of_reader(order: StagedOrder) -> tuple[int, Batch | None] | None:
    """Return what the stages skip of the reader's order, and the batch at the end of them.

    None where they are more than cuts, maps and one batch, or read another pass of shuffled files.
    """
    settings, source, stages = order.settings, order.stages.source, order.stages.stages
    if not isinstance(source, Read) or source.data is not None or source.settings:
        return None
    if order.is_endless or settings.loop != "python" or settings.host_mode.reads_all:
        return None
    shuffled = settings.shuffles_files and settings.reshuffle is not False
    if settings.shuffles_files and settings.shuffle_seed is None:
        return None
    if settings.pass_index and (shuffled or any(isinstance(s, Cache) for s in stages)):
        return None
    reader = next(iter(order.readers.values()))
    return _cut(stages, None if settings.is_endless else reader.epoch_size, order.num_examples)


def _cut(
    stages: Sequence[Stage], size: int | None, num_examples: int
) -> tuple[int, Batch | None] | None:
    """Follow a stretch [first, stop) of a reader's order through stages that only cut it."""
    first, stop, batch = 0, size, None
    for stage in stages:
        width = 1 if batch is None else batch.size
        if isinstance(stage, Skip):
            if stage.count < 0:
                stop = first
            first += max(stage.count, 0) * width
        elif isinstance(stage, Take):
            end = first + stage.count * width
            if stage.count >= 0:
                stop = end if stop is None else min(stop, end)
        elif isinstance(stage, Batch):
            if batch is not None:
                return None
            batch = stage
            if stop is not None and stage.drop_remainder:
                stop -= max(stop - first, 0) % stage.size
        elif isinstance(stage, Unbatch):
            batch = None
        elif not _changes_nothing(stage):
            return None
    if stop is None or max(stop - first, 0) != num_examples:
        return None
    return first, batch


def _changes_nothing(stage: Stage) -> bool:
    if isinstance(stage, Repeat):
        return stage.count == 1
    if isinstance(stage, Shard):
        return stage.num_shards == 1
    return isinstance(stage, Map | Prefetch | AssertCardinality | WithOptions | Cache)


def _reader_of(order: StagedOrder, stop: int) -> ReaderOrder:
    """Return the order of the reader alone, of files that repeat as far as `stop`."""
    reader = next(iter(order.readers.values()))
    size = reader.epoch_size
    if not reader.is_one_stream or not size:
        return reader
    settings = replace(reader.settings, epochs=max(1, -(-stop // size)))
    return ReaderOrder(reader.dataset, reader.ranges, settings)


# Which of the hosts a process is: a shard of the stages, or the host of a reader of their own,
# where they have such; else the host of the settings.


def as_host(settings: ReadSettings, index: int, count: int, *, of: int) -> ReadSettings:
    """Return settings of one of `of` hosts as host `index` of `count` has them.

    >>> from shardctl.core.stages.text import text_of
    >>> shared = ReadSettings(stages="shard(2, 0) | repeat(3) | shuffle(9, seed=1)")
    >>> text_of(as_host(shared, 4, 6, of=2).stages)
    'shard(6, index=4) | repeat(3) | shuffle(9, seed=1)'
    """
    host = Host(index=index, count=count)

    def part(given: Part) -> Part:
        if _hosts_of(given) != of:
            return given
        if isinstance(given, Read):
            own = {**dict(given.settings), "host": str(host)}
            return replace(given, settings=tuple(own.items()))
        return Shard(num_shards=count, index=index)

    pipeline = stages_of(settings)
    if not any(_hosts_of(part) == of for part in parts_of(pipeline)):
        return replace(settings, host=host)
    return replace(settings, stages=with_changed(pipeline, part=part))


def check_shared(settings: ReadSettings, hosts: int) -> None:
    """Refuse stages of which it is not stated how so many hosts share all that they read.

    What one reader reads is shared as the settings say, where its stages say nothing.

    Raises:
        UsageError: see above; the text names a part of the stages, and the way out.
    """
    pipeline = stages_of(settings)
    counts = {_hosts_of(part): part for part in parts_of(pipeline)}
    counts.pop(None, None)
    unshared = _unshared(pipeline, hosts)
    if hosts not in counts and counts:
        count, part = counts.popitem()
        raise UsageError(
            phrase(
                "{stages}: {} is of {} hosts, and {hosts=} stopped; the two must be the same",
                text_of_part(part),
                count,
                hosts=hosts,
            )
        )
    if not counts and unshared == [pipeline.source]:
        return
    if hosts > 1 and unshared:
        raise UsageError(
            phrase(
                "{stages}: every host reads all of {}, for nothing says that {hosts=} share it; "
                "state it, as in read(train, host=0/{}) or by shard({}, 0) behind it",
                text_of_part(unshared[0]),
                hosts,
                hosts,
                hosts=hosts,
            )
        )


def _hosts_of(part: Part) -> int | None:
    """Return of how many hosts a part of stages takes a share, None where it takes none."""
    if isinstance(part, Read):
        host = dict(part.settings).get("host")
        return None if host is None else int(str(host).partition("/")[2])
    return part.num_shards if isinstance(part, Shard) and part.num_shards > 1 else None


def _unshared(pipeline: Pipeline, hosts: int) -> list[Read]:
    """Return the readers of which each host gets everything."""
    source = pipeline.source
    found: list[Read] = []
    if isinstance(source, Read):
        found = [] if _hosts_of(source) == hosts else [source]
    elif isinstance(source, Shared):
        found = _unshared(source.pipeline, hosts)
    elif isinstance(source, Zip | SampleFromDatasets | ChooseFromDatasets):
        found = [read for one in source.inputs for read in _unshared(one, hosts)]
    for stage in pipeline.stages:
        if isinstance(stage, Concatenate):
            found += _unshared(stage.other, hosts)
        elif _hosts_of(stage) == hosts:
            found = []
    return found


def undropped(settings: ReadSettings) -> ReadSettings:
    """Return settings that hand out the last batch though it is short.

    Batches that are dropped before other stages stay so: what these count is the batches.
    """
    if settings.drop_remainder:
        return replace(settings, drop_remainder=False)
    pipeline = stages_of(settings)
    behind = list(takewhile(_hands_on, reversed(pipeline.stages)))
    before = pipeline.stages[: len(pipeline.stages) - len(behind)]
    if not before or not isinstance(before[-1], Batch) or not before[-1].drop_remainder:
        return settings
    last = replace(before[-1], drop_remainder=False)
    stages = (*before[:-1], last, *reversed(behind))
    return replace(settings, stages=replace(pipeline, stages=stages))


def _hands_on(stage: Stage) -> bool:
    return isinstance(stage, Map | Prefetch | WithOptions)
