"""What a run was trained on, by its logs, beside the order that is predicted of it."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, ranges
from shardctl.base.columns import Records, Tabular
from shardctl.base.phrase import refused
from shardctl.dataset.dataset import DatasetLike, as_dataset
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.order.order import ENDLESS, Order
from shardctl.order.plan_order import PlannedOrder, plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.saved.resume_plan import RunSegment
from shardctl.saved.step_log import LoggedRun, read_step_logs
from shardctl.settings import read_settings
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.resume.hosts import old_orders
from shardctl.verbs.resume.stopped_hosts import SharedRun, shared_run

KINDS = ("again", "foreign", "never", "out of turn")
_FIELDS = "kind epoch host step position expected trained log line"
# Positions of a host that are compared: each takes some 100 bytes, and 500 if it differs.
_MOST = 1 << 25


@dataclass(frozen=True)
class AuditedEpoch:
    """What was trained on in an epoch, by one host ("0/8") or by all; numbers of examples.

    trained: in steps that were not rolled back. rolled_back: in those that a restart repeated or
        dropped, with which the logs have more.
    again: trained on more often than the epoch has them; foreign: not of the epoch at all.
    never: due by the last step, and not trained on.
    out_of_turn: others that were trained on where another example was due, None where the order is
        nondeterministic.
    """

    epoch: int
    host: str
    again: int
    foreign: int
    never: int
    out_of_turn: int | None
    rolled_back: int
    trained: int

    @property
    def once(self) -> int:
        """Examples trained on as often as the epoch has them, mostly once."""
        return self.trained - self.again - self.foreign


@dataclass(frozen=True)
class AuditedRun:
    """One start of one process: its steps, and how many of them the next start rolled back.

    num_missing: steps that no line has, up to the next start.
    """

    log: str
    line: int
    host: str
    first_step: int
    last_step: int
    num_rolled_back: int
    num_missing: int


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit(Tabular):
    """What a run was trained on, by epoch, and by host where there are several.

    differences: a record each, by step: its kind, epoch, host, step, position, the id that was due,
        the id trained on, and the line of the log; None where there is none.
    first: the first of each kind. assumed: what the answer takes for granted.
    """

    spec: str
    order: Order
    epochs: tuple[AuditedEpoch, ...]
    hosts: tuple[AuditedEpoch, ...]
    runs: tuple[AuditedRun, ...]
    differences: Records
    first: tuple[dict[str, object], ...]
    assumed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether all that was due was trained on once, and in turn as far as that is known."""
        return not len(self.differences)


@dataclass(eq=False)
class _Stream:
    """What a host is to read from step `start` on, and what it logged.

    until: the first step that other hosts made, None where none did.
    codes, epochs: of its positions up to the end of the last epoch that was begun, int64[n].
    bounds: where each step begins, and where the last one ends.
    """

    host: Host
    start: int
    until: int | None
    runs: list[LoggedRun]
    codes: Int64s
    epochs: Int64s
    bounds: Int64s


@checked
def audit(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: read_settings.SettingsLike | None = None,
    *,
    logs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    first_step: int | None = None,
    **keywords: Unpack[OrderSettings],
) -> Audit:
    """Return which examples a run was trained on twice, never, or out of turn, by its logs.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, as TFDS writes it; None is `train`, else the only split.
        settings, keywords: how it is read: a ReadSettings, a dict of its values, or keywords.
        logs: files of `STEP ID ID ..` lines, as `StepLog` writes them, or folders of such `*.log`.
        first_step: the number of the first step; None is 1 where the logs begin with 1, else 0.

    Returns:
        An Audit of the steps that survived, with what restarts rolled back beside it.

    Raises:
        DatasetError: a log cannot be read.
        UsageError: steps that the order does not have, or logs that do not fit together.
        UnpredictableOrderError: the order is nondeterministic and the logs have no ids, or epochs
            or hosts mix.

    >>> import shardctl, tempfile
    >>> with tempfile.TemporaryDirectory() as run:
    ...     log = shardctl.StepLog(f"{run}/steps.log")
    ...     for step, ids in enumerate([[0, 1], [2, 3], [2, 3], [6, 7]]):
    ...         log.log(step, ids)
    ...     found = shardctl.audit("mnist", "train", {"batch": 2}, logs=run)
    >>> [(one["kind"], one["step"], one["expected"]) for one in found.first]
    [('again', 2, 4), ('never', 2, 4)]
    """
    del keywords
    dataset, settings = as_dataset(dataset), read_settings.as_settings(settings)
    unknown = None
    try:
        planned = plan_order(dataset, spec, settings)
    except UnpredictableOrderError as error:
        unknown = error
        planned = plan_order(dataset, spec, read_settings.with_stand_in_seeds(settings)[0])
    paths = [logs] if isinstance(logs, str | os.PathLike) else logs
    alone = settings.host or Host(index=0, count=1)
    runs, warnings = read_step_logs([os.fspath(path) for path in paths], planned.order.codes, alone)
    if settings.host is not None and any(run.host != alone for run in runs):
        raise refused("{host!}: the logs are of other hosts", host=alone)
    counts = {run.host.count: 0 for run in sorted(runs, key=lambda run: int(run.steps[0]))}
    eras = [[run for run in runs if run.host.count == count] for count in counts]
    assumed = list(planned.order.assumptions)
    if unknown is not None:
        if len(eras) > 1 or any(run.is_bare for run in runs) or not planned.order.has_epochs:
            raise unknown
        assumed.append(f"seeds are examples: how often is compared, and not the order: {unknown}")
    least = min(int(run.steps[0]) for run in runs)
    base = int(least == 1) if first_step is None else first_step
    if not 0 <= base <= least:
        raise refused("{first_step!}: the logs begin with step {}", least, first_step=base)
    if first_step is None:
        assumed.append(f"the run begins with step {base}")
    streams = _streams(planned, eras, base, assumed)
    said = {"assumed": tuple(assumed), "warnings": (*planned.warnings, *warnings)}
    return _compared(planned, streams, unknown is None, **said)


def _streams(
    planned: PlannedOrder, eras: Sequence[list[LoggedRun]], base: int, assumed: list[str]
) -> list[_Stream]:
    """Return what each host is to read beside what it logged; in each era there are other hosts."""
    given, stretches, found = planned.order.settings, list[RunSegment](), list[_Stream]()
    starts = [base, *(min(int(run.steps[0]) for run in era) for era in eras[1:])]
    if len(eras) > 1 and not isinstance(planned.order, ReaderOrder):
        raise UsageError(
            "the number of hosts changes: how stages and other loaders share what is left is not "
            "known; audit the logs of each number alone"
        )
    for era, start, stop in zip_longest(eras, starts, starts[1:]):
        settings, count = given, era[0].host.count
        if stop is not None and max(int(run.steps[0]) for run in era) >= stop:
            raise UsageError(f"{count} hosts again after step {stop}; audit what follows alone")
        if stretches or not planned.order.has_steps:
            settings = _with_batch(planned.order, settings, era)
            assumed.append(f"from step {start} on batches of {settings.batch}, as most steps have")
        orders = [planned.with_settings(settings) if settings != given else planned]
        if count > 1 and settings.host is None:
            orders = old_orders(planned.dataset_as_given, planned.spec, settings, count)
        for host in sorted({run.host for run in era}, key=lambda host: host.index):
            own = [run for run in era if run.host == host]
            order = orders[host.index % len(orders)].order
            # All steps up to the next hosts were due, whether or not they are in the log.
            last = max((stop or 1) - 1, *(int(run.steps[-1]) for run in own)) - start
            if stretches:
                columns = _of_shared(shared_run(planned.resolved, order.settings, stretches), last)
            else:
                columns = _of_order(order, last)
            found.append(_Stream(host, start, stop, own, *columns))
        if stop is not None:
            done = (stop - start) * (settings.batch or 1)
            consumed = tuple(min(done, one.order.num_examples) for one in orders)
            made = replace(RunSegment(consumed=consumed), batch=settings.batch, alone=count == 1)
            stretches.append(replace(made, host_by=settings.host_by))
            assumed.append(f"hosts share what is left at step {stop} as resume --to-hosts plans it")
    return found


def _with_batch(order: Order, settings: ReadSettings, runs: Sequence[LoggedRun]) -> ReadSettings:
    sizes, counts = np.unique(np.concatenate([run.sizes for run in runs]), return_counts=True)
    batch = int(sizes[counts.argmax()])
    if not batch or settings.stages is not None or not settings.takes("batch"):
        raise UsageError(order.why_no_steps.replace("--step", "a log of steps"))
    return replace(settings, batch=batch)


def _of_order(order: Order, last: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return codes and epochs of an order to the end of a step's epoch, and where steps are."""
    if order.num_steps is not None and last >= order.num_steps:
        raise UsageError(
            f"the logs have {last + 1} steps, and the order {order.num_steps}; give --epochs N of "
            "ds.repeat(N), or audit the log of each iteration with --pass-index"
        )
    stop = whole = order.positions_in_step(last).stop
    if order.has_epochs and not order.is_endless and stop < order.num_examples:
        after = int(order.epoch_of([stop - 1])[0]) + 1
        positions = range(order.num_examples)
        whole = bisect_left(positions, after, stop, key=lambda at: int(order.epoch_of([at])[0]))
    at = _positions(whole)
    bounds = np.searchsorted(order.steps_of(at[:stop])[0], np.arange(last + 2))
    return order.read(0, whole), order.epoch_of(at), bounds


def _of_shared(shared: SharedRun, last: int) -> tuple[Int64s, Int64s, Int64s]:
    """Return the same of a host that shares what is left of an epoch, and then whole epochs."""
    order, rest = shared.planned.of_reader, shared.rest.size
    batch, size = order.settings.batch or 1, max(order.epoch_size, 1)
    if last * batch >= shared.num_examples:
        raise UsageError(f"{last + 1} steps after the hosts changed, and there are fewer")
    stop = min((last + 1) * batch, shared.num_examples)
    whole = min(rest + -(-max(stop - rest, 0) // size) * size, shared.num_examples)
    at = _positions(whole)
    epochs = shared.rest.epoch + np.where(at < rest, 0, 1 + (at - rest) // size)
    bounds = np.minimum(np.arange(last + 2) * batch, stop)
    return np.concatenate([at[:0], *shared.chunks(0, whole)]), epochs, bounds


def _positions(count: int) -> Int64s:
    if count > _MOST:
        raise UsageError(f"{count:,} examples of a host, of at most {_MOST:,}; audit a part")
    return np.arange(count)


def _compared(
    planned: PlannedOrder, streams: Sequence[_Stream], known: bool, **said: tuple[str, ...]
) -> Audit:
    """Return where what was logged differs from what was due.

    Rows are int64[9, n], as `_FIELDS`, with codes for ids. What was trained on in its turn has
    none, and is looked for no more: neither among the others nor in the rest of the epoch.
    """
    logs = list(dict.fromkeys(run.file for stream in streams for run in stream.runs))
    trained, runs = [np.zeros((4, 0), np.int64)], []
    odd, due, others = [np.zeros((9, 0), np.int64)], [np.zeros((9, 0), np.int64)], []
    for at, stream in enumerate(streams):
        matched, reached, following = np.zeros(len(stream.codes), bool), 0, ENDLESS
        for run in reversed(stream.runs):
            steps = run.steps - stream.start
            kept = run.steps < following
            kept &= stream.until is None or run.steps < (stream.until or 0)
            room = stream.bounds[steps + 1] - stream.bounds[steps]
            sizes = room if run.is_bare else run.sizes
            # Of each id: its line, its index in that, the position that it stands for.
            row, index = np.repeat(np.arange(len(steps)), sizes), ranges(0 * sizes, sizes)
            position = stream.bounds[steps][row] + index
            place = np.minimum(position, stream.bounds[steps + 1][row] - 1)
            expected = np.where(position == place, stream.codes[place], -1)
            codes = expected if run.is_bare else run.codes
            in_turn, alive = (expected == codes) & known, kept[row]
            matched[place[in_turn & alive]] = True
            epochs = stream.epochs[place]
            groups, counts = np.unique(epochs * 2 + alive, return_counts=True)
            trained.append(np.stack([groups // 2, 0 * groups + at, groups % 2, counts]))
            rows = np.flatnonzero(alive & ~in_turn)
            columns = (position[rows], expected[rows], codes[rows])
            own = (logs.index(run.file), run.lines[row[rows]])
            odd.append(_rows(3, epochs[rows], at, run.steps[row[rows]], *columns, *own))
            missing = int(steps[-1] - steps[0]) + 1 - len(steps)
            if following < ENDLESS:
                missing += max(following - int(run.steps[-1]) - 1, 0)
            where = (run.file, int(run.lines[0]), str(stream.host))
            ends = (int(run.steps[0]), int(run.steps[-1]))
            runs.append(AuditedRun(*where, *ends, int((~kept).sum()), missing))
            reached = max(reached, int(steps[kept].max(initial=-1)) + 1)
            following = min(following, int(run.steps[0]))
        if stream.until is not None:
            reached = min(stream.until - stream.start, len(stream.bounds) - 1)
        stop = int(stream.bounds[reached])
        if not known and stop < len(stream.codes):
            # Of an epoch that has not ended it is not known what is due.
            stop = int(np.searchsorted(stream.epochs, stream.epochs[stop]))
        left, rest = np.flatnonzero(~matched[:stop]), np.flatnonzero(~matched)
        steps = np.searchsorted(stream.bounds, left, side="right") - 1 + stream.start
        due.append(_rows(2, stream.epochs[left], at, steps, left, stream.codes[left], -1, -1, 0))
        others.append(np.stack([stream.epochs[rest], stream.codes[rest]]))
    rows, never, rest = (np.concatenate(one, axis=1) for one in (odd, due, others))
    rows = rows[:, np.argsort(rows[3], kind="stable")]
    most = planned.order.codes.num_codes

    def key(columns: Any) -> Any:  # an example of an epoch
        return columns[0] * most + columns[1]

    surplus = _surplus(key(rows[[1, 6]]), key(rest))
    rows[0, surplus] = 0
    if surplus.any():
        whole = [key(np.stack([stream.epochs, stream.codes])) for stream in streams]
        rows[0, surplus & ~np.isin(key(rows[[1, 6]]), np.concatenate(whole))] = 1
    never = never[:, _surplus(key(never[[1, 5]]), key(rows[[1, 6]]))]
    rows = np.concatenate([rows if known else rows[:, rows[0] < 3], never], axis=1)
    rows = rows[:, np.lexsort((rows[4], rows[2], rows[3]))]
    differences = _records(planned, rows, [str(stream.host) for stream in streams], logs)
    firsts = [np.flatnonzero(rows[0] == kind)[:1] for kind in range(len(KINDS))]
    epochs, hosts = _epochs(np.concatenate(trained, axis=1), rows, streams, known=known)
    return Audit(
        spec=planned.spec,
        order=planned.order,
        epochs=epochs,
        hosts=hosts if len(streams) > 1 else (),
        runs=tuple(sorted(runs, key=lambda run: (run.log, run.line))),
        differences=differences,
        first=tuple(differences[int(one[0])] for one in firsts if len(one)),
        **said,
    )


def _rows(*columns: Int64s | int) -> Int64s:
    return np.stack(np.broadcast_arrays(*columns)).astype(np.int64)


def _surplus(keys: Int64s, others: Int64s) -> NDArray[np.bool_]:
    """Return which keys (int64[n]) are more than `others` has of them: the later ones of each.

    >>> _surplus(np.array([5, 3, 5, 5]), np.array([5, 3])).tolist()
    [False, False, True, True]
    """
    order, others = np.argsort(keys, kind="stable"), np.sort(others)
    keys = keys[order]
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys)
    there = np.searchsorted(others, keys, side="right") - np.searchsorted(others, keys)
    found = np.empty(len(keys), bool)
    found[order] = rank >= there
    return found


def _epochs(
    trained: Int64s, rows: Int64s, streams: Sequence[_Stream], *, known: bool
) -> tuple[tuple[AuditedEpoch, ...], tuple[AuditedEpoch, ...]]:
    """Return the numbers of each epoch, and of each host in it; trained: epoch, host, kept, n."""
    num_epochs = int(max(trained[0].max(initial=-1), rows[1].max(initial=-1))) + 1
    counts = np.zeros((num_epochs, len(streams), 6), np.int64)  # four kinds, rolled back, kept
    np.add.at(counts, (rows[1], rows[2], rows[0]), 1)
    np.add.at(counts, (trained[0], trained[1], 4 + trained[2]), trained[3])

    def audited(epoch: int, host: str, numbers: Int64s) -> AuditedEpoch:
        again, foreign, never, out_of_turn, *others = numbers.tolist()
        turns = out_of_turn if known else None
        return AuditedEpoch(epoch, host, again, foreign, never, turns, *others)

    hosts = [
        audited(epoch, str(streams[at].host), counts[epoch, at])
        for epoch, at in np.argwhere(counts.any(axis=2)).tolist()
    ]
    every = [(epoch, counts[epoch].sum(axis=0)) for epoch in range(num_epochs)]
    return tuple(audited(at, "all", n) for at, n in every if n.any()), tuple(hosts)


def _records(
    planned: PlannedOrder, rows: Int64s, hosts: Sequence[str], logs: Sequence[str]
) -> Records:
    codes = planned.order.codes

    def ids(found: Int64s) -> list[object]:
        named = codes.ids(np.maximum(found, 0))
        return [name if code >= 0 else None for code, name in zip(found, named, strict=True)]

    def columns(start: int, stop: int) -> list[list[object]]:
        kind, epoch, host, step, position, expected, trained, log, line = rows[:, start:stop]
        texts = [[names[at] for at in one] for names, one in ((KINDS, kind), (hosts, host))]
        numbers = epoch.tolist(), step.tolist(), position.tolist()
        where = [logs[at] if at >= 0 else None for at in log], [at or None for at in line.tolist()]
        return [texts[0], numbers[0], texts[1], *numbers[1:], ids(expected), ids(trained), *where]

    return Records(rows.shape[1], _FIELDS, columns)
