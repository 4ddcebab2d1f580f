"""`rehearse`: a run in real tf.data over numbered records, stopped, resumed, and counted."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress, Watch, watched_by
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import ShardctlError, UnpredictableOrderError, UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.resolved_spec import resolved_spec
from shardctl.order.sources import without_stages
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    settings_in_force,
)
from shardctl.tfds.imports import tensorflow, versions
from shardctl.tfds.inspecting.script import ScriptFunction, inspect_script
from shardctl.tfds.training.own_elements import num_examples_before
from shardctl.tfds.training.read_config import global_seed_of
from shardctl.tfds.verifying.real_files import IndexRanges, Pass, Reading, iterate_whole
from shardctl.verbs.inspect.answer import Inspection
from shardctl.verbs.rehearse.answer import HostRun, Rehearsal, count_runs
from shardctl.verbs.resume.answer import codes_of, resume_order
from shardctl.verbs.resume.hosts import old_orders, resume_on_hosts, undropped
from shardctl.verbs.resume.proof import num_differing

MAX_EXAMPLES = 1 << 25  # of a run, which are counted one by one
_NAMED = 5  # lost and repeated examples that the answer names
_OVER = "each record was replaced by its number, in files of the same lengths; no map was run"
_FROM_START = "these stages were resumed by skip: what was yielded is read again and dropped"
_DROPPED = "the last partial batches are counted, though drop_remainder drops them"
# What all hosts share: a dataset, a spec of it, and settings without a host.
Shared = tuple[Dataset, str | None, ReadSettings]
Run = tuple[Order, Reading]  # an order, and the dataset object that a host iterates
Resume = Callable[[int], list[Run]]  # what makes those of the hosts that resume at a step


# What makes the function that is called for values of host, hosts and step.
MakeFunction = Callable[[dict[str, int]], ScriptFunction]


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
    watch: Watch | None = None,
    **keywords: Unpack[OrderSettings],
) -> Rehearsal:
    """Run a pipeline in tf.data on numbers for records, stop it, resume it, count the examples.

    Each record is replaced by its number; files have the lengths of the real ones, and none is
    read. The hosts run one after the other: to their end, once more until the stop, and from there
    on by the plan of `resume`, or on another number of hosts by that of `resume_on_hosts`.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: those of the job, without a host.
        hosts: how many hosts run until the stop.
        to_hosts: how many resume; None for as many.
        kill_at: the step at which they stop, an element of the pipeline; None draws one.
        save_every: a checkpoint each so many steps, from the last of which they resume.
        watch: is called as the work proceeds.

    Returns:
        A Rehearsal: `holds`, or what is lost and repeated, by host.

    Raises:
        UsageError: no such step, no end, too many examples, stages on another number of hosts, or
            another loader than TFDS's.
        UnpredictableOrderError: the order is nondeterministic, so that nothing can be resumed.
        MissingDependencyError: TensorFlow is not installed.

    >>> import shardctl
    >>> shardctl.rehearse("mnist", "train[:64]", hosts=2, kill_at=9).lost  # doctest: +SKIP
    0
    """
    given = as_settings(settings)
    source, spec, read = without_stages(as_dataset(dataset), spec, given)
    if read.host is not None:
        raise refused("{host} in a rehearsal: all hosts are run; say how many by {hosts=N}")
    if not read.reader.on_tf_data:
        raise refused("{loader=}: rehearse runs tf.data alone", loader=read.loader)
    job = Job(hosts=hosts, to_hosts=to_hosts, kill_at=kill_at, save_every=save_every)
    shared = source, spec, read
    with watched_by(watch):
        # A host 0 of 1 would be stated in its plan.
        planned = old_orders(*shared, hosts) if hosts > 1 else [plan_order(*shared)]
        return job.run(planned, shared, **job.record(source, planned[0].spec, read))


def rehearse_script(
    function: MakeFunction,
    job: Job,
    given: Collection[str],
    *,
    only: str | None = None,
    index: str | None = None,
) -> Rehearsal:
    """Rehearse the pipelines that a function of a script makes, see `rehearse`.

    function: the function, as it is called for values of host, hosts and step.
    given: those of these values that it is given; with the step it resumes by itself.

    Raises:
        UsageError: it fails, reads no dataset, several, or is not told its host though there are
            several; and as for `rehearse`.
    """
    name = str(function({"host": 0, "hosts": job.hosts, "step": 0}))
    if "host" not in given and max(job.hosts, job.num_after) > 1:
        raise UsageError(
            f"{name} is not told which host it is, so that all hosts would read the same; give it "
            "as arguments, as in -- host={host} hosts={hosts}"
        )

    def made(host: int, hosts: int, step: int = 0) -> Inspection:
        script = function({"host": host, "hosts": hosts, "step": step})
        found, *others = inspect_script(script, only=only, index=index)
        if (
            others
            or found.dataset is None
            or found.datasets
            or not found.settings.reader.on_tf_data
        ):
            raise UsageError(
                f"{name} does not return one tf.data.Dataset that reads one dataset; choose among "
                "several with --only NAME"
            )
        return found

    def by_function(step: int) -> list[Run]:
        orders = [made(host, job.num_after, step).order() for host in range(job.num_after)]
        return [(one.order, _reading(one)) for one in orders]

    first = made(0, job.hosts)
    assert first.dataset is not None
    what = job.record(first.dataset, first.spec, first.settings)
    what |= {"function": name, "assumptions": first.assumptions}
    alone, resume = None, None if "step" not in given else by_function
    try:
        others = (made(host, job.hosts) for host in range(1, job.hosts))
        planned = [one.order() for one in (first, *others)]
        shared = None if resume or job.num_after == job.hosts else _shared(planned, name)
        try:
            alone = made(0, 1).order() if job.hosts > 1 else None
        except ShardctlError as error:
            what["notes"] = (f"whether its hosts together read all was not checked: {error}",)
        return job.run(planned, resume or shared, alone, **what)
    except UnpredictableOrderError as error:
        return Rehearsal(refused=str(error), **what)


def _shared(planned: Sequence[PlannedOrder], name: str) -> Shared:
    """Return the spec and settings of which the hosts of a script read their shares.

    Raises:
        UsageError: their shares are not those of `tfds.even_splits`, an InputContext or `shard`.
    """
    _check(planned)
    first, last = planned[0], planned[-1]
    spec = first.spec
    if first.ranges and last.ranges and first.ranges != last.ranges:
        # `even_splits` leaves no trace but the ranges: together they are what was split.
        begin, end = first.ranges[0], last.ranges[-1]
        spec = f"{begin.split.name}[{begin.start}:{end.stop}]"
    # A host that reads one file has no seed of their order; another one has.
    for settings in dict.fromkeys(replace(one.order.settings, host=None) for one in planned):
        shared = first.dataset_as_given, spec, settings
        with contextlib.suppress(ShardctlError):
            orders = old_orders(*shared, len(planned))
            if all(map(np.array_equal, map(_all_numbers, orders), map(_all_numbers, planned))):
                return shared
    raise UsageError(
        f"{name}: what its hosts read is not shared as by tfds.even_splits, InputContext or shard, "
        "so no plan resumes it on other hosts; let the function resume by itself, as in "
        "-- host={host} hosts={hosts} step={step}"
    )


@dataclass(frozen=True, kw_only=True)
class Job:
    """How many hosts run and resume, and where they stop; see `rehearse`."""

    hosts: int = 1
    to_hosts: int | None = None
    kill_at: int | None = None
    save_every: int | None = None

    def __post_init__(self) -> None:
        if min(self.hosts, self.num_after, 1 if self.save_every is None else self.save_every) < 1:
            raise refused("{hosts}, {to_hosts} and {save_every} are at least 1")

    @property
    def num_after(self) -> int:
        """How many hosts resume."""
        return self.hosts if self.to_hosts is None else self.to_hosts

    def record(self, dataset: Dataset, spec: str | None, settings: ReadSettings) -> dict[str, Any]:
        """Return the fields of every answer, which say what is run."""
        tensorflow()  # which has a version once it is imported
        in_force = settings_in_force(settings, ordered=dataset.ordered)
        hosts = {"num_hosts": self.hosts, "to_hosts": self.num_after, "versions": versions()}
        return {"dataset": dataset, "spec": spec, "pipeline": in_force, **hosts}

    def run(
        self,
        planned: Sequence[PlannedOrder],
        resume: Shared | Resume | None,
        alone: PlannedOrder | None = None,
        **what: Any,
    ) -> Rehearsal:
        """Run hosts of known orders; resume them by a function, or plans of what they share.

        alone: what one host would read, and so all together should.
        """
        whole, notes = [_undropped(one) for one in planned], [_OVER, *what.pop("notes", ())]
        if [one.order.settings for one in whole] != [one.order.settings for one in planned]:
            notes.append(_DROPPED)
        orders, total = [one.order for one in whole], _check(whole)
        most = max(order.num_steps or 0 for order in orders)
        kill_at = self.kill_at
        if kill_at is None:
            kill_at = random.SystemRandom().randint(1, most)
        if not 0 <= kill_at <= most:
            steps = counted(most, "step")
            raise refused("{kill_at=}: a host yields {}", steps, kill_at=kill_at)
        saved_at = kill_at - kill_at % (self.save_every or 1)
        stops = [_position(order, kill_at) for order in orders]
        saved = [_position(order, saved_at) for order in orders]
        progress = Progress("examples", 2 * total + sum(stops), per_second=500_000)
        # tf.data takes the global seed while a dataset is made.
        with global_seed_of(orders[0].settings):
            if callable(resume):
                runs, what["resumed_by"] = resume(saved_at), "function"
            elif resume is not None and self.num_after != self.hosts:
                runs = _on_hosts(orders[0], resume, self.num_after, saved)
            else:
                runs = [_continued(one, saved_at) for one in whole]
                notes += [_FROM_START] * (orders[0].continued_by != "file_instructions")
            every = [_read(one.order, _reading(one), None, progress) for one in whole]
            places = zip(whole, stops, strict=True)
            before = [_read(one.order, _reading(one), stop, progress) for one, stop in places]
            after = [_read(*run, None, progress) for run in runs]
        kept = [ids[:stop] for ids, stop in zip(before, saved, strict=True)]
        lost, repeated, differing = count_runs(every, kept, after)
        if len(after) == len(every):
            triples = zip(every, kept, after, strict=True)
            what["moved"] = sum(num_differing([ids], [one, two]) for ids, one, two in triples)
        if alone is not None:
            unread, more, _ = count_runs([_all_numbers(_undropped(alone))], [], every)
            what |= {"unread": sum(unread), "read_twice": sum(more)}
        names = _of_all_splits(orders[0]).names
        rows = range(max(len(every), len(after)))
        again = [stop - at for stop, at in zip(stops, saved, strict=True)]
        by_host = (stops, again, [*map(len, after)], lost, repeated)
        columns = [[each[row] if row < len(each) else None for row in rows] for each in by_host]
        return Rehearsal(
            kill_at=kill_at,
            saved_at=saved_at,
            num_examples=total,
            runs=tuple(map(HostRun, rows, *columns)),
            lost=sum(lost),
            repeated=sum(repeated),
            differing_ids=tuple(names(differing[:_NAMED])),
            notes=tuple(notes),
            warnings=tuple(dict.fromkeys(text for one in planned for text in one.warnings)),
            **what,
        )


def _check(planned: Sequence[PlannedOrder]) -> int:
    """Return how many examples a run reads, which can be counted one by one."""
    orders = [one.order for one in planned]
    if any(o.is_endless or o.codes.pads or o.settings.loop != "python" for o in orders):
        raise UsageError(
            "rehearse takes a pipeline that ends, as by --epochs 2, that has no padding and is "
            "iterated in Python"
        )
    total = sum(order.num_examples for order in orders)
    if not 0 < total <= MAX_EXAMPLES:
        instead = f"1 to {MAX_EXAMPLES:,} are counted; rehearse a slice, as 'train[:10%]'"
        raise UsageError(f"a run of {counted(total, 'example')}: {instead}, or fewer epochs")
    return total


def _undropped(planned: PlannedOrder) -> PlannedOrder:
    return planned.with_settings(undropped(planned.order.settings))


def _of_all_splits(order: Order) -> ExampleCodes:
    return ExampleCodes(order.dataset, [split.name for split in order.dataset.splits])


def _all_numbers(planned: PlannedOrder) -> Int64s:
    return _numbers(planned.order, planned.order.read(0, planned.order.num_examples))


def _numbers(order: Order, codes: Int64s) -> Int64s:
    """Return codes of an order as codes of all splits of its dataset, int64[n]."""
    return _of_all_splits(order).bases[order.codes.places(codes)[0]] + order.codes.split_ids(codes)


def _position(order: Order, step: int) -> int:
    """Return how many examples come before a step, all where the host has fewer steps."""
    return num_examples_before(order, order.steps_up_to(step))


def _reading(planned: PlannedOrder) -> Reading:
    """Return a new dataset object of a pipeline, over numbers in place of records."""
    ranges = IndexRanges(resolved=planned.resolved, codes=planned.order.codes)
    made = ranges.pipeline(planned.order.settings)
    iterate_whole(made, planned.order.settings.pass_index)
    return made


def _continued(planned: PlannedOrder, step: int) -> Run:
    """Return what a host reads from a step on, by its own plan; of stages behind a `skip`."""
    if planned.order.continued_by != "file_instructions":
        made = _reading(planned)
        return planned.order, replace(made, elements=made.elements.skip(step))
    plan = resume_order(planned, consumed=_position(planned.order, step))
    ranges = IndexRanges(resolved=planned.resolved, codes=codes_of(planned.resolved))
    return planned.order, ranges.resumed(plan, None)


def _on_hosts(order: Order, shared: Shared, to_hosts: int, consumed: Sequence[int]) -> list[Run]:
    """Return what each of other hosts reads, by the plan of what is left."""
    dataset, spec, given = shared
    settings, hosts = undropped(given), len(consumed)
    plan = resume_on_hosts(
        dataset, spec, settings, hosts=hosts, to_hosts=to_hosts, consumed=consumed
    )
    if plan.has_stages:
        raise UsageError(
            "on other hosts these stages are resumed by their real files alone: `shardctl resume "
            "--hosts N --to-hosts M --prove` counts what is lost. Rehearse as many hosts, or a "
            "function that resumes by itself, as by -- step={step}"
        )
    resolved = resolved_spec(order.dataset, plan.spec)
    ranges = IndexRanges(resolved=resolved, codes=codes_of(resolved))
    # Codes are those of the splits of the spec, which are the same for every host.
    return [(order, ranges.resumed(plan, host)) for host in range(to_hosts)]


def _read(order: Order, reading: Reading, stop: int | None, progress: Progress) -> Int64s:
    """Return the numbers of what a dataset object yields, up to `stop` examples."""
    one = Pass(reading=reading, size=1024, stop=stop, progress=progress)
    pieces = [np.asarray(piece, np.int64) for piece in one] if stop != 0 else []
    if one.reason is not None:
        raise UsageError(f"TensorFlow gives up after {one.num_done:,} examples: {one.reason}")
    return _numbers(order, np.concatenate([np.zeros(0, np.int64), *pieces]))
