"""A plan read over index ranges: the epoch it begins in by its instructions, then whole epochs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from shardctl.core.order.order import Order
from shardctl.core.progress import Progress
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.planning.verify import Window
from shardctl.tfds.calls.host_calls import examples_of_host
from shardctl.tfds.verifying.index_ranges import IndexRanges
from shardctl.tfds.verifying.plan_passes import PassesInTurn
from shardctl.tfds.verifying.reading import Pass, Reading
from shardctl.tfds.verifying.window_pass import WindowPass


def pass_over_ranges(
    plan: ResumePlan,
    ranges: IndexRanges,
    order: Callable[[], Order],
    *,
    num_first: int,
    window: Window,
    batch: int,
    progress: Progress,
) -> PassesInTurn:
    """Return what one reader of a plan reads, whose own instructions the plan has.

    `num_first` examples are in the epoch that the plan begins in. `order` gives that of the reader;
    it is not asked where no epoch follows and no order is kept.
    """
    size = window.stop - window.start
    sizes = [min(size, num_first)]
    passes: list[Pass] = []
    if not plan.exact:
        reading = _each_once(plan, ranges)
        passes.append(Pass(reading, size=batch, stop=sizes[0], progress=progress))
    else:
        first = replace(window, stop=window.start + sizes[0])
        reading = ranges.planned(plan)
        passes.append(
            WindowPass(reading, order(), plan, size=batch, window=first, progress=progress)
        )
    epoch = plan.epoch
    while sum(sizes) < size:
        epoch += 1
        sizes.append(min(size - sum(sizes), order().epoch_size))
        reading = ranges.epoch(order(), epoch)
        passes.append(Pass(reading, size=batch, stop=sizes[-1], progress=progress))
    return PassesInTurn(passes, sizes)


def _each_once(plan: ResumePlan, ranges: IndexRanges) -> Reading:
    reads, num_held = plan.instructions, plan.num_pending_instructions
    reads_all = plan.settings.host_mode.reads_all
    if plan.hosts or plan.from_seen or plan.settings.host is None or not reads_all:
        return ranges.planned(plan, reads)
    # What the buffer held is the host's own; the rest its hosts share by `ds.shard`.
    held = ranges.planned(plan, reads.select(slice(0, num_held)))
    rest = ranges.planned(plan, reads.select(slice(num_held, None)))
    shared = examples_of_host(rest.elements, plan.settings)
    return Reading(elements=held.elements.concatenate(shared), codes_of=rest.codes_of)
