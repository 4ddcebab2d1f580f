"""How does another loader than TFDS's go on exactly where it stopped?"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import DatasetLike
from shardctl.core.instructions.reads import Reads
from shardctl.core.loaders.library import LoaderCall, Stop, library_of
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import CHUNK_SIZE
from shardctl.core.phrase import phrase
from shardctl.core.settings.read_settings import SettingsLike, as_settings
from shardctl.core.text import in_short
from shardctl.errors import UsageError
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.resume.resume import consumed_examples

MOST_INSTRUCTIONS = 100_000  # that a plan lists
_MOST_EXAMPLES = 1 << 24  # left in an epoch, of which instructions are made


@dataclass(frozen=True, kw_only=True)
class LoaderPlan:
    """What is left to a loader that stopped after `consumed` examples, and how it goes on.

    stop: in which epoch and batch it stopped. remaining: what is left of the epoch.
    remaining_total: what is left of all epochs.
    instructions: what is left of the epoch in its order, as runs of neighbours in a file; None
        where these are too many to list, as after a shuffle of a large dataset.
    """

    spec: str
    order: LoaderOrder
    consumed: int
    stop: Stop
    remaining: int
    remaining_total: int
    instructions: Reads | None
    after_read: tuple[LoaderCall, ...]
    advice: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    @property
    def epoch(self) -> int:
        """The epoch in which it stopped, from 0 in the pass."""
        return self.stop.epoch

    def __repr__(self) -> str:
        where = f"stopped after {self.consumed:,} examples"
        return in_short(self, f"{self.order.dataset.title} {self.spec}", where)


@checked
def resume_loader(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int | None = None,
    steps: int | None = None,
) -> LoaderPlan:
    """Return how another loader than TFDS's goes on after `consumed` examples, or `steps` batches.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: those of the loader that stopped.
        consumed: how many examples one process had handed out, counted over all epochs.
        steps: how many batches, in place of `consumed`.

    Returns:
        A LoaderPlan; `after_read` says what to call and skip, `instructions` what is left.

    Raises:
        UsageError: TFDS's reader, whose plan is that of `resume`; past the end of the order, not
            one of `consumed` and `steps`, `steps` without a batch size.
        UnpredictableOrderError: the loader leaves the order open.

    >>> import shardctl
    >>> settings = {"loader": "torch", "shuffle_seed": 5, "host": "0/2", "batch": 100, "pass": 3}
    >>> plan = shardctl.resume_loader("mnist", "train", settings, steps=40)
    >>> plan.consumed, plan.remaining, [(call.call, call.arguments) for call in plan.after_read]
    (4000, 26000, [('set_epoch', {'epoch': 3}), ('skip', {'batches': 40})])
    """
    settings = as_settings(settings)
    if settings.reader.on_tf_data:
        raise UsageError(
            phrase(
                "TFDS's reader resumes with shardctl.resume; another one is named by {loader=NAME}"
            )
        )
    return resume_loader_order(plan_order(dataset, spec, settings), consumed=consumed, steps=steps)


def resume_loader_order(
    planned: PlannedOrder, *, consumed: int | None = None, steps: int | None = None
) -> LoaderPlan:
    """Return how a loader of a known order goes on; see `resume_loader`."""
    order = planned.order
    assert isinstance(order, LoaderOrder)
    consumed = _consumed(order, consumed=consumed, steps=steps)
    total = order.num_examples
    at_end = consumed == total
    epoch = int(order.epoch_of([min(consumed, total - 1)])[0]) if total else 0
    first = _first_of(order, epoch)
    num_left, left = (0, np.empty(0, np.int64)) if at_end else _left(order, consumed, epoch)
    done, in_batch = _steps(order, consumed)
    before, _ = _steps(order, first)
    stop = Stop(
        consumed=consumed,
        epoch=epoch,
        in_epoch=consumed - first,
        steps=done,
        steps_in_epoch=None if done is None or before is None else done - before,
        in_batch=in_batch,
    )
    instructions = None if left is None else _instructions(order, left)
    library = library_of(order.loader)
    return LoaderPlan(
        spec=planned.spec,
        order=order,
        consumed=consumed,
        stop=stop,
        remaining=num_left,
        remaining_total=total - consumed,
        instructions=instructions,
        after_read=library.calls(order.asked, stop),
        advice=(
            *library.advice(order.asked, stop),
            *_not_listed(instructions, consumed, num_left),
            *_epochs_mixed(left, epoch),
        ),
        warnings=(*planned.warnings, *_within_a_batch(consumed, in_batch)),
    )


def _not_listed(instructions: Reads | None, consumed: int, num_left: int) -> tuple[str, ...]:
    if instructions is not None:
        return ()
    return (
        phrase(
            "more than {} runs of neighbours are left, which no plan lists; simulate with {skip=} "
            "and {take=} names the examples",
            f"{MOST_INSTRUCTIONS:,}",
            skip=consumed,
            take=num_left,
        ),
    )


def _epochs_mixed(left: Int64s | None, epoch: int) -> tuple[str, ...]:
    if left is None or not len(left) or int(left[-1] - left[0]) + 1 == len(left):
        return ()
    return (
        f"worker processes end epoch {epoch} in turn, so that examples of the next one come "
        "between those that are listed; simulate names all of them in their order",
    )


def _consumed(order: LoaderOrder, *, consumed: int | None, steps: int | None) -> int:
    """Return how many examples are consumed; a loader's batches may be of several sizes."""
    if steps is None or consumed is not None or not order.has_steps:
        return consumed_examples(order, consumed=consumed, steps=steps)
    most = order.num_steps or 0
    if not 0 <= steps <= most:
        raise UsageError(phrase("{steps!}: the order has {} batches", most, steps=steps))
    return order.num_examples if steps == most else order.positions_in_step(steps).start


def _steps(order: LoaderOrder, position: int) -> tuple[int | None, int]:
    """Return (whole batches before a position, examples of the next one before it)."""
    if not order.has_steps:
        return None, 0
    if position == order.num_examples:
        return order.num_steps, 0
    step, within = order.steps_of([position])
    return int(step[0]), int(within[0])


def _first_of(order: LoaderOrder, epoch: int) -> int:
    """Return the first position of an epoch, by halves: epochs come one after the other."""
    low, high = 0, order.num_examples
    while low < high:
        middle = (low + high) // 2
        if int(order.epoch_of([middle])[0]) < epoch:
            low = middle + 1
        else:
            high = middle
    return low


def _left(order: LoaderOrder, consumed: int, epoch: int) -> tuple[int, Int64s | None]:
    """Return how much of an epoch is left, and its positions, None where these are very many.

    Batches of several worker processes may end an epoch in turn, so that it ends by and by.
    """
    pieces: list[Int64s] = []
    num_left = 0
    for start in range(consumed, order.num_examples, CHUNK_SIZE):
        positions = np.arange(start, min(start + CHUNK_SIZE, order.num_examples))
        epochs = order.epoch_of(positions)
        here = positions[epochs == epoch]
        num_left += len(here)
        if num_left <= _MOST_EXAMPLES:
            pieces.append(here)
        if int(epochs.min()) > epoch:
            break
    return num_left, np.concatenate(pieces) if num_left <= _MOST_EXAMPLES else None


def _instructions(order: LoaderOrder, positions: Int64s) -> Reads | None:
    """Return what is at positions (int64[q]) as runs of neighbours, None where they are many."""
    reads = order.reads
    if not len(positions):
        return reads.select(slice(0, 0))
    indices = order.handed_out.indices_at(positions)
    stops = np.cumsum(reads.take)
    rows = np.searchsorted(stops, indices, side="right")
    begins = np.append(True, (np.diff(indices) != 1) | (np.diff(rows) != 0))
    starts = np.flatnonzero(begins)
    if len(starts) > MOST_INSTRUCTIONS:
        return None
    row = rows[starts]
    offset = indices[starts] - (stops[row] - reads.take[row])
    take = np.diff(np.append(starts, len(indices)))
    return replace(reads.select(row), skip=reads.skip[row] + offset, take=take)


def _within_a_batch(consumed: int, in_batch: int) -> tuple[str, ...]:
    if not in_batch:
        return ()
    return (
        f"{consumed} examples end {in_batch} into a batch: the first batch that follows holds what "
        "is left of it, the others are those of the uninterrupted loader",
    )
