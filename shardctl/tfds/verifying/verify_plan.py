"""A plan to resume, run by TensorFlow and TFDS, compared with the rest of the order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import joined
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.order import Order
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.planning.order import order_of, resolved_spec
from shardctl.planning.progress import Progress, Watch
from shardctl.planning.resume.apply_plan import applied
from shardctl.planning.resume.seen import codes_of
from shardctl.planning.verify import (
    StreamMismatch,
    Take,
    Verification,
    Window,
    first_mismatch,
    first_mismatch_in_any_order,
    taken,
)
from shardctl.tfds.training.host_calls import examples_of_host
from shardctl.tfds.verifying.compare import ReadCheck, difference, mismatch_of
from shardctl.tfds.verifying.index_ranges import IndexRanges
from shardctl.tfds.verifying.reading import Pass, Reading
from shardctl.tfds.verifying.real_files import RealFiles
from shardctl.tfds.verifying.window_pass import WindowPass


@checked
def verify_plan(
    dataset: Dataset,
    plan: ResumePlan,
    *,
    take: Take = None,
    watch: Watch | None = None,
) -> Verification:
    """Resume from a plan, with `shardctl.tfds.resume`, and compare with the rest of the order.

    A plan that is exact is compared id by id, to the end of all epochs. One that promises every
    example once is compared by which examples come, until the further epochs begin. A plan for
    other hosts, or made from a log, has no order to be compared with: every host has to read the
    examples that its instructions name, each once. Over index ranges the epoch that the plan
    begins in is read.

    Raises:
        DatasetError: the dataset is not the one that the plan was made for, or as for `verify`.
        MissingDependencyError: as for `verify`.
    """
    plan = applied(plan, dataset)
    num_examples = plan.consumed + plan.remaining_total
    pipeline = plan.pipeline
    # Examples are compared: where the batches end, or that a last one is dropped, is left out.
    plan = replace(plan, settings=replace(plan.settings, batch=None, drop_remainder=False))
    reads = joined([plan.instructions, *(host.instructions for host in plan.hosts)])
    check = _PlanCheck(dataset=dataset, plan=plan, reads=reads, take=take, watch=watch)
    for host in range(len(plan.hosts)) if plan.hosts else [None]:
        if check.difference is None:
            check.run(host)
    return check.answer(
        dataset=dataset,
        spec=plan.spec,
        pipeline=pipeline,
        num_examples=num_examples,
        warnings=plan.warnings,
    )


@dataclass(kw_only=True)
class _PlanCheck(ReadCheck):
    """What is read by a plan, host by host."""

    dataset: Dataset
    plan: ResumePlan

    def run(self, host: int | None) -> None:
        """Compare what one reader of the plan reads."""
        plan = self.plan
        left = self._num_left(host)
        size = taken(self.take, self.read, left)
        if not size:
            return
        start = plan.consumed if self._has_order else 0
        name = None if host is None else f"{host}/{len(plan.hosts)}"
        window = Window(start=start, stop=start + size, read=self.read, host=name)
        progress = Progress(self.watch, "examples", size)

        def opened(batch: int) -> Pass:
            return self._opened(batch, window, host, progress)

        def compare(expected: Iterable[Int64s], found: Iterable[Int64s]) -> StreamMismatch | None:
            if not self._has_order:
                # What the buffer has read beyond the cut of an endless reading may not come out.
                whole = size == left and not self._reads_beyond
                return first_mismatch_in_any_order(expected, found, all_of_them=whole)
            if plan.mode != "exactly-once":
                return first_mismatch(expected, found)
            return self._once_then_in_order(np.concatenate([*expected]), found, size)

        def expected() -> Iterable[Int64s]:
            if not self._has_order:
                return self._instructed(host)
            # Every example of the plan's epoch may come first.
            stop = start + max(size, plan.remaining if plan.mode == "exactly-once" else 0)
            return self._order.chunks(start, stop)

        self.difference = difference(mismatch_of(opened, expected, compare), self._codes, window)
        self.windows.append(window)

    @property
    def _has_order(self) -> bool:
        """Whether what is left is a stretch of the order: the same examples at least."""
        return not (self.plan.hosts or self.plan.from_seen or self._reads_beyond)

    @property
    def _reads_beyond(self) -> bool:
        """Whether the buffer of files that repeat has read beyond the end of the order."""
        return self.plan.mode == "exactly-once" and self.plan.settings.repeat_files

    def _num_left(self, host: int | None) -> int:
        plan = self.plan
        if host is not None:
            return plan.hosts[host].num_examples
        if not self._has_order or self.read == "index ranges":
            return plan.remaining
        return self._order.num_examples - plan.consumed

    def _once_then_in_order(
        self, expected: Int64s, found: Iterable[Int64s], size: int
    ) -> StreamMismatch | None:
        """Compare the rest of the plan's epoch by its examples, those of the next in order."""
        num_once = self.plan.remaining
        pieces = np.concatenate([np.empty(0, np.int64), *found])
        mismatch = first_mismatch_in_any_order(
            [expected[:num_once]], [pieces[:num_once]], all_of_them=num_once <= size
        )
        if mismatch is not None:
            return mismatch
        mismatch = first_mismatch([expected[num_once:]], [pieces[num_once:]])
        return None if mismatch is None else replace(mismatch, offset=num_once + mismatch.offset)

    def _opened(self, batch: int, window: Window, host: int | None, progress: Progress) -> Pass:
        plan = self.plan
        size = window.stop - window.start
        if self.read == "files":
            files = RealFiles.of(self._resolved, self._codes)
            return Pass(files.resumed(plan, host), size=batch, stop=size, progress=progress)
        ranges = IndexRanges(resolved=self._resolved, codes=self._codes)
        if plan.hosts or plan.from_seen or plan.mode == "exactly-once":
            return Pass(self._each_once(ranges, host), size=batch, stop=size, progress=progress)
        return WindowPass(
            ranges.planned(plan), self._order, plan, size=batch, window=window, progress=progress
        )

    def _each_once(self, ranges: IndexRanges, host: int | None) -> Reading:
        plan = self.plan
        reads = plan.instructions if host is None else plan.hosts[host].instructions
        num_held, reads_all = plan.num_pending_instructions, plan.settings.host_mode.reads_all
        if plan.hosts or plan.from_seen or plan.settings.host is None or not reads_all:
            return ranges.planned(plan, reads)
        # What the buffer held is the host's own; the rest its hosts share by `ds.shard`.
        held = ranges.planned(plan, reads.select(slice(0, num_held)))
        rest = ranges.planned(plan, reads.select(slice(num_held, None)))
        shared = examples_of_host(rest.elements, plan.settings)
        return Reading(elements=held.elements.concatenate(shared), codes_of=rest.codes_of)

    def _instructed(self, host: int | None) -> Iterator[Int64s]:
        """Yield the examples that the instructions name."""
        reads = self.plan.instructions if host is None else self.plan.hosts[host].instructions
        firsts = self._codes.first_codes(reads).tolist()
        for first, count in zip(firsts, reads.take.tolist(), strict=True):
            yield np.arange(first, first + count)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_spec(self.dataset, self.plan.spec)

    @cached_property
    def _order(self) -> Order:
        return order_of(self._resolved, self.plan.settings).order

    @cached_property
    def _codes(self) -> ExampleCodes:
        return codes_of(self._resolved)
