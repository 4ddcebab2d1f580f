"""The order of a pipeline and the files it reads, compared with TensorFlow and TFDS themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.dataset.dataset import DatasetLike
from shardctl.core.order.order import Order
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress, Watch
from shardctl.core.provided import provided
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.read_settings import SettingsLike, as_settings
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.verify import BUDGETS, Take, Verification, Window, check_not_nothing, taken
from shardctl.tfds.training.global_seed import check_global_seed, global_seed_of
from shardctl.tfds.verifying.compare import ReadCheck, difference
from shardctl.tfds.verifying.reading import Pass, iterate_whole
from shardctl.tfds.verifying.real_files import IndexRanges, RealFiles


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
    runs over index ranges of the same lengths. Of a longer order the beginning is compared, over
    index ranges for more examples, since those cost little.

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
    """The beginning of an order."""

    planned: PlannedOrder

    def run(self) -> None:
        """Compare what files hold, and of a longer order more examples over index ranges."""
        order, total = self.planned.order, self.planned.order.num_examples
        if self.read == "files" and self.take != "all" and self._has_long_way(order):
            self.read = "index ranges"
            self.notes.append(
                phrase(
                    "index ranges are read: earlier passes or a buffer come before what is "
                    "compared; {take=all} reads the files"
                )
            )
        take = taken(self.take, self.read, total)
        if order.is_endless and self.take in (None, "all"):
            take = BUDGETS[self.read]
        windows = [Window(start=0, stop=take, read=self.read)] if take else []
        if self.read == "files" and take < total and not order.is_endless:
            num_ranges = BUDGETS["index ranges"] // BUDGETS["files"] * take
            windows.insert(0, Window(start=0, stop=min(total, num_ranges), read="index ranges"))
        self._progress = Progress(
            self.watch, "examples", sum(one.stop for one in windows), per_second=1_000_000
        )
        for window in windows:
            if self.difference is None:
                self._compare(order, window)
                self.windows.append(window)

    def _has_long_way(self, order: Order) -> bool:
        """Return whether much is read before anything is handed out."""
        before = order.settings.pass_index * order.num_examples
        return before + min(order.num_buffered or 0, order.stream_size) > BUDGETS["files"]

    def _compare(self, order: Order, window: Window) -> None:
        """Compare the beginning of a pass with what the pipeline itself hands out."""
        resolved, pass_index = self.planned.resolved, order.settings.pass_index
        source: RealFiles | IndexRanges = IndexRanges(resolved=resolved, codes=order.codes)
        if window.read == "files":
            source = RealFiles.of(resolved, order.codes)

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

        self.difference = difference(
            opened, lambda: order.chunks(0, window.stop), order.codes, window
        )


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
