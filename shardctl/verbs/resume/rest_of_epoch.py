"""What is left of one epoch of an order: the rest of the reading, and what a buffer holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.base.text import counted
from shardctl.errors import UnpredictableOrderError
from shardctl.order.epoch_reading import EpochReading, repetitions_listed
from shardctl.order.order import ContinuedBy, Order
from shardctl.order.plan_order import PlannedOrder
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.sources import spec_as_given
from shardctl.saved.resume_plan import (
    MAX_FURTHER_EPOCHS,
    MAX_HOSTS,
    UNSEEDED_MODES,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    FurtherEpoch,
    HostShare,
    Mode,
    ReaderState,
    ResumePlan,
    ShardCall,
    ShuffleCall,
    ShuffleState,
    TakeCall,
    settings_as_planned,
)
from shardctl.saved.unseeded_buffer import DEFAULT_RISK, UnseededBuffer, behind_buffer
from shardctl.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.spec.host import even_range
from shardctl.spec.reads import Reads
from shardctl.tfdata.shuffle_buffer import ShuffleReplay


def consumed_examples(order: Order, *, consumed: int | None, steps: int | None) -> int:
    """Return how many examples of the whole order are consumed, given as such or in batches.

    Raises:
        UsageError: both or neither, no batches to count, past the end.
    """
    total = order.num_examples
    if (consumed is None) == (steps is None):
        raise refused("say how far the pipeline got: {consumed=N}, or {steps=S} with {batch=B}")
    longer = "; a longer job has more --epochs, or is in a later --pass-index"
    if consumed is not None:
        if not 0 <= consumed <= total:
            text = "{consumed!}: the order has {} examples{}"
            raise refused(text, total, longer if total else "", consumed=consumed)
        return consumed
    if not order.has_steps:
        raise refused("{steps} needs {batch=N}, or a batch among the {stages}: a step is a batch")
    steps, num_steps = steps or 0, order.num_steps
    if steps < 0 or (num_steps is not None and steps > num_steps):
        there, end = f"{num_steps} batches", longer if num_steps else ""
        raise refused("{steps!}: the order has {}{}", there, end, steps=steps)
    # Steps may be of different sizes, so the position is asked of the order.
    return total if steps == num_steps else order.positions_in_step(steps).start


def plan_of(planned: PlannedOrder, settings: ReadSettings, **what: Any) -> ResumePlan:
    """Return a plan of a known order: what every plan has of it and of settings, and `what`."""
    order = planned.order
    of_order = {
        "dataset": order.dataset.identity,
        "spec": spec_as_given(planned.resolved, settings),
        "settings": settings_as_planned(settings, ordered=order.dataset.ordered),
        "instructions": order.reads.select(slice(0, 0)),
        "given": planned.dataset_as_given,
        "assumptions": order.assumptions,
    }
    return ResumePlan(**{"mode": "exact", **of_order, **what})


WHOLE_STEPS = "shardctl.tfds resumes at whole steps"


def within_a_batch(order: Order, consumed: int, by: ContinuedBy) -> tuple[str, ...]:
    """Return what becomes of batches where a pipeline stopped within one, as warnings."""
    step, within = steps_before(order, consumed)
    if step is None or not within:
        return ()
    whole = order.positions_in_step(step)
    follow = {
        "shardctl.tfds": f"{WHOLE_STEPS}; give --consumed {whole.start} or {whole.stop}",
        "loader": "the next batch holds the rest of it, and later batches do not change",
        "file_instructions": "later batches hold other examples than without the interruption",
    }
    ends = f"{counted(consumed, 'example')} end {within} into the batch of step {step}"
    return (f"{ends}: {follow[by]}",)


def steps_before(order: Order, position: int) -> tuple[int | None, int]:
    """Return (whole batches before a position, examples of the next one before it)."""
    if not order.has_steps:
        return None, 0
    if position == order.num_examples:
        return order.num_steps, 0
    step, within = order.steps_of([position])
    return int(step[0]), int(within[0])


def epoch_at(order: Order, consumed: int) -> int:
    """Return the epoch in which an order resumes, at its end the last one."""
    last = order.num_examples - 1
    return int(order.epoch_of([min(consumed, last)])[0]) if last >= 0 else 0


@dataclass(frozen=True, kw_only=True)
class ResumePoint:
    """A place in an order: `emitted` examples into a stream, which is an epoch.

    With repeated files all epochs are one stream, and `epoch` is the one the place falls in.
    `remaining` is what is left of the stream, 0 at the end of the whole order.
    """

    epoch: int
    stream: int
    emitted: int
    remaining: int


def resume_point(order: ReaderOrder, consumed: int) -> ResumePoint:
    """Return the place after `consumed` examples; the end of an epoch is the start of the next."""
    size, last = order.epoch_size, order.settings.epochs - 1
    # A last batch may be dropped: the order ends there.
    at_end = consumed == order.num_examples
    epoch = consumed // size if size else last
    epoch = min(epoch, last) if at_end else epoch
    # Files that repeat are one stream for all epochs; `start` is where this epoch begins in it.
    stream, start = order.stream_of(epoch)
    emitted = start + consumed - epoch * size
    remaining = 0 if at_end else order.stream_size - emitted
    return ResumePoint(epoch=epoch, stream=stream, emitted=emitted, remaining=remaining)


def inputs_read(order: ReaderOrder, point: ResumePoint) -> int:
    """Return how many examples this host has got from the reader, those in a buffer among them."""
    if order.num_buffered is None:
        return point.emitted
    return order.replay(point.stream).num_read(point.emitted)


def rest_of_reading(reads: Reads, reading: EpochReading, num_read: int) -> Reads:
    """Return the rows whose fresh interleave continues after `num_read` examples of this reading.

    A host of `ds.shard(n, i)` has read i examples beyond its last whole turn of n; the list begins
    at the turn, so that the same `shard(n, i)` continues. Where the files repeat, the list ends
    with the stream, and with what a buffer reads ahead of its end.
    """
    if num_read >= reading.num_examples:
        return reads.select(slice(0, 0))
    # The whole reading, not only this host's part: `num_read * stride` examples are done.
    if reading.limit is None:
        # `open_rest` gives the head of the new list, int64[k, 3] (file, skip, take), and the first
        # file not opened.
        head, first = reading.interleave.open_rest(num_read * reading.stride)
        in_slots, skip, take = head.T
        # Files not opened yet follow in the order of the reading.
        every = reading.interleave.num_shards
        follow = np.arange(first, every) if reading.rows is None else reading.rows[first:]
        # Positions in the reading -> rows of the instructions; `rows` is the permutation of the
        # shuffle.
        rows = np.concatenate([reading.rows_of(in_slots), follow])
    else:
        # Endless: the list is cut where the stream ends.
        shard, skip, take = reading.interleave.continuation(num_read * reading.stride)
        # Nothing is read beyond the cut.
        take = np.clip(_read_at_end(reading, reads.take)[shard] - skip, 0, take)
        # Files that come up only after the cut are left out; those that are open keep their slots.
        kept = np.flatnonzero((take > 0) | (skip > 0))
        rows, skip, take = reading.rows_of(shard[kept]), skip[kept], take[kept]
    left = reads.select(rows)
    left.skip[: len(skip)] += skip
    # `rows` selects copies; what the head skips is added to what the instruction skips anyway.
    left.take[: len(take)] = take
    return left


def _read_at_end(reading: EpochReading, lengths: Int64s) -> Int64s:
    """Return how much of each opened file (int64[k]) is read at the cut of an endless reading.

    A file that is cut there ends a block or is the last one read, so its slot is asked for more
    only after the cut: the shorter file gives the same order.
    """
    last = (reading.num_examples - 1) * reading.stride + reading.phase
    # `state(last + 1)`: the slots after the last example.
    state = reading.interleave.state(last + 1)
    # Of the files opened by then all is read, but for those that are still in a slot.
    num_read = lengths[reading.opened]
    # Files that were not opened by then are not read.
    num_read[state.next_shard :] = 0
    for shard, count in state.slots:
        if shard is not None:
            num_read[shard] = count
    return num_read


def reader_state(order: ReaderOrder, stream: int, num_read: int) -> ReaderState:
    """Return what is open after `num_read` examples of this host."""
    reading, num_files = order.reading(stream), len(order.reads)
    if reading.limit is not None:
        # A plan says how many files are listed, of a list that ends beyond the order.
        num_files *= repetitions_listed(
            order.reads.take,
            (reading.limit + 1) * reading.stride,
            cycle_length=order.settings.cycle_length(ordered=order.dataset.ordered),
        )
    state = reading.state(num_read)
    return ReaderState(
        open_files=sum(shard is not None for shard, _ in state.slots),
        block_offset=state.block_offset,
        next_file=state.next_shard,
        num_files=num_files,
    )


def pending_inputs(order: ReaderOrder, point: ResumePoint) -> Int64s:
    """Return the inputs of the buffer (int64[p], ascending) that are read but not yielded."""
    if order.num_buffered is None:
        return np.empty(0, np.int64)
    return order.replay(point.stream).pending(point.emitted)


def shuffle_state(replay: ShuffleReplay, emitted: int) -> ShuffleState:
    """Return where a buffer is after so many examples."""
    return ShuffleState(
        buffer_size=replay.buffer_size,
        seeds=replay.seeds,
        num_elements=replay.num_elements,
        num_read=replay.num_read(emitted),
        emitted=emitted,
    )


def reads_of_codes(order: Order, codes: Int64s) -> Reads:
    """Return what reads codes (int64[q]) in their order, as runs of adjacent examples in a file."""
    split, shard, index = order.codes.places(codes)
    # Runs end where the file changes or the next example is not the following one.
    cut = (np.diff(split) != 0) | (np.diff(shard) != 0) | (np.diff(index) != 1)
    # rows: first position of each run. Its length is the distance to the next one.
    rows = np.flatnonzero(np.append(len(codes) > 0, cut))
    return Reads(
        files=order.codes.dataset,
        part=np.zeros_like(rows),
        split=split[rows],
        shard=shard[rows],
        skip=index[rows],
        take=np.diff(np.append(rows, len(codes))),
    )


def reads_at(reads: Reads, reading: EpochReading, positions: Int64s) -> Reads:
    """Return the examples at positions (int64[q]) of a reading as runs in the order of the files.

    >>> import numpy as np
    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.spec.subsplit import SplitRange
    >>> from shardctl.settings.read_settings import ReadSettings
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> order = ReaderOrder(Dataset(name="d", splits=(train,)),
    ...               [SplitRange(split=train, start=0, stop=12)], ReadSettings())
    >>> runs = reads_at(order.reads, order.reading(0), np.array([0, 1, 3, 4]))
    >>> list(zip(runs.shard.tolist(), runs.skip.tolist(), runs.take.tolist()))
    [(0, 0, 2), (0, 3, 1), (1, 0, 1)]
    """
    rows, offset = reading.locate(positions)
    singles = reads.select(rows)
    return singles.trimmed(offset, np.ones_like(offset)).runs()


# Where a pipeline resumes when the seed of its shuffle buffer is not known.
#
# The order in which the buffer read is known, and so is how far it had read; which of that it had
# yielded depends on its seed. What is left is put through a buffer again, with another seed.


class WithoutSeed(NamedTuple):
    """Where a plan resumes: `num_read` examples of the stream of `point` are skipped.

    `point.remaining` is how many are read of that stream, repeated ones among them.
    """

    point: ResumePoint
    num_read: int
    buffer: UnseededBuffer


def order_to_resume(
    made: Callable[[ReadSettings], PlannedOrder],
    settings: ReadSettings,
    mode: str | None,
    risk: float | None,
) -> PlannedOrder:
    """Return the order that a plan of a mode follows; without a seed, what is read into the buffer.

    `made` makes the order of settings.

    Raises:
        UsageError: a mode for an unknown seed where it is known, or where stages have buffers; a
            risk without its mode.
        UnpredictableOrderError: the order is nondeterministic; where nothing but the seed of the
            buffer is missing, the text names the modes that do without.
    """
    unseeded = mode in UNSEEDED_MODES
    if (
        (unseeded or risk is not None)
        and settings.reader.on_tf_data
        and not settings.takes("buffer")
    ):
        raise refused(
            "{mode!} with {stages}: without their seeds it is unknown how far the stages have "
            "read; plan from a log, {seen=CODES}",
            mode=mode,
        )
    if risk is not None and mode != "at-least-once":
        raise refused("{risk} is read with {mode=at-least-once} only")
    if not settings.buffer_is_open:
        if unseeded and settings.buffer is not None:
            raise refused(
                "{mode!} is for a buffer without a seed; with its seed leave {mode} out, and "
                "nothing is lost or repeated",
                mode=mode,
            )
        return made(settings)
    planned = made(with_any_buffer_seed(settings))
    if not unseeded:
        raise UnpredictableOrderError(
            "--buffer without --buffer-seed: what the buffer held is unknown; --mode at-most-once "
            "skips it"
        )
    return planned


def without_seed(
    order: ReaderOrder, point: ResumePoint, mode: str, risk: float | None
) -> WithoutSeed | None:
    """Return where a plan of a mode resumes, None in modes for which the seed is known.

    Raises:
        UsageError: a risk outside its range.
    """
    size, settings = order.num_buffered, order.settings
    if mode not in UNSEEDED_MODES or size is None:
        return None
    endless = order.is_one_stream
    if mode == "at-least-once" and risk is None:
        risk = min(DEFAULT_RISK, size)
    emitted = point.emitted
    if not point.remaining:
        emitted = 0  # at the end nothing is lost: the rest is a batch that is dropped
    buffer = behind_buffer(
        buffer_size=size,
        emitted=emitted,
        num_elements=None if endless else order.epoch_size,
        risk=risk if mode == "at-least-once" else None,
    )
    first = buffer.first_read
    if not point.remaining:
        return WithoutSeed(point, order.stream_size, buffer)
    # Of an endless stream the uninterrupted pipeline reads as much as it yields, and the buffer.
    end = order.stream_size + (size - 1 if endless else 0)
    epoch, stream = point.epoch, point.stream
    if first >= end and epoch + 1 < settings.epochs:  # what the buffer held was the rest of it
        epoch, stream, first = epoch + 1, epoch + 1, 0
    point = ResumePoint(epoch=epoch, stream=stream, emitted=0, remaining=end - first)
    return WithoutSeed(point, first, buffer)


def further_epochs(
    order: ReaderOrder, epoch: int, follow: int, *, seeded: bool = True
) -> tuple[FurtherEpoch, ...]:
    """Return what a plan lists of the epochs behind one; `seeded` with the seeds of buffers."""
    stop = epoch + 1 + min(follow, MAX_FURTHER_EPOCHS)
    shuffles, buffers = order.settings.shuffles_files, seeded and order.num_buffered is not None
    return tuple(
        FurtherEpoch(
            epoch=index,
            consumed=index * order.epoch_size,
            num_examples=order.epoch_size,
            file_seeds=order.seeds.of_files(index) if shuffles else None,
            buffer_seeds=order.seeds.of_buffer(index) if buffers else None,
        )
        for index in range(epoch + 1, stop)
    )


def ids_at(order: ReaderOrder, reading: EpochReading, inputs: Int64s) -> tuple[int | str, ...]:
    """Return the ids at positions (int64[q]) of a reading of the files."""
    return tuple(order.codes.ids(reading.codes_at(inputs)) if len(inputs) else [])


def calls_after_read(
    settings: ReadSettings,
    mode: Mode,
    epoch: int,
    *,
    take: int | None = None,
    num_own: int = 0,
    num_shared: int = 1,
) -> tuple[AfterRead, ...]:
    """Return the calls behind the reader, in their order; `take` is what is left of the stream.

    Of the instructions the first `num_own` hold examples of this host alone, which `ds.shard` must
    not split again; the `num_shared` after them hold those of all hosts.
    """
    calls: list[AfterRead] = []
    host = settings.host
    if host is not None and settings.host_mode.reads_all and num_shared:
        calls.append(ShardCall(num_shards=host.count, index=host.index, skip_instructions=num_own))
    if settings.buffer is not None:
        calls.append(ShuffleCall(buffer_size=settings.buffer, seed=settings.buffer_seed))
        if settings.is_endless and take is not None:
            # The buffer reads beyond the end of the order; one without a seed must not choose
            # what is left.
            calls.insert(-1 if mode in UNSEEDED_MODES else len(calls), TakeCall(count=take))
    if not settings.is_endless and epoch + 1 < settings.epochs:
        calls.append(ConcatenateCall(first_epoch=epoch + 1, last_epoch=settings.epochs - 1))
    if settings.batch is not None:
        calls.append(BatchCall(batch_size=settings.batch, drop_remainder=settings.drop_remainder))
    return tuple(calls)


def even_shares(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise refused("{to_hosts=}: a number from 1 to {} is needed", MAX_HOSTS, to_hosts=num_hosts)
    total = reads.num_examples
    parts = [even_range(0, total, i, num_hosts, drop_remainder=False) for i in range(num_hosts)]
    return tuple(
        HostShare(index=index, count=num_hosts, instructions=reads.between(part.start, part.stop))
        for index, part in enumerate(parts)
    )


def without_dropping(settings: ReadSettings) -> ReadSettings:
    """Return settings whose order has all examples, those of a last batch that is dropped too.

    The batches of either pipeline drop it. Other batches stay: for Keras they decide the seeds.
    """
    if not settings.drop_remainder:
        return settings
    return replace(settings, batch=None, drop_remainder=False)
