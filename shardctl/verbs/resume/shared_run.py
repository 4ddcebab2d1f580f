"""What does a host of a run read that went on with other hosts, and in which order?

A run that was shared anew has one stretch behind it, or several: what each host of each had handed
out. From that alone follows what every host reads now, so that a position in it is a few counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardctl.base.arrays import Int64s
from shardctl.base.phrase import refused
from shardctl.order.plan_order import PlannedOrder, order_of
from shardctl.saved.resume_plan import ResumePlan, RunSegment, settings_as_planned
from shardctl.saved.shared_rest import SharedRest
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import Resolved
from shardctl.verbs.resume.answer import calls_after_read, further_epochs, resume_order
from shardctl.verbs.resume.hosts import (
    LeftOver,
    OldHost,
    even_shares,
    left_of_hosts,
)
from shardctl.verbs.resume.proof import without_dropping
from shardctl.verbs.resume.rest_of_epoch import ResumePoint, plan_of, resume_point, shuffle_state


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
        """Number of examples that this host hands out, without a last batch that is dropped."""
        order = self.planned.of_reader
        total = self.rest.size + self.num_further_epochs * order.epoch_size
        if order.settings.drop_remainder and order.settings.batch is not None:
            total -= total % order.settings.batch
        return total

    def point(self, consumed: int) -> ResumePoint:
        """Return the place after so many examples: of the rest, or of an epoch behind it."""
        rest, size = self.rest, self.planned.of_reader.epoch_size
        behind = consumed - rest.size
        epoch, emitted, of_epoch = rest.epoch, consumed, rest.size
        if behind >= 0 and size and self.num_further_epochs:
            index = min(behind // size, self.num_further_epochs - 1)
            epoch, emitted, of_epoch = rest.epoch + 1 + index, behind - index * size, size
        remaining = 0 if consumed == self.num_examples else of_epoch - emitted
        return ResumePoint(epoch=epoch, stream=epoch, emitted=emitted, remaining=remaining)

    def chunks(self, start: int, stop: int) -> Iterator[Int64s]:
        """Yield the codes of the examples [start, stop) that this host hands out, in pieces."""
        size, order = self.rest.size, self._undropped.of_reader
        if start < size:
            yield from self.rest.chunks(start, min(stop, size), order.codes)
        first = (self.rest.epoch + 1) * order.epoch_size - size
        if max(start, size) < stop:
            yield from order.chunks(max(start, size) + first, stop + first)

    def plan(self, consumed: int) -> ResumePlan:
        """Return the plan with which this host goes on after so many examples, in exact order."""
        point, order = self.point(consumed), self.planned.of_reader
        settings = settings_as_planned(order.settings, ordered=order.dataset.ordered)
        if point.remaining and point.epoch == self.rest.epoch:
            plan = self._plan_in_rest(point)
        else:
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
            after_read=calls_after_read(
                settings, plan.mode, plan.epoch, num_shared=int(plan.shared is None)
            ),
            warnings=self.planned.warnings,
        )

    def _plan_in_rest(self, point: ResumePoint) -> ResumePlan:
        order, rest = self.planned.of_reader, self.rest
        reads, _ = rest.files_left(point.emitted)
        shuffle, pending = None, None
        if rest.replay is not None:
            shuffle = shuffle_state(rest.replay, point.emitted)
            held = order.codes.first_codes(rest.pending(point.emitted))
            pending = tuple(order.codes.ids(held) if len(held) else [])
        return plan_of(
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
            further_epochs=further_epochs(order, rest.epoch),
            num_further_epochs=self.num_further_epochs,
            continued_by="shardctl.tfds",
        )

    @property
    def _undropped(self) -> PlannedOrder:
        """The order with what a dropped batch would hold: here batches begin in other places."""
        settings = self.planned.of_reader.settings
        if not settings.drop_remainder:
            return self.planned
        return self.planned.with_settings(without_dropping(settings))


def shared_run(
    resolved: Resolved, settings: ReadSettings, stretches: Sequence[RunSegment]
) -> SharedRun:
    """Return what the host of `settings` reads of a run after `stretches`.

    Raises:
        UsageError: a count past what its host had.
        UnpredictableOrderError: TensorFlow leaves the order open.
    """
    host = settings.host or Host(index=0, count=1)
    found: LeftOver | None = None
    for stretch in stretches:
        found = _after(_hosts_of(resolved, settings, stretch, found), found)
    if found is None:
        raise ValueError("no stretch came before: this is the order from its start")
    share = even_shares(found.reads, host.count)[host.index]
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
        buffer_seeds=order.seeds.of_buffer(max(epoch, 0)) if buffered else None,
    )
    return SharedRun(
        planned=planned,
        rest=rest,
        num_further_epochs=found.num_further_epochs,
        stretches=stretches,
    )


def _hosts_of(
    resolved: Resolved, settings: ReadSettings, stretch: RunSegment, before: LeftOver | None
) -> list[OldHost]:
    """Return where the hosts of a stretch stopped, of which `before` is what they shared."""
    count = stretch.num_hosts
    shares = () if before is None else even_shares(before.reads, count)
    old = []
    of_first = replace(
        settings, batch=stretch.batch, host_by=stretch.host_by, host=_host(stretch, 0)
    )
    first = order_of(resolved, of_first)
    for index, consumed in enumerate(stretch.consumed):
        planned = first
        if index:
            planned = first.with_settings(replace(of_first, host=_host(stretch, index)))
        order, part = planned.of_reader, None
        if before is not None:
            part = _part(before, planned, shares[index].instructions)
        total = order.num_examples if part is None else part.num_examples
        if not 0 <= consumed <= total:
            raise refused(
                "host {} of {}: {consumed!}: its part has {} examples",
                index,
                count,
                total,
                consumed=consumed,
            )
        point = resume_point(order, consumed) if part is None else part.point(consumed)
        old.append(OldHost(order=order, point=point, rest=None if part is None else part.rest))
    return old


def _host(stretch: RunSegment, index: int) -> Host | None:
    return None if stretch.alone else Host(index=index, count=stretch.num_hosts)


def _after(old: Sequence[OldHost], before: LeftOver | None) -> LeftOver:
    """Return what hosts have left together of the epochs up to one, and whole ones behind it."""
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
