"""How does another loader than TFDS's go on exactly where it stopped?"""

from __future__ import annotations

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads
from shardctl.core.loaders.library import library_of
from shardctl.core.loaders.stop import Stop
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.order.order import CHUNK_SIZE, NONE
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.planning.order import PlannedOrder, order_of
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.rest_of_epoch import (
    consumed_examples,
    epoch_at,
    plan_of,
    reads_of_codes,
    within_a_batch,
)

MOST_INSTRUCTIONS = 100_000  # that a plan lists
_MOST_EXAMPLES = 1 << 24  # left in an epoch, of which instructions are made


def resume_loader_order(
    planned: PlannedOrder, *, consumed: int | None = None, steps: int | None = None
) -> ResumePlan:
    """Return how a loader of a known order goes on; see `resume`."""
    order = planned.order
    assert isinstance(order, LoaderOrder)
    consumed = consumed_examples(order, consumed=consumed, steps=steps)
    stop = _stop(order, consumed)
    num_left, left = _left(order, consumed, stop.epoch)
    found = None if left is None else reads_of_codes(order, order.codes_at(left))
    if found is not None and len(found) > MOST_INSTRUCTIONS:
        found = None
    settings, library = order.settings, library_of(order.loader)
    return plan_of(
        planned,
        settings,
        consumed=consumed,
        epoch=stop.epoch,
        remaining=num_left,
        remaining_total=order.num_examples - consumed,
        instructions=order.reads.select(slice(0, 0)) if found is None else found,
        num_further_epochs=settings.epochs - 1 - stop.epoch if num_left else 0,
        after_read=library.calls(order.asked, stop),
        continued_by=order.continued_by,
        stop=stop,
        advice=(
            *library.advice(order.asked, stop),
            *_not_listed(found, consumed, num_left),
            *_epochs_mixed(left, stop.epoch),
        ),
        warnings=(*planned.warnings, *within_a_batch(order, consumed, order.continued_by)),
    )


def order_of_plan(plan: ResumePlan) -> LoaderOrder:
    """Return the order of a plan whose files are found in a dataset."""
    dataset: Dataset = plan.instructions.dataset
    order = order_of(resolved_reading(dataset, plan.spec, plan.settings), plan.settings).order
    # The settings of a plan name a version, of which nothing is assumed any more.
    said = [text for text in plan.assumptions if text not in order.assumptions]
    return LoaderOrder(order.dataset, order.ranges, order.settings, assumptions=said)


def _stop(order: LoaderOrder, consumed: int) -> Stop:
    epoch = epoch_at(order, consumed)
    first = _first_of(order, epoch)
    done, in_batch = _steps(order, consumed)
    before, _ = _steps(order, first)
    return Stop(
        consumed=consumed,
        epoch=epoch,
        in_epoch=consumed - first,
        steps=done,
        steps_in_epoch=None if done is None or before is None else done - before,
        in_batch=in_batch,
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
    pieces = [NONE]
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
