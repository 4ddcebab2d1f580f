"""`rehearse`: a run in real tf.data over stand-in records, stopped, resumed, and counted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s
from shardctl.base.progress import Progress, Watch, watched_by
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.sources import without_stages
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    settings_in_force,
)
from shardctl.tfds.imports import versions
from shardctl.tfds.inspecting.script import ScriptFunction, chosen
from shardctl.tfds.inspecting.inspect import inspected
from shardctl.tfds.inspecting.watch import Lines
from shardctl.tfds.verifying.real_files import IndexRanges, Pass, Reading, iterate_whole
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.rehearse.answer import HostRun, Rehearsal, count_runs
from shardctl.verbs.resume.answer import codes_of, resume_order
from shardctl.verbs.resume.hosts import old_orders, resume_on_hosts, undropped

MAX_EXAMPLES = 1 << 25  # that are read before, after and without a stop, one by one
_OVER = "each record was replaced by its number, in files of the same lengths"
# What makes the reading of each resumed host, after as many examples of each old one and a step.
Resume = Callable[[Sequence[int], int], "list[tuple[Order, Reading]]"]


@checked
def rehearse(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int = 1,
    to_hosts: int | None = None,
    kill_at: int | None = None,
    save_every: int | None = None,
    seed: int | None = None,
    watch: Watch | None = None,
    **keywords: Unpack[OrderSettings],
) -> Rehearsal:
    """Run a pipeline in tf.data over stand-in records, stop it, resume it, and count the examples.

    Each record is replaced by its number; files have the lengths of the real ones. The hosts run one
    after the other: to their end, once more until the stop, and from there on by the plan of
    `resume`, or on another number of hosts by that of `resume_on_hosts`. No file is read.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: those of the job, without a host.
        hosts: how many hosts run until the stop; to_hosts: how many resume, None for as many.
        kill_at: the step at which they stop, an element of the pipeline; None draws one by `seed`.
        save_every: a checkpoint each so many steps, from the last of which they resume.
        seed: of the random step; None draws one, which the answer has.
        watch: is called as the work proceeds.

    Raises:
        UsageError: no such step, no end, too many examples, stages that plans of file instructions
            do not resume, or another loader than TFDS's.
        MissingDependencyError: TensorFlow is not installed.

    >>> import shardctl
    >>> layout = shardctl.read_dataset("mnist")
    >>> shardctl.rehearse(layout, "train[:64]", hosts=2, to_hosts=3, kill_at=9).lost  # doctest: +SKIP
    0
    """
    given, source = as_settings(settings), as_dataset(dataset)
    source, spec, read = without_stages(source, spec, given)
    if read.host is not None:
        raise UsageError("a host in the settings: all hosts are rehearsed; give hosts=N instead")
    if not read.reader.on_tf_data:
        raise UsageError(f"loader {read.reader.name}: rehearse runs tf.data alone")
    pipeline = settings_in_force(read, ordered=source.ordered)
    what = {"dataset": source, "spec": spec, "pipeline": pipeline, "function": None}
    rehearsal = _Rehearsing(
        hosts=hosts, to_hosts=to_hosts, kill_at=kill_at, save_every=save_every, seed=seed
    )
    with watched_by(watch):
        try:
            planned = (
                old_orders(source, spec, read, hosts)
                if hosts > 1
                else [plan_order(source, spec, read)]
            )
        except UnpredictableOrderError as error:
            return rehearsal.refused(str(error), **what)
        what["spec"] = planned[0].spec
        return rehearsal.run(planned, (source, spec, read), **what)


def rehearse_script(
    function: Callable[[dict[str, int]], ScriptFunction],
    *,
    told: bool,
    resumes: bool,
    only: str | None = None,
    index: str | None = None,
    **how: Any,
) -> Rehearsal:
    """Rehearse the pipelines that a function of a script makes, see `rehearse`.

    function: the function, called for what stands for {host}, {hosts} and {step}.
    told: whether it is told which host it is; resumes: whether it is given the step to resume from.

    Raises:
        UsageError: it fails, reads no dataset, several, or is not told its host though there are
            several; and as for `rehearse`.
    """
    rehearsal = _Rehearsing(**how)
    name = str(function({"host": 0, "hosts": rehearsal.hosts, "step": 0}))
    if not told and max(rehearsal.hosts, rehearsal.to_hosts or 1) > 1:
        raise UsageError(
            f"{name} is not told which host it is, so that all hosts would read the same; give it "
            "as arguments, as in -- host={host} hosts={hosts}"
        )

    def made(host: int, hosts: int, step: int) -> Inspection:
        lines = Lines()
        script = function({"host": host, "hosts": hosts, "step": step})
        datasets = chosen(script, lines, only=only, index=index)
        if len(datasets) > 1:
            raise UsageError(f"{name} returns several datasets; choose one with --only NAME")
        (one,) = datasets.values()
        found = inspected(one, lines=lines, loop="python")
        if found.dataset is None or found.datasets or not found.settings.reader.on_tf_data:
            raise UsageError(f"{name} reads no single dataset of TFDS, which rehearse needs")
        return found

    first = made(0, rehearsal.hosts, 0)
    assert first.dataset is not None
    what: dict[str, Any] = {
        "dataset": first.dataset,
        "spec": first.spec,
        "pipeline": settings_in_force(first.settings, ordered=first.dataset.ordered),
        "function": name,
        "assumptions": first.assumptions,
    }
    try:
        others = [made(host, rehearsal.hosts, 0) for host in range(1, rehearsal.hosts)]
        planned = [one.order() for one in (first, *others)]

        def by_function(_: Sequence[int], step: int) -> list[tuple[Order, Reading]]:
            count = rehearsal.to_hosts or rehearsal.hosts
            orders = [made(host, count, step).order() for host in range(count)]
            return [(one.order, _reading(one)) for one in orders]

        if resumes:
            return rehearsal.run(planned, by_function, resumed_by="function", **what)
        shared = None
        if rehearsal.to_hosts not in (None, rehearsal.hosts):
            shared = _shared(planned, name)
        return rehearsal.run(planned, shared, **what)
    except UnpredictableOrderError as error:
        return rehearsal.refused(str(error), **what)


Shared = tuple[Dataset, str | None, ReadSettings]


def _shared(planned: Sequence[PlannedOrder], name: str) -> Shared:
    """Return the spec and settings of which the hosts of a script read their shares.

    Raises:
        UsageError: their shares are not those of `tfds.even_splits`, an InputContext or `shard`.
    """
    first, count = planned[0], len(planned)
    settings, spec = replace(first.order.settings, host=None), first.spec
    if first.order.settings.host is None and settings.stages is None and count > 1:
        # `even_splits` leaves no trace but the ranges: together they are what was split.
        ranges = [one for each in planned for one in each.ranges]
        split, start = ranges[0].split.name, ranges[0].start
        spec = f"{split}[{start}:{ranges[-1].stop}]"
    of_all = (first.dataset_as_given, spec, settings)
    try:
        orders = old_orders(*of_all, count) if count > 1 else planned
        same = all(
            one.order.num_examples == two.order.num_examples
            and np.array_equal(_numbers(one.order), _numbers(two.order))
            for one, two in zip(orders, planned, strict=True)
        )
    except UsageError:
        same = False
    if not same:
        raise UsageError(
            f"{name}: what its hosts read is not shared as by tfds.even_splits, InputContext or "
            "shard, so no plan resumes it on other hosts; let the function resume by itself, as in "
            "-- host={host} hosts={hosts} step={step}"
        )
    return of_all


def _numbers(order: Order, codes: Int64s | None = None) -> Int64s:
    """Return codes, else all of an order, as numbers over all splits of the dataset, int64[n]."""
    codes = order.read(0, order.num_examples) if codes is None else codes
    which, ids = order.codes.splits.split_ids(codes)
    splits = order.dataset.splits
    sizes = np.cumsum([0, *(split.num_examples for split in splits)])
    start = {split.name: int(base) for split, base in zip(splits, sizes, strict=False)}
    return np.array([start[name] for name in order.codes.splits.names])[which] + ids


def _reading(planned: PlannedOrder) -> Reading:
    """Return a new dataset object of a pipeline, over numbers in place of records."""
    ranges = IndexRanges(resolved=planned.resolved, codes=planned.order.codes)
    made = ranges.pipeline(planned.order.settings)
    iterate_whole(made, planned.order.settings.pass_index)
    return made


class _Rehearsing:
    """How a run is stopped and resumed."""

    def __init__(
        self,
        *,
        hosts: int,
        to_hosts: int | None,
        kill_at: int | None,
        save_every: int | None,
        seed: int | None,
    ) -> None:
        for name, value in (("hosts", hosts), ("to_hosts", to_hosts), ("save_every", save_every)):
            if value is not None and value < 1:
                raise UsageError(f"{name}={value}: at least 1 is needed")
        self.hosts, self.to_hosts, self.save_every = hosts, to_hosts, save_every
        self.kill_at = kill_at
        self.seed = None
        if kill_at is None:
            self.seed = random.SystemRandom().randrange(1 << 31) if seed is None else seed

    def refused(self, reason: str, **what: Any) -> Rehearsal:
        """Return the answer for a pipeline of which no reading can be continued."""
        count = self.to_hosts or self.hosts
        said = {"num_hosts": self.hosts, "to_hosts": count, "versions": versions()}
        return Rehearsal(refused=reason, **said, **what)

    def run(
        self, planned: Sequence[PlannedOrder], resume: Shared | Resume | None, **what: Any
    ) -> Rehearsal:
        """Run the hosts of known orders, and resume them by plans of what they share, or so."""
        notes = [_OVER]
        whole = [one.with_settings(undropped(one.order.settings)) for one in planned]
        if any(
            one.order.settings != two.order.settings
            for one, two in zip(whole, planned, strict=True)
        ):
            notes.append("the last partial batches are counted, though drop_remainder drops them")
        for one in whole:
            _check(one.order)
        if sum(one.order.num_examples for one in whole) > MAX_EXAMPLES:
            raise UsageError(
                f"more than {MAX_EXAMPLES:,} examples are too many to count one by one; rehearse "
                "a slice, as 'train[:10%]', or fewer epochs"
            )
        kill_at = self._step(whole)
        saved_at = kill_at if self.save_every is None else kill_at - kill_at % self.save_every
        stops = [_position(one.order, kill_at) for one in whole]
        saved = [_position(one.order, saved_at) for one in whole]
        if callable(resume):
            resumed = resume(saved, saved_at)
        elif resume is not None and self.to_hosts not in (None, self.hosts):
            resumed = _on_hosts(whole, resume, self.to_hosts, saved)
        else:
            resumed = [_continued(one, stop) for one, stop in zip(whole, saved, strict=True)]
        total = sum(one.order.num_examples for one in whole)
        progress = Progress("examples", 2 * total + sum(stops), per_second=500_000)
        read = partial(_read, progress=progress)
        all_of = [read(one.order, _reading(one)) for one in whole]
        before = [
            read(one.order, _reading(one), stop) for one, stop in zip(whole, stops, strict=True)
        ]
        kept = [ids[:stop] for ids, stop in zip(before, saved, strict=True)]
        after = [read(order, reading) for order, reading in resumed]
        count = count_runs(all_of, kept, after)
        moved = None
        if len(after) == len(all_of):
            pairs = zip(all_of, kept, after, strict=True)
            moved = sum(_num_moved(ids, np.append(one, two)) for ids, one, two in pairs)
        return Rehearsal(
            **{"resumed_by": "shardctl", **what},
            num_hosts=self.hosts,
            to_hosts=len(after),
            kill_at=kill_at,
            saved_at=saved_at,
            seed=self.seed,
            num_examples=sum(map(len, all_of)),
            runs=tuple(
                HostRun(
                    index=host,
                    before=stops[host] if host < len(stops) else None,
                    again=stops[host] - saved[host] if host < len(stops) else 0,
                    after=len(after[host]) if host < len(after) else None,
                    lost=int(count.lost[host]) if host < len(stops) else 0,
                    repeated=int(count.repeated[host]) if host < len(after) else 0,
                )
                for host in range(max(len(stops), len(after)))
            ),
            lost=int(count.lost.sum()),
            repeated=int(count.repeated.sum()),
            lost_ids=_names(whole[0].order, count.lost_first),
            repeated_ids=_names(whole[0].order, count.repeated_first),
            moved=moved,
            versions=versions(),
            notes=tuple(notes),
            warnings=tuple(dict.fromkeys(text for one in planned for text in one.warnings)),
        )

    def _step(self, planned: Sequence[PlannedOrder]) -> int:
        most = max(_num_steps(one.order) for one in planned)
        if self.kill_at is None:
            return random.Random(self.seed).randint(min(1, most), max(most - 1, 1))  # noqa: S311
        if not 0 <= self.kill_at <= most:
            raise UsageError(
                f"kill_at={self.kill_at}: the run has {counted(most, 'step')}, elements of the "
                "pipeline on one host"
            )
        return self.kill_at


def _check(order: Order) -> None:
    if order.is_endless:
        raise UsageError("a pipeline without end: nothing can be counted; end it, as by --epochs 2")
    if order.settings.loop != "python":
        raise UsageError("loop keras-fit: rehearse iterates in Python; verify runs Keras")
    if order.codes.pads:
        raise UsageError("padding in the pipeline is no example; leave the stage out")


def _num_steps(order: Order) -> int:
    return (order.num_steps or 0) if order.has_steps else order.num_examples


def _position(order: Order, step: int) -> int:
    """Return how many examples come before a step, all where the host has fewer steps."""
    if step >= _num_steps(order):
        return order.num_examples
    return order.positions_in_step(step).start if order.has_steps else step


def _continued(planned: PlannedOrder, consumed: int) -> tuple[Order, Reading]:
    """Return what a host reads after so many examples, by its own plan."""
    order = planned.order
    if order.continued_by != "file_instructions":
        raise _of_stages()
    plan = resume_order(planned, consumed=consumed)
    ranges = IndexRanges(resolved=planned.resolved, codes=codes_of(planned.resolved))
    return order, ranges.resumed(plan, None)


def _on_hosts(
    whole: Sequence[PlannedOrder], shared: Shared, to_hosts: int, consumed: Sequence[int]
) -> list[tuple[Order, Reading]]:
    dataset, spec, settings = shared
    plan = resume_on_hosts(
        dataset, spec, undropped(settings), hosts=len(whole), to_hosts=to_hosts, consumed=consumed
    )
    if plan.has_stages:
        raise _of_stages()
    order = plan_order(dataset, spec, settings).order
    ranges = IndexRanges(resolved=plan_order(dataset, spec, settings).resolved, codes=order.codes)
    return [(order, ranges.resumed(plan, host)) for host in range(to_hosts)]


def _of_stages() -> UsageError:
    return UsageError(
        "these stages are resumed by their real files alone, over which nothing is rehearsed: "
        "`shardctl resume .. --prove` counts what is lost; a function that resumes by itself is "
        "rehearsed, as by -- step={step}"
    )


def _read(order: Order, reading: Reading, stop: int | None = None, *, progress: Progress) -> Int64s:
    """Return the numbers of what a dataset object yields, up to `stop` examples."""
    if stop == 0:
        return np.zeros(0, np.int64)
    one = Pass(reading=reading, size=1024, stop=stop, progress=progress)
    pieces = [np.asarray(piece, np.int64) for piece in one]
    if one.reason is not None:
        raise UsageError(f"TensorFlow gives up after {one.num_done:,} examples: {one.reason}")
    return _numbers(order, np.concatenate([np.zeros(0, np.int64), *pieces]))


def _num_moved(whole: Int64s, found: Int64s) -> int:
    size = min(len(whole), len(found))
    return int((whole[:size] != found[:size]).sum()) + abs(len(whole) - len(found))


def _names(order: Order, numbers: Int64s) -> tuple[str, ...]:
    names, sizes = [], [split.num_examples for split in order.dataset.splits]
    ends = np.cumsum(sizes)
    for number in numbers.tolist():
        which = int(np.searchsorted(ends, number, side="right"))
        first = int(ends[which]) - sizes[which]
        names.append(f"{order.dataset.splits[which].name}:{number - first}")
    return tuple(names)
