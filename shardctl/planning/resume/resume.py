"""How does a pipeline resume exactly where it stopped?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import DatasetLike, as_dataset
from shardctl.core.instructions.reads import joined
from shardctl.core.order.epoch_reading import Reading
from shardctl.core.order.order import Order
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import Argument, phrase
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
    settings_as_planned,
)
from shardctl.core.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    refuse_loader,
)
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.core.text import choices, nearest_first
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.order import PlannedOrder, resolved_spec
from shardctl.planning.pinned_sources import without_stages
from shardctl.planning.resume.rest_of_epoch import (
    WithoutSeed,
    inputs_read,
    order_to_resume,
    pending_inputs,
    reader_state,
    reads_at,
    rest_after,
    resume_point,
    shuffle_state,
    without_seed,
)
from shardctl.planning.resume.staged import plan_staged, resume_staged

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
        settings: those of the pipeline that stopped.
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
        shardctl.tfds, as `continued_by` says.

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
    """
    if mode not in get_args(BufferMode):
        raise UsageError(
            phrase(
                "{mode!}: choose from {}",
                choices(nearest_first(mode, get_args(BufferMode))),
                mode=mode,
            )
        )
    dataset, settings = as_dataset(dataset), as_settings(settings)
    refuse_loader(settings, "a plan of file instructions", "shardctl.resume_loader goes on with it")
    dataset, spec, settings = without_stages(dataset, spec, settings)
    refuse_unreadable(dataset)
    if settings.stages is not None:
        return resume_staged(
            plan_staged(dataset, spec, settings, mode, risk), consumed=consumed, steps=steps
        )
    planned = order_to_resume(resolved_spec(dataset, spec), settings, mode, risk)
    return resume_order(planned, consumed=consumed, steps=steps, mode=mode, risk=risk)


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
    order = planned.of_reader
    dataset, settings = order.dataset, order.settings
    consumed = consumed_examples(order, consumed=consumed, steps=steps)
    point = resume_point(order, consumed)
    open_buffer = without_seed(order, point, mode, risk)
    if open_buffer is not None:
        return _resumed_without_seed(planned, open_buffer, consumed, mode)
    num_read = inputs_read(order, point)
    reading = order.reading(point.stream)
    left = rest_after(reading, num_read if point.remaining else _END, order.reads.take)
    state = reader_state(order, point.stream, num_read)
    pending = pending_inputs(order, point) if point.remaining else np.empty(0, np.int64)
    buffered = order.num_buffered is not None
    shuffle = shuffle_state(order, point) if buffered else None
    pending_ids = ids_at(order, reading, pending) if buffered else None
    held = order.reads.select(slice(0, 0))
    if len(pending) and mode == "exactly-once":
        held = reads_at(order.reads, reading, pending)
    # The list of what is left takes as much memory as the search tables, so these go first.
    del reading
    order.forget_readings()
    rest = left.of(order.reads)
    if len(held):
        rest = joined([held, rest])
    plan_mode: Mode = mode if buffered else "exact"
    return ResumePlan(
        dataset=dataset.identity,
        spec=planned.spec,
        mode=plan_mode,
        settings=settings_as_planned(settings, ordered=dataset.ordered),
        consumed=consumed,
        epoch=point.epoch,
        remaining=point.remaining,
        remaining_total=order.num_examples - consumed,
        instructions=rest,
        num_pending_instructions=len(held),
        pending=pending_ids,
        reader_state=state,
        shuffle=shuffle,
        further_epochs=further_epochs(order, point.epoch) if point.remaining else (),
        num_further_epochs=num_further_epochs(order, point.epoch) if point.remaining else 0,
        after_read=calls_after_read(
            settings,
            plan_mode,
            point.epoch,
            take=point.remaining,
            num_own=len(held),
            num_shared=len(rest) - len(held),
        ),
        warnings=(
            *planned.warnings,
            *_within_a_batch(order, consumed),
            *_of_endless(settings, plan_mode, point.remaining),
        ),
        assumptions=order.assumptions,
    )


def _of_endless(settings: ReadSettings, mode: Mode, remaining: int) -> Iterator[str]:
    """Yield what "exactly-once" cannot mean where files repeat without end behind a buffer."""
    if settings.repeat_files and mode == "exactly-once" and remaining:
        yield phrase(
            "{repeat_files=True} and {buffer}: a stream without end has no rest that is read "
            "exactly once; the next {} examples may be others than without the interruption, "
            "from the buffer and what follows; {mode=exact-order} continues with the same ones",
            remaining,
        )


_END = 2**63 - 1


def _resumed_without_seed(
    planned: PlannedOrder, found: WithoutSeed, consumed: int, mode: Mode
) -> ResumePlan:
    order, point = planned.of_reader, found.point
    settings = replace(order.settings, buffer_seed=None)
    reading = order.reading(point.stream)
    left = rest_after(reading, found.num_read if point.remaining else _END, order.reads.take)
    state = reader_state(order, point.stream, found.num_read)
    del reading
    order.forget_readings()
    follow = num_further_epochs(order, point.epoch) if consumed < order.num_examples else 0
    remaining_total = point.remaining + follow * order.epoch_size
    if settings.drop_remainder and settings.batch is not None:
        remaining_total -= remaining_total % settings.batch
    further = further_epochs(order, point.epoch) if follow else ()
    return ResumePlan(
        dataset=order.dataset.identity,
        spec=planned.spec,
        mode=mode,
        settings=settings_as_planned(settings, ordered=order.dataset.ordered),
        consumed=consumed,
        epoch=point.epoch,
        remaining=point.remaining,
        remaining_total=remaining_total,
        instructions=left.of(order.reads),
        reader_state=state,
        unseeded=found.buffer,
        further_epochs=tuple(replace(epoch, buffer_seeds=None) for epoch in further),
        num_further_epochs=follow,
        after_read=calls_after_read(settings, mode, point.epoch, take=point.remaining),
        warnings=(*planned.warnings, *_within_a_batch(order, consumed)),
        assumptions=order.assumptions,
    )


def consumed_examples(order: Order, *, consumed: int | None, steps: int | None) -> int:
    """Return how many examples of the whole order are consumed, given as such or in batches.

    Batches run on from one epoch into the next (`ds.repeat` comes before `ds.batch`); the last of
    the order holds what is left, or is dropped.

    Raises:
        UsageError: both or neither, a batch size missing, past the end.
    """
    total, batch = order.num_examples, order.settings.batch
    if (consumed is None) == (steps is None):
        raise UsageError(
            phrase("say how far the pipeline got: {consumed=N}, or {steps=S} with {batch=B}")
        )
    if consumed is not None:
        if not 0 <= consumed <= total:
            raise UsageError(
                phrase(
                    "{consumed!}: the order has {} examples{}",
                    total,
                    _as_a_pass(order, consumed, total, "consumed"),
                    consumed=consumed,
                )
            )
        return consumed
    if batch is None:
        raise UsageError(phrase("{steps} needs {batch=N}: a step is a batch"))
    num_steps = -(-total // batch)
    steps = steps or 0
    if not 0 <= steps <= num_steps:
        raise UsageError(
            phrase(
                "{steps!}: the order has {} batches of {}{}",
                num_steps,
                batch,
                _as_a_pass(order, steps, num_steps, "steps"),
                steps=steps,
            )
        )
    return min(steps * batch, total)


def _as_a_pass(order: Order, count: int, total: int, name: str) -> str:
    """Return how a count over several passes is to be given, "" where there is no such way."""
    if count < 0 or not total or order.settings.repeat_files:
        return ""
    if not SETTING_BY_FIELD["pass_index"].is_read_by(order.settings.loader):
        return ""
    if order.settings.epochs > 1:
        return phrase(
            " in the {epochs=} that are stated; a longer job has more", epochs=order.settings.epochs
        )
    passes, rest = divmod(count, total)
    pass_index = order.settings.pass_index + passes
    return phrase(
        "; counted over several passes of the dataset it is {pass_index=} {}",
        Argument(name, rest),
        pass_index=pass_index,
    )


def further_epochs(order: ReaderOrder, epoch: int) -> tuple[FurtherEpoch, ...]:
    """Return the epochs that follow one, as many as a plan lists."""
    stop = epoch + 1 + min(num_further_epochs(order, epoch), MAX_FURTHER_EPOCHS)
    shuffles, buffers = order.settings.shuffles_files, order.num_buffered is not None
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
    return 0 if order.settings.repeat_files else order.settings.epochs - 1 - epoch


def ids_at(order: ReaderOrder, reading: Reading, inputs: Int64s) -> tuple[int | str, ...]:
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
    if unseeded and settings.repeat_files and take is not None:
        calls.append(TakeCall(count=take))  # before a buffer, which must not choose what is left
    if (unseeded or mode == "exactly-once") and settings.buffer is not None:
        calls.append(ShuffleCall(buffer_size=settings.buffer, seed=settings.buffer_seed))
    if settings.repeat_files:
        if settings.buffer is not None and take is not None and not unseeded:
            calls.append(TakeCall(count=take))  # the buffer reads beyond the end of the order
    elif epoch + 1 < settings.epochs:
        calls.append(ConcatenateCall(first_epoch=epoch + 1, last_epoch=settings.epochs - 1))
    if settings.batch is not None:
        calls.append(BatchCall(batch_size=settings.batch, drop_remainder=settings.drop_remainder))
    return tuple(calls)


def _within_a_batch(order: ReaderOrder, consumed: int) -> tuple[str, ...]:
    batch = order.settings.batch
    if batch is None or consumed == order.num_examples or not consumed % batch:
        return ()
    return (
        f"{consumed} examples end {consumed % batch} into a batch of {batch}: the batches that "
        "follow begin in other places than those of the uninterrupted pipeline",
    )
