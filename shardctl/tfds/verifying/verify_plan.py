"""A plan to resume, run by TensorFlow and TFDS, compared with the rest of the order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.instructions.reads import joined
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress, Watch
from shardctl.core.resume.resume_plan import PlanOrPath, ResumePlan, plan_of_tfds
from shardctl.errors import UsageError
from shardctl.planning.order import resolved_spec
from shardctl.planning.resume.apply_plan import applied
from shardctl.planning.resume.proof import (
    BrokenPromise,
    broken_promises,
    inputs_of_plan,
    left_out,
    planned_anew,
    prove,
    with_reads_of,
    without_dropping,
)
from shardctl.planning.resume.seen import codes_of
from shardctl.planning.verify import (
    StreamMismatch,
    Take,
    Verification,
    Window,
    check_not_nothing,
    first_mismatch,
    first_mismatch_in_any_order,
    taken,
)
from shardctl.tfds.training.global_seed import check_global_seed_of_plan
from shardctl.tfds.training.read_config import FittedPlan, fitted
from shardctl.tfds.verifying.compare import ReadCheck, difference
from shardctl.tfds.verifying.reading import Pass
from shardctl.tfds.verifying.real_files import IndexRanges, RealFiles


@checked
def verify_plan(
    dataset: DatasetLike,
    plan: PlanOrPath,
    *,
    take: Take = None,
    watch: Watch | None = None,
    allow_version: bool = False,
) -> Verification:
    """Resume from a plan, with `shardctl.tfds.resume`, and compare with the rest of the order.

    A plan that is exact is compared id by id, to the end of all epochs. One that promises every
    example once is compared by which examples come, until the further epochs begin. A plan for
    other hosts, or made from a log, has no order to be compared with: every host has to read the
    examples that its instructions name, each once, and then the further epochs as such a host. Of
    one for a buffer without a seed the examples of each epoch are compared, in any order. `take`
    bounds what is read of each reader, and a note says how much that is of what is left. All else
    that the plan says is compared with what it should say. `allow_version` takes a plan of another
    version or config whose files are the same.

    Raises:
        DatasetError: the dataset is not the one that the plan was made for, or as for `verify`.
        UsageError: no pipeline of these settings stops there; the order has no examples; or a
            global seed is in force as for `shardctl.tfds.resume`; a plan with stages.
        UnpredictableOrderError: TensorFlow leaves the order open.
        MissingDependencyError: as for `verify`.
    """
    dataset = as_dataset(dataset)
    plan = plan_of_tfds(plan)
    if plan.sources:
        raise UsageError(
            "verify reads no plan of a pipeline with stages: resume with this plan and its proof "
            "compares it with the order, and verify with the same stages the order with the real "
            "files"
        )
    plan = applied(plan, dataset, allow_version=allow_version)
    check_global_seed_of_plan(plan, dataset)
    num_examples = plan.consumed + plan.remaining_total
    check_not_nothing(resolved_spec(dataset, plan.spec), num_examples, plan.settings.host)
    broken, reads, notes = looked_at(dataset, plan)
    check = _PlanCheck(
        dataset=dataset,
        plan=replace(reads, settings=without_dropping(reads.settings)),
        reads=joined([plan.instructions, *(host.instructions for host in plan.hosts)]),
        take="all" if take == -1 else take,
        watch=watch,
    )
    for host in range(len(plan.hosts)) if plan.hosts else [None]:
        if check.difference is None:
            check.run(host)
    return check.answer(
        dataset=dataset,
        spec=plan.spec,
        pipeline=plan.pipeline,
        num_examples=num_examples,
        warnings=plan.warnings,
        assumptions=plan.assumptions,
        broken=broken,
        notes=(*notes, *check.bounds()),
    )


@dataclass(kw_only=True)
class _PlanCheck(ReadCheck):
    """What is read by a plan, host by host, its last batch whole."""

    dataset: Dataset
    plan: ResumePlan
    num_left: int = field(init=False, default=0)
    _fitted: dict[int | None, FittedPlan] = field(init=False, default_factory=dict)

    def run(self, host: int | None) -> None:
        """Compare what one reader of the plan reads."""
        plan, here = self.plan, self._here(host)
        left = here.num_examples
        if plan.num_further_epochs:
            left += plan.num_further_epochs * here.order.epoch_size
        size = taken(self.take, self.read, left)
        if not size:
            return
        start = plan.consumed if self._has_order else 0
        name = None if host is None else f"{host}/{len(plan.hosts)}"
        window = Window(start=start, stop=start + size, read=self.read, host=name)
        progress = Progress(self.watch, "examples", size)
        source: RealFiles | IndexRanges
        source = IndexRanges(resolved=self._resolved, codes=self._codes)
        if self.read == "files":
            source = RealFiles.of(self._resolved, self._codes)

        def opened(at_once: int) -> Pass:
            alone = replace(plan, settings=replace(plan.settings, batch=None))
            # Where TensorFlow gives up, a batch holds nothing.
            reading = source.resumed(alone if at_once == 1 else plan, host)
            return Pass(reading, size=at_once, stop=size, progress=progress)

        def compare(expected: Iterable[Int64s], found: Iterable[Int64s]) -> StreamMismatch | None:
            if plan.exact:
                return first_mismatch(expected, found)
            return self._epoch_by_epoch(expected, found, host, size)

        self.difference = difference(
            opened, lambda: self._expected(host, size), self._codes, window, compare
        )
        self.windows.append(window)
        self.num_left += left

    def bounds(self) -> Iterator[str]:
        """Yield a note where not all that is left was read."""
        num_read = sum(window.stop - window.start for window in self.windows)
        if not self.windows:
            yield "nothing is left to read; what the plan says was looked at alone"
        if num_read < self.num_left:
            yield phrase(
                "read: the first {:,} of {:,} examples that are left, all epochs counted; "
                "{take=all} reads them all",
                num_read,
                self.num_left,
            )

    @property
    def _has_order(self) -> bool:
        """Whether what is left is a stretch of the order: the same examples at least."""
        plan = self.plan
        unordered = plan.hosts or plan.from_seen or plan.unseeded is not None
        return not (unordered or self._reads_beyond)

    @property
    def _reads_beyond(self) -> bool:
        """Whether the buffer of files that repeat has read beyond the end of the order."""
        return self.plan.mode == "exactly-once" and self.plan.is_one_stream

    def _expected(self, host: int | None, size: int) -> Iterator[Int64s]:
        """Yield what is to come, all of an epoch where it comes in any order."""
        plan, first = self.plan, self._here(host).num_examples
        if plan.exact:
            yield from self._here(host).order.chunks(plan.consumed, plan.consumed + size)
            return
        if plan.unseeded is not None and host is None:
            yield from inputs_of_plan(self._here(host).order, plan)
        elif self._has_order:
            yield from self._here(host).order.chunks(plan.consumed, plan.consumed + first)
        else:
            yield from self._instructed(host)
        if size > first:
            order = self._here(host).order
            start = (plan.epoch + 1) * order.epoch_size
            num_epochs = -(-(size - first) // order.epoch_size)
            yield from order.chunks(start, start + num_epochs * order.epoch_size)

    def _epoch_by_epoch(
        self, expected: Iterable[Int64s], found: Iterable[Int64s], host: int | None, size: int
    ) -> StreamMismatch | None:
        """Compare epochs of no known order by their examples, the others in theirs.

        Of no known order is the one that the plan begins in, and all behind buffers without a seed.
        """
        wanted = np.concatenate([np.empty(0, np.int64), *expected])
        pieces = np.concatenate([np.empty(0, np.int64), *found])
        start, stop = 0, self._here(host).num_examples
        while start < size:
            # What a buffer has read beyond the cut of an endless reading may not come out.
            ones = wanted[start:] if self._reads_beyond else wanted[start:stop]
            end = min(stop, size)
            others = pieces[start:end]
            if not start or self.plan.unseeded is not None:
                whole = stop <= size and not self._reads_beyond
                mismatch = first_mismatch_in_any_order([ones], [others], all_of_them=whole)
            else:
                mismatch = first_mismatch([wanted[start:end]], [others])
            if mismatch is not None:
                return replace(mismatch, offset=start + mismatch.offset)
            start = stop
            if start < size:
                stop += self._here(host).order.epoch_size
        return None

    def _instructed(self, host: int | None) -> Iterator[Int64s]:
        """Yield the examples that the instructions name."""
        reads = self._here(host).reads
        firsts = self._codes.first_codes(reads).tolist()
        for first, count in zip(firsts, reads.take.tolist(), strict=True):
            yield np.arange(first, first + count)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_spec(self.dataset, self.plan.spec)

    def _here(self, host: int | None) -> FittedPlan:
        """Return the plan as one reader reads it."""
        if host not in self._fitted:
            who = self.plan.settings.host if host is None else host  # whoever verifies
            self._fitted[host] = fitted(self.dataset, self.plan, who, allow_version=True)
        return self._fitted[host]

    @cached_property
    def _codes(self) -> ExampleCodes:
        return codes_of(self._resolved)


# What a plan says besides what it reads, looked at before TensorFlow reads it.

MAX_COUNTED = 1 << 26  # examples of a plan without an order that are counted one by one


def looked_at(
    dataset: Dataset, plan: ResumePlan
) -> tuple[tuple[BrokenPromise, ...], ResumePlan, tuple[str, ...]]:
    """Return what a plan says that is not so, and the plan with all right but what it reads.

    Without an order TensorFlow has nothing to be compared with but the instructions, so these are
    counted: whether every example that is left is there once, for all hosts together. The log of a
    plan of the unseen is not here: it is taken to hold what the instructions leave out. Notes say
    what was not counted.

    Raises:
        UsageError: no pipeline of these settings stops there.
        UnpredictableOrderError: TensorFlow leaves the order open.
    """
    if not (plan.hosts or plan.from_seen):
        anew = planned_anew(dataset, plan)
        return broken_promises(plan, anew), with_reads_of(plan, anew), ()
    num_examples = resolved_spec(dataset, plan.spec).num_examples
    if num_examples > MAX_COUNTED:
        note = (
            f"whether the plan reads every example that is left once is not looked at: "
            f"{num_examples:,} examples are more than {MAX_COUNTED:,}"
        )
        return (), plan, (note,)
    seen = left_out(dataset, plan) if plan.from_seen else None
    proof = prove(dataset, plan, seen=seen)
    broken = proof.broken
    allowed = (0, 0) if proof.allowed is None else proof.allowed
    if proof.lost > allowed[0] or proof.repeated > allowed[1]:
        promised = f"at most {allowed[0]:,} lost and {allowed[1]:,} repeated"
        found = f"{proof.lost:,} lost and {proof.repeated:,} repeated"
        each = BrokenPromise(name="file_instructions", promised=promised, found=found)
        broken = (*broken, each)
    return broken, with_reads_of(plan, planned_anew(dataset, plan, seen=seen)), ()
