"""Where does a pipeline resume when nobody knows the seed of its shuffle buffer?

The order in which the buffer read is known, and so is how far it had read; which of that it handed
out only its seed tells. What is read on is put through a buffer again, with a seed of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.order import Order
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import UNSEEDED_MODES
from shardctl.core.resume.unseeded_buffer import DEFAULT_RISK, UnseededBuffer, behind_buffer
from shardctl.core.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.planning.order import PlannedOrder, order_of
from shardctl.planning.resume.rest_of_epoch import ResumePoint


@dataclass(frozen=True, kw_only=True)
class WithoutSeed:
    """Where a plan goes on: `num_read` examples of the stream of `point` are passed by.

    `point.remaining` is how many are read of that stream, repeated ones among them.
    """

    point: ResumePoint
    num_read: int
    buffer: UnseededBuffer


def order_to_resume(
    resolved: Resolved, settings: ReadSettings, mode: str, risk: float | None
) -> PlannedOrder:
    """Return the order that a plan of a mode follows; without a seed, what is read into the buffer.

    Raises:
        UsageError: a mode for a seed that is not known where it is, a risk without its mode.
        UnpredictableOrderError: TensorFlow leaves the order open; where nothing but the seed of the
            buffer is missing, the text names the modes that do without.
    """
    if risk is not None and mode != "at-least-once":
        raise UsageError(phrase("{risk} is read with {mode=at-least-once} only"))
    if not settings.buffer_is_open:
        if mode in UNSEEDED_MODES and settings.buffer is not None:
            raise UsageError(
                phrase(
                    "{mode!} is for a buffer whose seed is not known; with its seed "
                    "{mode=exactly-once} loses and repeats nothing",
                    mode=mode,
                )
            )
        return order_of(resolved, settings)
    planned = order_of(resolved, with_any_buffer_seed(settings))
    if mode not in UNSEEDED_MODES:
        raise UnpredictableOrderError(
            phrase(
                "{buffer} without a seed: only the seed of that very run tells what the buffer held"
                " ({buffer_seed=N} or {global_seed=N}; any other makes a wrong plan); without it "
                "{mode=at-most-once} repeats nothing and loses what the buffer held, and "
                "{mode=at-least-once} with {risk=R} reads the last buffers again, so that fewer "
                "than R examples are lost on the average"
            )
        )
    return planned


def without_seed(
    order: Order, point: ResumePoint, mode: str, risk: float | None
) -> WithoutSeed | None:
    """Return where a plan of a mode goes on, None in modes for which the seed is known.

    Raises:
        UsageError: a risk outside its range.
    """
    size, settings = order.num_buffered, order.settings
    if mode not in UNSEEDED_MODES or size is None:
        return None
    endless = settings.repeat_files
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
        return WithoutSeed(point=point, num_read=order.stream_size, buffer=buffer)
    # Of an endless stream the uninterrupted pipeline reads as much as it hands out, and the buffer.
    end = order.stream_size + (size - 1 if endless else 0)
    epoch, stream = point.epoch, point.stream
    if first >= end and epoch + 1 < settings.epochs:  # what the buffer held was the rest of it
        epoch, stream, first = epoch + 1, epoch + 1, 0
    return WithoutSeed(
        point=ResumePoint(epoch=epoch, stream=stream, emitted=0, remaining=end - first),
        num_read=first,
        buffer=buffer,
    )
