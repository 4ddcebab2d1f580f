"""How does a pipeline resume exactly where it stopped?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal, get_args

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import DatasetLike, as_dataset
from shardctl.core.instructions.reads import joined
from shardctl.core.order.epoch_reading import EpochReading
from shardctl.core.order.order import NONE
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import (
    MAX_FURTHER_EPOCHS,
    UNSEEDED_MODES,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    FurtherEpoch,
    Mode,
    ResumePlan,
    ShardCall,
    ShuffleCall,
    TakeCall,
)
from shardctl.core.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
)
from shardctl.core.settings.table import ENDLESS
from shardctl.core.text import choices, nearest_first
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.pinned_sources import without_stages
from shardctl.planning.resume.rest_of_epoch import (
    consumed_examples,
    inputs_read,
    order_to_resume,
    pending_inputs,
    plan_of,
    reader_state,
    reads_at,
    rest_after,
    resume_point,
    shuffle_state,
    within_a_batch,
    without_seed,
)
from shardctl.planning.resume.resume_loader import resume_loader_order
from shardctl.planning.resume.staged import resume_staged

BufferMode = Literal["exactly-once", "exact-order", "at-most-once", "at-least-once"]


@checked
def resume(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int | None = None,
    steps: int | None = None,
    mode: BufferMode = "exactly-once",
    risk: float | None = None,
) -> ResumePlan:
    """Return how a pipeline resumes after `consumed` examples, or `steps` batches, of its order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: those of the pipeline that stopped, of TFDS's reader or another loader.
        consumed: how many examples it had handed out, counted over all epochs.
        steps: how many batches, in place of `consumed`.
        mode: with a shuffle buffer: "exactly-once" (what is left, in another order),
            "exact-order"; without its seed "at-most-once" (goes on behind all that the buffer had
            read) or "at-least-once" (reads the last buffers again).
        risk: of "at-least-once", below how many examples may be lost on the average; 1e-6 if None.

    Returns:
        A ResumePlan, whose `file_instructions` are read by a new interleave: the open files from
        where they are, in turn, then the others. `unseeded` says what is lost and repeated
        without a seed. Stages that file instructions cannot continue are continued by
        shardctl.tfds, another loader by its library, as `continued_by` says: `after_read` are the
        calls that lead to what is left.

    Raises:
        DatasetError: files that `as_dataset` does not read.
        UsageError: past the end of the order, not one of `consumed` and `steps`, `steps` without a
            batch size, no such mode, a mode without a seed where there is one, a risk that is not
            above 0 and at most the size of the buffer.
        UnpredictableOrderError: TensorFlow leaves the order open.

    >>> import shardctl
    >>> settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)
    >>> plan = shardctl.resume("imagenet2012", "train", settings, steps=1234)
    >>> plan.mode, plan.consumed, plan.remaining, plan.file_instructions[0].skip
    ('exact', 315904, 965263, 976)
    >>> settings = {"loader": "torch", "shuffle_seed": 5, "host": "0/2", "batch": 100, "pass": 3}
    >>> plan = shardctl.resume_loader("mnist", "train", settings, steps=40)  # its older name
    >>> plan.consumed, plan.remaining, [str(call) for call in plan.after_read]
    (4000, 26000, ['set_epoch(epoch=3)', 'skip(batches=40)'])
    """
    if mode not in get_args(BufferMode):
        raise UsageError(
            phrase(
                "{mode!}: choose from {}",
                choices(nearest_first(mode, get_args(BufferMode))),
                mode=mode,
            )
        )
    dataset, spec, settings = without_stages(as_dataset(dataset), spec, as_settings(settings))
    if settings.reader.on_tf_data:
        refuse_unreadable(dataset)
    planned = order_to_resume(partial(plan_order, dataset, spec), settings, mode, risk)
    return resume_order(planned, consumed=consumed, steps=steps, mode=mode, risk=risk)


resume_loader = resume  # what another loader than TFDS's was resumed with
LoaderPlan = ResumePlan


def resume_order(
    planned: PlannedOrder,
    *,
    consumed: int | None = None,
    steps: int | None = None,
    mode: BufferMode = "exactly-once",
    risk: float | None = None,
) -> ResumePlan:
    """Return how a pipeline of a known order resumes, see `resume`.

    In the modes without a seed it is an order of `order_to_resume`, whose seed means nothing.
    """
    by_what = planned.order.continued_by
    if by_what == "loader":
        return resume_loader_order(planned, consumed=consumed, steps=steps)
    if by_what == "shardctl.tfds":
        return resume_staged(planned, consumed=consumed, steps=steps)
    return _resume_reader(planned, consumed, steps, mode, risk)


_END = 2**63 - 1


def _resume_reader(
    planned: PlannedOrder, consumed: int | None, steps: int | None, mode: Mode, risk: float | None
) -> ResumePlan:
    order = planned.of_reader
    settings = order.settings
    consumed = consumed_examples(order, consumed=consumed, steps=steps)
    point = resume_point(order, consumed)
    unknown = without_seed(order, point, mode, risk)
    mode = mode if order.num_buffered is not None else "exact"
    if unknown is not None:
        settings, point = replace(settings, buffer_seed=None), unknown.point
        num_read = unknown.num_read
    else:
        num_read = inputs_read(order, point)
    reading = order.reading(point.stream)
    left = rest_after(reading, num_read if point.remaining else _END, order.reads.take)
    state = reader_state(order, point.stream, num_read)
    shuffle, pending, held = None, None, order.reads.select(slice(0, 0))
    if order.num_buffered is not None and unknown is None:
        shuffle = shuffle_state(order.replay(point.stream), point.emitted)
        inputs = pending_inputs(order, point) if point.remaining else NONE
        pending = ids_at(order, reading, inputs)
        if len(inputs) and mode == "exactly-once":
            held = reads_at(order.reads, reading, inputs)
    # The list of what is left takes as much memory as the search tables, so these go first.
    del reading
    order.forget_readings()
    rest = left.of(order.reads)
    if len(held):
        rest = joined([held, rest])
    total = order.num_examples
    follow = num_further_epochs(order, point.epoch) if consumed < total else 0
    further = further_epochs(order, point.epoch, seeded=unknown is None) if follow else ()
    left_in_all = total - consumed
    if unknown is not None:
        left_in_all = point.remaining + follow * order.epoch_size
        if settings.drop_remainder and settings.batch is not None:
            left_in_all -= left_in_all % settings.batch
    return plan_of(
        planned,
        settings,
        mode=mode,
        consumed=consumed,
        epoch=point.epoch,
        remaining=point.remaining,
        remaining_total=left_in_all,
        instructions=rest,
        num_pending_instructions=len(held),
        pending=pending,
        reader_state=state,
        shuffle=shuffle,
        unseeded=None if unknown is None else unknown.buffer,
        further_epochs=further,
        num_further_epochs=follow,
        after_read=calls_after_read(
            settings,
            mode,
            point.epoch,
            take=point.remaining,
            num_own=len(held),
            num_shared=len(rest) - len(held) if unknown is None else 1,
        ),
        warnings=(
            *planned.warnings,
            *within_a_batch(order, consumed, order.continued_by),
            *_of_endless(order, mode, point.remaining),
        ),
    )


def _of_endless(order: ReaderOrder, mode: Mode, remaining: int) -> Iterator[str]:
    """Yield what "exactly-once" cannot mean where files repeat without end behind a buffer."""
    if order.is_one_stream and mode == "exactly-once" and remaining:
        yield phrase(
            "{} and {buffer}: a stream without end has no rest that is read exactly once; the next "
            "{} examples may be others than without the interruption, from the buffer and what "
            "follows; {mode=exact-order} continues with the same ones",
            ENDLESS,
            remaining,
        )


def further_epochs(
    order: ReaderOrder, epoch: int, *, seeded: bool = True
) -> tuple[FurtherEpoch, ...]:
    """Return the epochs that follow one, as many as a plan lists; `seeded` with buffers' seeds."""
    stop = epoch + 1 + min(num_further_epochs(order, epoch), MAX_FURTHER_EPOCHS)
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


def num_further_epochs(order: ReaderOrder, epoch: int) -> int:
    """Return how many epochs follow one; where the files repeat, its stream holds them all."""
    return order.num_streams - 1 - order.stream_of(epoch)[0]


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
    unseeded = mode in UNSEEDED_MODES
    if unseeded and settings.is_endless and take is not None:
        calls.append(TakeCall(count=take))  # before a buffer, which must not choose what is left
    if (unseeded or mode == "exactly-once") and settings.buffer is not None:
        calls.append(ShuffleCall(buffer_size=settings.buffer, seed=settings.buffer_seed))
    if settings.is_endless:
        if settings.buffer is not None and take is not None and not unseeded:
            calls.append(TakeCall(count=take))  # the buffer reads beyond the end of the order
    elif epoch + 1 < settings.epochs:
        calls.append(ConcatenateCall(first_epoch=epoch + 1, last_epoch=settings.epochs - 1))
    if settings.batch is not None:
        calls.append(BatchCall(batch_size=settings.batch, drop_remainder=settings.drop_remainder))
    return tuple(calls)
