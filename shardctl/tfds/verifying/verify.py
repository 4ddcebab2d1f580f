"""`verify` and `verify_plan`: an order, or a plan, compared with what TensorFlow and TFDS read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, ranges
from shardctl.base.by_name import provided
from shardctl.base.progress import WATCHING, Progress, Watch, watched_by
from shardctl.base.text import printable
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.resolved_spec import resolved_spec
from shardctl.saved.resume_plan import PlanOrPath, ResumePlan, plan_of_tfds
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import SettingsLike, as_settings, settings_in_force
from shardctl.spec.reads import Reads, joined
from shardctl.spec.subsplit import Resolved
from shardctl.tfds.imports import tensorflow, versions
from shardctl.tfds.training import read_config
from shardctl.tfds.verifying import real_files
from shardctl.verbs.resume import proof
from shardctl.verbs.resume.answer import codes_of
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.rest_of_epoch import without_dropping
from shardctl.verbs.verify import answer as verdict
from shardctl.verbs.verify.answer import FirstDifference, Take, Verification, Window
from shardctl.verbs.verify.verify_files import FileChecks, check_files_read


@checked
def verify(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    take: Take = None,
    watch: Watch | None = None,
    **keywords: Unpack[OrderSettings],
) -> Verification:
    """Read an order with TFDS and compare it with the prediction, id by id; count its files.

    Where the files are not here, or TFDS makes no `tf.data.Dataset` of their format, the pipeline
    runs over index ranges of the same lengths. Of a longer order the beginning is compared, over
    index ranges for more examples, since those cost little.

    With a `loader` the installed library of that loader reads instead, in a process of its own.

    The global seed of TensorFlow is that of the settings meanwhile, and afterwards what it was;
    where the settings have none, one that is in force and changes the order is refused, as
    `shardctl.tfds.pipeline` refuses it.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
        take: how many examples are compared, -1 or "all" for all; None is 100,000 from files,
            2,000,000 over index ranges.
        watch: is called as the work proceeds, with what is counted, how much is done, of how much.

    Returns:
        A Verification: `equal`, or the first example that differs, and the files that are damaged.

    Raises:
        UnpredictableOrderError, UsageError: as for `simulate`; the latter also where the order has
            no examples, since nothing would be compared; a host may have none.
        DatasetError: TFDS cannot open the dataset, or refuses the settings.
        MissingDependencyError: TensorFlow is not installed, or TFDS where it has to read files.

    >>> import shardctl
    >>> shardctl.verify("mnist", "train[:100]").equal  # doctest: +SKIP
    True
    """
    settings = as_settings(settings)
    # Other loaders have their own check, which imports their library in another process.
    if not settings.reader.on_tf_data:
        found: Verification = provided("verify_loader")(
            dataset, spec, settings, take=take, watch=watch
        )
        return found
    planned = plan_order(dataset, spec, settings)
    with watched_by(watch):
        return verify_order(planned, take="all" if take == -1 else take)


def verify_order(planned: PlannedOrder, *, take: Take = None) -> Verification:
    """Compare an order that is known with what TFDS reads, see `verify`."""
    dataset, settings = planned.order.dataset, planned.order.settings
    # From cheap to costly: an empty order, a foreign seed and ambiguous names are found before any
    # reading.
    verdict.check_not_nothing(planned.resolved, planned.order.num_examples, settings.host)
    if settings.global_seed is None:
        read_config.check_global_seed(settings)
    check_names(planned.order)
    check = _Check(planned=planned, reads=planned.order.reads, take=take)
    # tf.data reads the global seed while datasets are built, all of them within this block.
    with read_config.global_seed_of(settings):
        check.run()
    return check.answer(
        dataset=dataset,
        spec=planned.spec,
        pipeline=settings_in_force(settings, ordered=dataset.ordered),
        num_examples=None if planned.order.is_endless else planned.order.num_examples,
        warnings=planned.warnings,
        assumptions=planned.assumptions,
    )


# A real pass compared with what is predicted, up to the first example that differs.

# Returns where what was read first differs from what is expected.
Compare = Callable[[Iterable[Int64s], Iterable[Int64s]], verdict.StreamMismatch | None]


def difference(
    opened: Callable[[int], real_files.Pass],
    expected: Callable[[], Iterable[Int64s]],
    codes: ExampleCodes,
    window: Window,
    compare: Compare = verdict.first_mismatch,
) -> FirstDifference | None:
    """Return where a pass first differs from what is expected of a window, None where it does not.

    `opened` begins a pass that takes so many examples at a time. Where TensorFlow gives up, a whole
    batch is lost, so the examples are then read again one by one.
    """
    # Fast in large batches. If TensorFlow gives up, what it yielded before is lost with the batch,
    # so it is read again one by one.
    for size in (real_files.BATCH_SIZE, 1):
        read = opened(size)
        mismatch = compare(expected(), read)
        # After one error-free round, or after the slow one, the answer stands.
        if read.reason is None or size == 1:
            break
    if mismatch is None and read.reason is not None:
        # All is as expected, and TensorFlow fails at the end.
        mismatch = verdict.StreamMismatch(offset=read.num_done, expected=None, found=None)
    if mismatch is None:
        return None

    def names(code: int | None) -> tuple[Any, str | None]:
        if code is None:
            return None, None
        # Codes below 0 are names that are no example of the dataset.
        if code < 0:
            name = printable(read.reading.unknown(code), 1000)
            return name, name
        # Without files there are no tfds_ids.
        has_files = any(split.files for split in codes.dataset.splits)
        return codes.ids(np.array([code]))[0], codes.tfds_ids([code])[0] if has_files else None

    expected_id, expected_tfds_id = names(mismatch.expected)
    found_id, found_tfds_id = names(mismatch.found)
    return FirstDifference(
        position=window.start + mismatch.offset,
        expected=expected_id,
        found=found_id,
        expected_tfds_id=expected_tfds_id,
        found_tfds_id=found_tfds_id,
        read=window.read,
        host=window.host,
        # TensorFlow may have given up beyond the position where they differ.
        reason=read.reason if mismatch.found is None else None,
    )


@dataclass(kw_only=True)
class ReadCheck:
    """Windows that are compared one after the other until one of them differs.

    `reads` are rows of all files that are read; where those are not here, or not readable, `read`
    is "index ranges".
    """

    reads: Reads
    take: Take
    read: verdict.Source = field(init=False, default="files")
    windows: list[Window] = field(init=False, default_factory=list)
    notes: list[str] = field(init=False, default_factory=list)
    difference: FirstDifference | None = field(init=False, default=None)
    checks: FileChecks = field(init=False)

    def __post_init__(self) -> None:
        # Checked before anything is opened.
        verdict.check_take(self.take)
        tensorflow()
        reason = real_files.why_not_files(self.reads)
        # Before TensorFlow opens any of them: it dies of some lengths, and waits at a FIFO.
        self.checks = check_files_read(self.reads, WATCHING.get())
        # The first reason wins, but the files are checked in either case.
        reason = reason or self.checks.deadly
        if reason is not None:
            self.read = "index ranges"
            self.notes.append(reason)

    @staticmethod
    def source(
        read: verdict.Source, resolved: Resolved, codes: ExampleCodes
    ) -> real_files.RealFiles | real_files.IndexRanges:
        """Return what reads a spec, by its files or over index ranges."""
        if read == "files":
            return real_files.RealFiles.of(resolved, codes)
        return real_files.IndexRanges(resolved=resolved, codes=codes)

    def answer(self, **said: Any) -> Verification:
        """Return what came out, and what is wrong with the files; `said` are the other fields."""
        return Verification(
            read=self.read,
            windows=tuple(self.windows),
            first_difference=self.difference,
            num_files=self.checks.num_files,
            files=self.checks.findings,
            versions=versions(),
            notes=(*said.pop("notes", ()), *self.notes, *self.checks.notes),
            **said,
        )


@dataclass(kw_only=True)
class _Check(ReadCheck):
    """The beginning of an order."""

    planned: PlannedOrder

    def run(self) -> None:
        """Compare what files hold, and of a longer order more examples over index ranges."""
        order, total = self.planned.order, self.planned.order.num_examples
        # Earlier passes or a large buffer would be read from files for nothing that is compared.
        before = order.settings.pass_index * order.num_examples
        before += min(order.num_buffered or 0, order.stream_size)
        if self.read == "files" and self.take != "all" and before > verdict.BUDGETS["files"]:
            self.read = "index ranges"
            self.notes.append(
                "index ranges are read: earlier passes or a buffer come before what is "
                "compared; --take -1 reads the files"
            )
        take = verdict.taken(self.take, self.read, total)
        # An endless order has no "all".
        if order.is_endless and self.take in (None, "all"):
            take = verdict.BUDGETS[self.read]
        windows = [Window(start=0, stop=take, read=self.read)] if take else []
        # Both: a short beginning from the files, and a longer one over index ranges.
        if self.read == "files" and take < total and not order.is_endless:
            # Ranges cost little: as many times more examples as the budgets differ.
            num_ranges = verdict.BUDGETS["index ranges"] // verdict.BUDGETS["files"] * take
            windows.insert(0, Window(start=0, stop=min(total, num_ranges), read="index ranges"))
        self._progress = Progress(
            "examples", sum(one.stop for one in windows), per_second=1_000_000
        )
        for window in windows:
            if self.difference is None:
                self._compare(order, window)
                self.windows.append(window)

    def _compare(self, order: Order, window: Window) -> None:
        """Compare the beginning of a pass with what the pipeline itself yields."""
        pass_index = order.settings.pass_index
        source = self.source(window.read, self.planned.resolved, order.codes)

        def opened(size: int) -> real_files.Pass:
            settings = order.settings
            if size == 1:  # a batch in which TensorFlow gives up holds nothing
                settings = replace(settings, batch=None, drop_remainder=False)
            reading = source.pipeline(settings)
            # A pass to the end is not cut, so that an example too many is noticed.
            whole = window.stop == order.num_examples and settings.batch == order.settings.batch
            in_fit = bool(pass_index) and settings.loop == "keras-fit"
            if not in_fit:
                # Earlier passes use up seeds; in `fit` the recorder reads them itself.
                real_files.iterate_whole(reading, pass_index)
            return real_files.Pass(
                reading=reading,
                size=size,
                stop=None if whole else window.stop,
                fit_epoch=pass_index if in_fit else None,
                progress=self._progress,
            )

        self.difference = difference(
            opened, lambda: order.chunks(0, window.stop), order.codes, window
        )


def check_names(order: Order) -> None:
    """Refuse datasets whose files have the same names, which tfds_ids do not tell apart.

    Raises:
        UsageError: two readers read such files.
    """
    # One reader cannot be confused with another.
    if len(order.sources) < 2:
        return
    # The first example of each split that has any: its id must lead back to one place.
    firsts = order.codes.bases[
        [i for i, split in enumerate(order.dataset.splits) if split.files and split.num_examples]
    ]
    for name in order.codes.tfds_ids(np.unique(firsts)):
        order.codes.parse_tfds_id(name)


# A plan to resume, run by TensorFlow and TFDS, compared with the rest of the order.


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

    A plan that is exact is compared id by id, to the end of all epochs. Of another the rest of the
    epoch that it begins in is read, and compared by which examples come: those of the order, or
    where that does not continue (other hosts, a log, a buffer without a seed) those that each
    reader's instructions name. `take` bounds what is read of each reader, and a note says how much
    that is of what is left. All else that the plan says is compared with what it should say.
    `allow_version` takes a plan of another version or config whose files are the same.

    Raises:
        DatasetError: the dataset is not the one that the plan was made for, or as for `verify`.
        UsageError: no pipeline of these settings stops there; the order has no examples; or a
            global seed is in force as for `shardctl.tfds.resume`; a plan with stages.
        UnpredictableOrderError: the order is nondeterministic.
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
    read_config.check_global_seed_of_plan(plan)
    # Both halves of the order: what was consumed and what is left.
    num_examples = plan.consumed + plan.remaining_total
    verdict.check_not_nothing(resolved_spec(dataset, plan.spec), num_examples, plan.settings.host)
    broken, reads, notes = looked_at(dataset, plan)
    with watched_by(watch):
        # With drop_remainder the last partial batch would be dropped, and its examples never
        # compared.
        check = _PlanCheck(
            dataset=dataset,
            plan=replace(reads, settings=without_dropping(reads.settings)),
            reads=joined([plan.instructions, *(host.instructions for host in plan.hosts)]),
            take="all" if take == -1 else take,
        )
        # One reader after the other, until something differs.
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

    def run(self, host: int | None) -> None:
        """Compare what one reader of the plan reads."""
        plan = self.plan
        who = plan.settings.host if host is None else host  # whoever verifies
        here = read_config.fitted(self.dataset, plan, who, allow_version=True)
        left = here.num_examples
        # Only if there are further epochs: a plan without an order may have none to ask.
        if plan.num_further_epochs:
            left += plan.num_further_epochs * here.order.epoch_size
        # Further epochs are those of the order, which only an exact plan continues.
        size = verdict.taken(self.take, self.read, left if plan.exact else here.num_examples)
        self.num_left += left
        if not size:
            return
        # Positions count from the start of the order where there is one, else from the start of the
        # plan.
        start = plan.consumed if self._has_order else 0
        name = None if host is None else f"{host}/{len(plan.hosts)}"
        window = Window(start=start, stop=start + size, read=self.read, host=name)
        progress = Progress("examples", size)
        source = self.source(self.read, self._resolved, self._codes)

        def opened(at_once: int) -> real_files.Pass:
            alone = replace(plan, settings=replace(plan.settings, batch=None))
            # Where TensorFlow gives up, a batch holds nothing.
            reading = source.resumed(alone if at_once == 1 else plan, host)
            return real_files.Pass(reading=reading, size=at_once, stop=size, progress=progress)

        def compare(
            expected: Iterable[Int64s], found: Iterable[Int64s]
        ) -> verdict.StreamMismatch | None:
            # In order where the plan promises it; otherwise the same examples in any order.
            if plan.exact:
                return verdict.first_mismatch(expected, found)
            # What a buffer has read beyond the cut of an endless reading may not come out.
            whole = size == here.num_examples and not self._reads_beyond
            return verdict.first_mismatch_in_any_order(expected, found, all_of_them=whole)

        self.difference = difference(
            opened, lambda: self._expected(here, host, size), self._codes, window, compare
        )
        self.windows.append(window)

    def bounds(self) -> Iterator[str]:
        """Yield a note where not all that is left was read."""
        num_read = sum(window.stop - window.start for window in self.windows)
        if not self.windows:
            yield "nothing is left to read; what the plan says was looked at alone"
        if num_read < self.num_left:
            yield (
                f"read: the first {num_read:,} of {self.num_left:,} examples that are left, all "
                "epochs counted; --take -1 reads what a plan says of their order"
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

    def _expected(
        self, here: read_config.FittedPlan, host: int | None, size: int
    ) -> Iterator[Int64s]:
        """Yield what is to come, of no known order all."""
        plan = self.plan
        # From the most to the least that is known: an order, the input of a buffer, a part of an
        # order, only instructions.
        if plan.exact:
            yield from here.order.chunks(plan.consumed, plan.consumed + size)
        elif plan.unseeded is not None and host is None:
            yield from proof.inputs_of_plan(here.order, plan)
        elif self._has_order:
            yield from here.order.chunks(plan.consumed, plan.consumed + here.num_examples)
        else:
            # Codes of a file are consecutive, so each instruction is a range of codes.
            yield ranges(self._codes.first_codes(here.reads), here.reads.take)

    @cached_property
    def _resolved(self) -> Resolved:
        return resolved_spec(self.dataset, self.plan.spec)

    @cached_property
    def _codes(self) -> ExampleCodes:
        return codes_of(self._resolved)


# What a plan says besides what it reads, looked at before TensorFlow reads it.

MAX_COUNTED = 1 << 26  # examples of a plan without an order that are counted one by one


def looked_at(
    dataset: Dataset, plan: ResumePlan
) -> tuple[tuple[proof.BrokenPromise, ...], ResumePlan, tuple[str, ...]]:
    """Return what a plan says that is not so, and the plan with all right but what it reads.

    Without an order TensorFlow has nothing to be compared with but the instructions, so these are
    counted: whether every example that is left is there once, for all hosts together. The log of a
    plan of the unseen is not here: it is taken to hold what the instructions leave out. Notes say
    what was not counted.

    Raises:
        UsageError: no pipeline of these settings stops there.
        UnpredictableOrderError: the order is nondeterministic.
    """
    # For one reader the plan is made again from its settings and compared field by field.
    if not (plan.hosts or plan.from_seen):
        anew = proof.planned_anew(dataset, plan)
        return proof.broken_promises(plan, anew), proof.with_reads_of(plan, anew), ()
    # Counting needs memory for each example.
    num_examples = resolved_spec(dataset, plan.spec).num_examples
    if num_examples > MAX_COUNTED:
        note = (
            f"whether the plan reads every example that is left once is not looked at: "
            f"{num_examples:,} examples are more than {MAX_COUNTED:,}"
        )
        return (), plan, (note,)
    # Everything that the instructions leave out is taken as seen.
    seen = proof.left_out(dataset, plan) if plan.from_seen else None
    proven = proof.prove(dataset, plan, seen=seen)
    broken = proven.broken
    # What a mode may lose and repeat, or nothing.
    allowed = (0, 0) if proven.allowed is None else proven.allowed
    if proven.lost > allowed[0] or proven.repeated > allowed[1]:
        promised = f"at most {allowed[0]:,} lost and {allowed[1]:,} repeated"
        found = f"{proven.lost:,} lost and {proven.repeated:,} repeated"
        each = proof.BrokenPromise(name="file_instructions", promised=promised, found=found)
        broken = (*broken, each)
    return broken, proof.with_reads_of(plan, proof.planned_anew(dataset, plan, seen=seen)), ()
