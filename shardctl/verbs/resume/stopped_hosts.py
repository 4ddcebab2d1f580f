"""What hosts that stopped have left of their epochs, and how a run resumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.order.plan_order import PlannedOrder, order_of
from shardctl.order.reader_order import ReaderOrder
from shardctl.saved.resume_plan import ResumePlan, RunSegment, settings_as_planned
from shardctl.saved.shared_rest import SharedRest
from shardctl.saved.unseeded_buffer import DEFAULT_RISK, UnseededBuffer, check_risk, of_all_hosts
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads, joined
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.resume import rest_of_epoch
from shardctl.verbs.resume.answer import resume_order


@dataclass(frozen=True, kw_only=True)
class OldHost:
    """One of the hosts that stopped, and where; `buffer` is one whose seed is not known.

    rest: of a run that was shared anew before, its part of what was left then; its epoch comes
        before those of `order`.
    """

    order: ReaderOrder
    point: rest_of_epoch.ResumePoint
    buffer: UnseededBuffer | None = None
    rest: SharedRest | None = None

    @property
    def has_examples(self) -> bool:
        """Whether it reads anything of the epoch it is in."""
        return bool(self.order.epoch_size or self.point.remaining)

    def size_of(self, epoch: int) -> int:
        """Return how many examples of an epoch it reads."""
        if self.rest is not None and self.rest.epoch == epoch:
            return self.rest.size
        return self.order.epoch_size


@dataclass(frozen=True, kw_only=True)
class LeftOver:
    """What stopped hosts have left of `epochs`, as runs in the order of the files.

    num_further_epochs: how many whole epochs follow these.
    num_again: examples that hosts were to yield once more than they are read, as padding.
    unseeded: where the seeds of buffers are not known, what is sure of them; pending: else what
        they held, as ids.
    """

    reads: Reads
    epochs: range
    num_further_epochs: int
    num_again: int = 0
    unseeded: UnseededBuffer | None = None
    pending: tuple[int | str, ...] = ()


def stopped_hosts(
    orders: Sequence[ReaderOrder], counts: Sequence[int], *, mode: str, risk: float | None
) -> tuple[list[OldHost], UnseededBuffer | None]:
    """Return where hosts stopped; in a mode without a seed also what is sure of all their buffers.

    Raises:
        UsageError: a risk outside its range.
    """
    points = list(map(rest_of_epoch.resume_point, orders, counts))
    # The risk may not exceed what the smallest buffer could lose.
    smallest, of_each = min(order.num_buffered or 1 for order in orders), None
    if mode == "at-least-once":
        risk = min(DEFAULT_RISK, smallest) if risk is None else risk
        check_risk(risk, smallest)
        # A host that had yielded nothing loses nothing.
        # The risk is for all hosts together, so each gets its part.
        of_each = risk / max(sum(bool(point.emitted) for point in points), 1)
    found = []
    for order, point in zip(orders, points, strict=True):
        sure = rest_of_epoch.without_seed(order, point, mode, of_each)
        found.append(OldHost(order=order, point=point, buffer=sure.buffer if sure else None))
    known = [host.buffer for host in found if host.buffer is not None]
    return found, of_all_hosts(known, risk) if known else None


def left_of_readings(
    orders: Sequence[ReaderOrder], counts: Sequence[int], *, mode: str, risk: float | None
) -> LeftOver:
    """Return what is left where an epoch is a reading of files, of which no example is looked at.

    Raises:
        UsageError: a risk outside its range.
    """
    old, unseeded = stopped_hosts(orders, counts, mode=mode, risk=risk)
    found = left_of_hosts(old)
    if unseeded and not len(found.reads) and found.num_further_epochs:
        # What the buffers held was the rest of the epoch.
        epoch = found.epochs.stop
        at_start = partial(rest_of_epoch.ResumePoint, epoch=epoch, stream=epoch, emitted=0)
        points = [at_start(remaining=host.order.epoch_size) for host in old]
        old = [replace(one, point=at, buffer=None) for one, at in zip(old, points, strict=True)]
        found = left_of_hosts(old)
    pending: list[int | str] = []
    for host in [] if unseeded else old:
        epoch = host.point.epoch
        pending += rest_of_epoch.ids_at(
            host.order, host.order.reading(epoch), pending_of(host, epoch)
        )
        host.order.forget_readings()
    return replace(found, unseeded=unseeded, pending=tuple(pending))


def left_of_hosts(old: Sequence[OldHost]) -> LeftOver:
    """Return what hosts have left of the epochs that they are in, as runs in the order of files."""
    # Hosts without examples are in no epoch.
    begun = [host.point.epoch for host in old if host.has_examples]
    if not begun:
        begun = [0 if old[0].rest is None else old[0].rest.epoch]
    epochs = range(min(begun), max(begun) + 1)
    left = joined([_left_of_epoch(old, epoch).runs() for epoch in epochs])
    check_left(left, old, epochs[-1])
    # Once every host is at its end, no epoch follows.
    unfinished = any(host.point.remaining for host in old)
    follow = old[0].order.settings.epochs - epochs.stop if unfinished else 0
    return LeftOver(reads=left, epochs=epochs, num_further_epochs=follow)


def num_read_of(host: OldHost, epoch: int) -> int:
    """Return how many examples of an epoch a host has got from the reader."""
    # At its end, or in a later epoch: it has read all of this one.
    if host.point.epoch > epoch or not host.point.remaining:
        return host.order.epoch_size
    if host.point.epoch < epoch:
        return 0
    if host.buffer is not None:
        return host.buffer.first_read
    return rest_of_epoch.inputs_read(host.order, host.point)


def pending_of(host: OldHost, epoch: int) -> Int64s:
    """Return the inputs of an epoch (int64[p]) that a host's buffer held."""
    if not _is_in(host, epoch) or host.buffer is not None:
        return np.empty(0, np.int64)
    return rest_of_epoch.pending_inputs(host.order, host.point)


def _left_of_epoch(old: Sequence[OldHost], epoch: int) -> Reads:
    # Of a run that was shared before, the epoch is not one of the reading but a list of shares.
    rests = [host.rest for host in old if host.rest is not None and host.rest.epoch == epoch]
    if rests:
        emitted = [host.point.emitted if _is_in(host, epoch) else None for host in old]
        return joined([one.left(at).runs() for one, at in zip(rests, emitted, strict=True)])
    reads_all = old[0].order.settings.host_mode.reads_all
    # With `ds.shard` all hosts read the same rows; otherwise each has its own.
    sharers = [old] if reads_all else [[host] for host in old]
    # A host's own runs first: in the order of the files the rows of all need no sort.
    return joined([_left_together(hosts, epoch).runs() for hosts in sharers])


def _left_together(hosts: Sequence[OldHost], epoch: int) -> Reads:
    """Return what hosts have left of one epoch, all of them reading the same rows.

    Host i of n has examples i, i + n, ... of the reading. From where the foremost host is on
    all are left; before that, and in the buffers, they are left one by one.
    """
    order, num_hosts = hosts[0].order, len(hosts)
    # The whole reading, of which host i has every num_hosts-th example.
    reading = replace(order.reading(epoch), stride=1, phase=0)
    num_read = [num_read_of(host, epoch) for host in hosts]
    foremost, single = max(num_read), []
    for index, host in enumerate(hosts):
        # From where this host is to where the foremost is: this host's examples one by one.
        between = np.arange(num_read[index], min(foremost, host.order.epoch_size))
        own = np.concatenate([between, pending_of(host, epoch)])
        # Position k of host i is example k * num_hosts + i of the reading.
        single.append(own * num_hosts + index)
    # Beyond the foremost host everything is left, as whole files.
    rest = rest_of_epoch.rest_of_reading(order.reads, reading, foremost * num_hosts)
    left = joined([rest, rest_of_epoch.reads_at(order.reads, reading, np.concatenate(single))])
    del reading
    for host in hosts:
        host.order.forget_readings()
    return left


def _is_in(host: OldHost, epoch: int) -> bool:
    return host.point.epoch == epoch and bool(host.point.remaining)


def check_left(left: Reads, old: Sequence[OldHost], epoch: int) -> None:
    """Check that what is left and what was yielded, or is skipped, add up to whole epochs."""
    # What each is to read up to this epoch, less what it has read or skips.
    expected = 0
    for host in old:
        if host.point.remaining:
            gone = host.point.emitted if host.buffer is None else host.buffer.first_read
            expected += sum(map(host.size_of, range(host.point.epoch, epoch + 1))) - gone
    if left.num_examples != expected:
        # A wrong sum would lose or repeat examples, so the plan is not made.
        raise AssertionError(f"{left.num_examples} examples left, {expected} by count")


# Runs that went on with other hosts. Such a run has one stretch behind it, or several: what each
# host of each had yielded. From that alone follows what every host reads now, and in which
# order, so that a position in it is a few counts.


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedRun:
    """One host's part of a run that was shared anew: its share of the rest, then whole epochs.

    planned: the order of the host as if nothing had stopped, whose epochs follow the rest.
    num_further_epochs: how many epochs follow the one whose rest was shared.
    stretches: what came before, the first one first.
    """

    planned: PlannedOrder
    rest: SharedRest
    num_further_epochs: int
    stretches: tuple[RunSegment, ...]

    @property
    def num_examples(self) -> int:
        """Number of examples that this host yields, without a last batch that is dropped."""
        order = self.planned.of_reader
        total = self.rest.size + self.num_further_epochs * order.epoch_size
        if order.settings.drop_remainder and order.settings.batch is not None:
            total -= total % order.settings.batch
        return total

    def point(self, consumed: int) -> rest_of_epoch.ResumePoint:
        """Return the place after so many examples: of the rest, or of an epoch behind it."""
        rest, size = self.rest, self.planned.of_reader.epoch_size
        behind = consumed - rest.size
        epoch, emitted, of_epoch = rest.epoch, consumed, rest.size
        # The rest comes first; then whole epochs of one size.
        if behind >= 0 and size and self.num_further_epochs:
            index = min(behind // size, self.num_further_epochs - 1)
            epoch, emitted, of_epoch = rest.epoch + 1 + index, behind - index * size, size
        remaining = 0 if consumed == self.num_examples else of_epoch - emitted
        return rest_of_epoch.ResumePoint(
            epoch=epoch, stream=epoch, emitted=emitted, remaining=remaining
        )

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes of the examples [start, stop) that this host yields, in pieces."""
        size, order = self.rest.size, self._undropped.of_reader
        if start < size:
            yield from self.rest.chunks(start, min(stop, size), order.codes)
        # Position in this host's run -> position in its order: epochs up to the rest's, less its
        # size.
        first = (self.rest.epoch + 1) * order.epoch_size - size
        if max(start, size) < stop:
            yield from order.chunks(max(start, size) + first, stop + first)

    def plan(self, consumed: int) -> ResumePlan:
        """Return the plan with which this host resumes after so many examples, in exact order."""
        point, order = self.point(consumed), self.planned.of_reader
        settings = settings_as_planned(order.settings, ordered=order.dataset.ordered)
        if point.remaining and point.epoch == self.rest.epoch:
            plan = self._plan_in_rest(point)
        else:
            # Positions are counted in the order without dropping: batches begin elsewhere here.
            undropped = self._undropped
            whole = undropped.of_reader.num_examples
            if point.remaining:
                whole = point.epoch * order.epoch_size + point.emitted
            plan = resume_order(undropped, consumed=whole, mode="exact-order")
        return replace(
            plan,
            settings=settings,
            consumed=consumed,
            remaining_total=self.num_examples - consumed,
            stretches=self.stretches,
            after_read=rest_of_epoch.calls_after_read(
                settings, plan.mode, plan.epoch, num_shared=int(plan.shared is None)
            ),
            warnings=self.planned.warnings,
        )

    def _plan_in_rest(self, point: rest_of_epoch.ResumePoint) -> ResumePlan:
        order, rest = self.planned.of_reader, self.rest
        reads, _ = rest.files_left(point.emitted)
        shuffle, pending = None, None
        if rest.replay is not None:
            shuffle = rest_of_epoch.shuffle_state(rest.replay, point.emitted)
            held = order.codes.first_codes(rest.pending(point.emitted))
            pending = tuple(order.codes.ids(held) if len(held) else [])
        return rest_of_epoch.plan_of(
            self.planned,
            order.settings,
            mode="exact" if shuffle is None else "exact-order",
            consumed=0,
            epoch=point.epoch,
            remaining=point.remaining,
            remaining_total=0,
            instructions=reads,
            pending=pending,
            shuffle=shuffle,
            shared=rest,
            further_epochs=rest_of_epoch.further_epochs(order, rest.epoch, self.num_further_epochs),
            num_further_epochs=self.num_further_epochs,
            continued_by="shardctl.tfds",
        )

    @property
    def _undropped(self) -> PlannedOrder:
        """The order with what a dropped batch would hold: here batches begin in other places."""
        settings = self.planned.of_reader.settings
        if not settings.drop_remainder:
            return self.planned
        return self.planned.with_settings(rest_of_epoch.without_dropping(settings))


def shared_run(
    resolved: Resolved, settings: ReadSettings, stretches: Sequence[RunSegment]
) -> SharedRun:
    """Return what the host of `settings` reads of a run after `stretches`.

    Raises:
        UsageError: a count past what its host had.
        UnpredictableOrderError: the order is nondeterministic.
    """
    host = settings.host or Host(index=0, count=1)
    found: LeftOver | None = None
    # Segment by segment: what is left after one is what the next had shared.
    for stretch in stretches:
        found = _after(_hosts_of(resolved, settings, stretch, found), found)
    if found is None:
        raise ValueError("no stretch came before: this is the order from its start")
    share = rest_of_epoch.even_shares(found.reads, host.count)[host.index]
    return _part(found, order_of(resolved, settings), share.instructions, tuple(stretches))


def _part(
    found: LeftOver, planned: PlannedOrder, share: Reads, stretches: tuple[RunSegment, ...] = ()
) -> SharedRun:
    """Return one host's share of a rest, to be read and shuffled as its epoch is."""
    order, settings, epoch = planned.of_reader, planned.of_reader.settings, found.epochs[-1]
    buffered = settings.buffer is not None
    rest = SharedRest(
        epoch=epoch,
        reads=share,
        cycle=settings.cycle_length(ordered=order.dataset.ordered),
        block=settings.block,
        buffer=settings.buffer,
        # A rest is shuffled with the seeds of its epoch.
        buffer_seeds=order.seeds.of_buffer(max(epoch, 0)) if buffered else None,
    )
    return SharedRun(
        planned=planned, rest=rest, num_further_epochs=found.num_further_epochs, stretches=stretches
    )


def _hosts_of(
    resolved: Resolved, settings: ReadSettings, stretch: RunSegment, before: LeftOver | None
) -> list[OldHost]:
    """Return where the hosts of a stretch stopped, of which `before` is what they shared."""
    count = stretch.num_hosts
    shares = () if before is None else rest_of_epoch.even_shares(before.reads, count)
    old = []
    of_first = replace(
        # All hosts of the segment had these settings; only the host differs.
        settings,
        batch=stretch.batch,
        host_by=stretch.host_by,
        host=_host(stretch, 0),
    )
    first = order_of(resolved, of_first)
    for index, consumed in enumerate(stretch.consumed):
        planned = first.with_settings(replace(of_first, host=_host(stretch, index)))
        order = planned.of_reader
        total, rest = order.num_examples, None
        point_at = partial(rest_of_epoch.resume_point, order)
        if before is not None:
            part = _part(before, planned, shares[index].instructions)
            total, rest, point_at = part.num_examples, part.rest, partial(part.point)
        if not 0 <= consumed <= total:
            raise refused(
                "host {} of {}: {consumed!}: its part has {} examples",
                index,
                count,
                total,
                consumed=consumed,
            )
        old.append(OldHost(order=order, point=point_at(consumed), rest=rest))
    return old


def _host(stretch: RunSegment, index: int) -> Host | None:
    return None if stretch.alone else Host(index=index, count=stretch.num_hosts)


def _after(old: Sequence[OldHost], before: LeftOver | None) -> LeftOver:
    """Return what hosts have left together of the epochs up to one, and whole ones behind it."""
    # Whether the latest epoch was begun by any host.
    found = left_of_hosts(old)
    last, with_examples = found.epochs[-1], [host for host in old if host.has_examples]
    at_start = all(
        host.point.remaining and host.point.epoch == last and not host.point.emitted
        for host in with_examples
    )
    if with_examples and at_start and (before is None or last > before.epochs[-1]):
        # Nobody has begun this epoch: it is read as every other.
        return LeftOver(
            reads=found.reads.select(slice(0, 0)),
            epochs=range(last - 1, last),
            num_further_epochs=found.num_further_epochs + 1,
        )
    return found
