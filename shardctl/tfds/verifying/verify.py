"""The order of a pipeline and the files it reads, compared with TensorFlow and TFDS themselves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import DatasetLike
from shardctl.core.order.order import Order
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress, Watch
from shardctl.core.provided import provided
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.read_settings import SettingsLike, as_settings
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.resume.resume import resume_order
from shardctl.planning.verify import (
    BUDGETS,
    Source,
    Take,
    Verification,
    Window,
    check_not_nothing,
    cut_at_epochs,
    spread_windows,
    taken,
)
from shardctl.tfds.training.global_seed import check_global_seed, global_seed_of
from shardctl.tfds.verifying.compare import ReadCheck, difference, mismatch_of
from shardctl.tfds.verifying.reading import Pass, iterate_whole
from shardctl.tfds.verifying.real_files import IndexRanges, RealFiles

# A buffer that continues takes about two seconds for a million inputs on the way to a window.
_REACH = 2_000_000


@checked
def verify(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    take: Take = None,
    watch: Watch | None = None,
) -> Verification:
    """Read an order with TFDS and compare it with the prediction, id by id; count its files.

    Where the files are not here, or TFDS makes no `tf.data.Dataset` of their format, the pipeline
    runs over index ranges of the same lengths. Of a longer order windows are compared from its
    start to its end, each read from a plan to resume that begins there. What such plans take for
    granted, the order of the files for one, is then compared over index ranges from the start,
    for more examples, since those cost little.

    With a `loader` the installed library of that loader reads instead, in a process of its own.

    The global seed of TensorFlow is that of the settings meanwhile, and afterwards what it was;
    where the settings have none, one that is in force and changes the order is refused, as
    `shardctl.tfds.pipeline` refuses it.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: how it is read: a ReadSettings, or a dict of its values.
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
    if not settings.reader.on_tf_data:
        found: Verification = provided("verify_loader")(
            dataset, spec, settings, take=take, watch=watch
        )
        return found
    planned = plan_order(dataset, spec, settings)
    return verify_order(planned, take="all" if take == -1 else take, watch=watch)


def verify_order(
    planned: PlannedOrder, *, take: Take = None, watch: Watch | None = None
) -> Verification:
    """Compare an order that is known with what TFDS reads, see `verify`."""
    dataset, settings = planned.order.dataset, planned.order.settings
    check_not_nothing(planned.resolved, planned.order.num_examples, settings.host)
    if settings.global_seed is None:
        check_global_seed(settings, lambda: len(planned.order.reads))
    check_names(planned.order)
    check = _Check(planned=planned, reads=planned.order.reads, take=take, watch=watch)
    with global_seed_of(settings):
        check.run()
    return check.answer(
        dataset=dataset,
        spec=planned.spec,
        pipeline=settings_in_force(settings, ordered=dataset.ordered),
        num_examples=None if planned.order.is_endless else planned.order.num_examples,
        warnings=planned.warnings,
        assumptions=planned.assumptions,
    )


@dataclass(kw_only=True)
class _Check(ReadCheck):
    """Windows of an order."""

    planned: PlannedOrder

    @property
    def order(self) -> Order:
        """The order that is compared."""
        return self.planned.order

    @property
    def _has_start_alone(self) -> bool:
        """Whether what comes later is read from the start too, as of stages."""
        return self.order.continued_by != "file_instructions"

    def run(self) -> None:
        total = self.order.num_examples
        take = taken(self.take, self.read, total)
        if self._has_start_alone:
            if self.order.is_endless and self.take in (None, "all"):
                take = BUDGETS[self.read]
            total = take
        buffered = self.order.num_buffered is not None
        parts = spread_windows(
            total, take, epoch_size=self.order.stream_size, reach=_REACH if buffered else None
        )
        checks: list[tuple[Window, Callable[[Window], bool]]] = []
        for start, stop in parts:
            window = Window(start=start, stop=stop, read=self.read)
            if start == 0 and self._can_read_from_start(window, take):
                checks.append((window, self._from_start))
                continue
            for begin, end in cut_at_epochs(start, stop, self.order.stream_size):
                checks.append((replace(window, start=begin, stop=end), self._from_plan))
        if self.read == "files" and (len(checks) > 1 or checks[0][1] == self._from_plan):
            num_ranges = BUDGETS["index ranges"] // BUDGETS["files"] * take
            window = Window(start=0, stop=min(total, num_ranges), read="index ranges")
            if self._can_read_from_start(window, num_ranges):
                checks.insert(0, (window, self._from_start))
        self._progress = Progress(
            self.watch, "examples", sum(w.stop - w.start for w, _ in checks), per_second=1_000_000
        )
        for window, compare in checks:
            if self.difference is None and compare(window):
                self.windows.append(window)

    def _can_read_from_start(self, window: Window, take: int) -> bool:
        """Whether it costs little more to read up to a window than to read it.

        Earlier passes are read whole; a buffer is filled before it hands out anything.
        """
        cost = self.order.settings.pass_index * self.order.num_examples + window.stop
        if self.order.num_buffered is not None:
            cost += min(self.order.num_buffered, self.order.stream_size)
        if self._has_start_alone:
            return True
        return self.take == "all" or cost <= self._most(window.read, take)

    def _most(self, read: Source, take: int) -> int:
        return max(2 * take, BUDGETS[read])

    def _from_start(self, window: Window) -> bool:
        """Compare the beginning of a pass with what the pipeline itself hands out."""
        order, source = self.order, self._source(window.read)
        pass_index = order.settings.pass_index

        def opened(size: int) -> Pass:
            settings = order.settings
            if size == 1:  # a batch in which TensorFlow gives up holds nothing
                settings = replace(settings, batch=None, drop_remainder=False)
            reading = source.pipeline(settings)
            whole = window.stop == order.num_examples and settings.batch == order.settings.batch
            in_fit = bool(pass_index) and settings.loop == "keras-fit"
            if not in_fit:
                iterate_whole(reading, pass_index)
            return Pass(
                reading,
                size=size,
                stop=None if whole else window.stop,
                fit_epoch=pass_index if in_fit else None,
                progress=self._progress,
            )

        return self._compare(window, opened)

    def _from_plan(self, window: Window) -> bool:
        """Compare a stretch of an epoch with what is read by a plan that begins there."""
        order = self.planned.of_reader
        plan = resume_order(self.planned, consumed=window.start, mode="exact-order")
        take = taken(self.take, self.read, order.num_examples)
        if self.take != "all" and num_inputs_read(plan, window) > self._most(window.read, take):
            self.notes.append(
                phrase(
                    "positions {:,} to {:,} are left out: the buffer takes {:,} examples before it "
                    "hands them out; {take=all} reads them",
                    window.start,
                    window.stop - 1,
                    order.num_buffered,
                )
            )
            return False
        source, stop = self._source(window.read), window.stop - window.start
        alone = replace(plan.settings, batch=None, drop_remainder=False)
        plan = replace(plan, settings=alone, num_further_epochs=0)  # a window is of one epoch

        def opened(size: int) -> Pass:
            return Pass(source.resumed(plan, None), size=size, stop=stop, progress=self._progress)

        return self._compare(window, opened)

    def _compare(self, window: Window, opened: Callable[[int], Pass]) -> bool:
        mismatch = mismatch_of(opened, lambda: self.order.chunks(window.start, window.stop))
        self.difference = difference(mismatch, self.order.codes, window)
        return True

    def _source(self, read: Source) -> RealFiles | IndexRanges:
        return self._files if read == "files" else self._ranges

    @cached_property
    def _files(self) -> RealFiles:
        return RealFiles.of(self.planned.resolved, self.order.codes)

    @cached_property
    def _ranges(self) -> IndexRanges:
        return IndexRanges(resolved=self.planned.resolved, codes=self.order.codes)


def check_names(order: Order) -> None:
    """Refuse datasets whose files have the same names, which tfds_ids do not tell apart.

    Raises:
        UsageError: two readers read such files.
    """
    if len(order.sources) < 2:
        return
    firsts = order.codes.bases[
        [i for i, split in enumerate(order.dataset.splits) if split.files and split.num_examples]
    ]
    for name in order.codes.tfds_ids(np.unique(firsts)):
        order.codes.parse_tfds_id(name)


def num_inputs_read(plan: ResumePlan, window: Window) -> int:
    """Return how many examples are read from the beginning of a plan to the end of a window."""
    size, state = window.stop - window.start, plan.shuffle
    if state is None:
        return size
    # The buffer takes its next input only when it is asked for the output after.
    last = min(state.num_elements, state.emitted + size - 1 + state.buffer_size)
    return max(last - state.num_read, 0)
