"""What does a host of a run read that went on with other hosts, and in which order?

A run that was shared anew has one stretch behind it, or several: what each host of each had handed
out. From that alone follows what every host reads now, so that a position in it is a few counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from shardctl.core.arrays import Int64s
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.phrase import refused
from shardctl.core.resume.resume_plan import ResumePlan, Stretch, settings_as_planned
from shardctl.core.resume.shared_rest import SharedRest
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.order import PlannedOrder, order_of
from shardctl.planning.resume.hosts import even_shares
from shardctl.planning.resume.proof import without_dropping
from shardctl.planning.resume.rest_of_epoch import ResumePoint, plan_of, resume_point, shuffle_state
from shardctl.planning.resume.resume import calls_after_read, further_epochs, resume_order
from shardctl.planning.resume.stopped_hosts import (
    OldHost,
    check_left,
    epochs_of,
    left_of_epochs,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """A host's share of the rest of an epoch, and the whole epochs behind it.

    planned: the order of the host as if nothing had stopped, whose epochs follow the rest.
    num_further_epochs: how many epochs follow the one whose rest was shared.
    """

    planned: PlannedOrder
    rest: SharedRest
    num_further_epochs: int

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


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedRun(_Part):
    """One host's part of a run that was shared anew: its share of the rest, then whole epochs.

    stretches: what came before, the first one first.
    """

    stretches: tuple[Stretch, ...]

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
    resolved: Resolved, settings: ReadSettings, stretches: Sequence[Stretch]
) -> SharedRun:
    """Return what the host of `settings` reads of a run after `stretches`.

    Its own stretches are those that it follows from: where all hosts had read their share of a rest
    to its end, the ones before do not matter.

    Raises:
        UsageError: a count past what its host had.
        UnpredictableOrderError: TensorFlow leaves the order open.
    """
    host = settings.host or Host(index=0, count=1)
    planned = order_of(resolved, settings)
    found: _Rest | None = None
    needed: list[Stretch] = []
    for stretch in stretches:
        old = _hosts_of(resolved, settings, stretch, found)
        if found is not None and not settings.drop_remainder and _are_behind_rest(old):
            needed, found = [_from_the_start(old, stretch)], None
        else:
            needed.append(stretch)
        found = _after(old, settings, found)
    if found is None:
        raise ValueError("no stretch came before: this is the order from its start")
    share = even_shares(found.left, host.count)[host.index]
    part = found.of_host(planned, share.instructions)
    return SharedRun(
        planned=planned,
        stretches=tuple(needed),
        rest=part.rest,
        num_further_epochs=part.num_further_epochs,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rest:
    """What hosts have left together: runs of the epochs up to `epoch`, and whole ones behind it."""

    left: Reads
    epoch: int
    num_further_epochs: int

    def of_host(self, planned: PlannedOrder, share: Reads) -> _Part:
        """Return one host's share, to be read and shuffled as its epoch is."""
        order, settings = planned.of_reader, planned.of_reader.settings
        buffered = settings.buffer is not None
        rest = SharedRest(
            epoch=self.epoch,
            reads=share,
            cycle=settings.cycle_length(ordered=order.dataset.ordered),
            block=settings.block,
            buffer=settings.buffer,
            buffer_seeds=order.seeds.of_buffer(max(self.epoch, 0)) if buffered else None,
        )
        return _Part(planned=planned, rest=rest, num_further_epochs=self.num_further_epochs)


def _hosts_of(
    resolved: Resolved, settings: ReadSettings, stretch: Stretch, before: _Rest | None
) -> list[OldHost]:
    """Return where the hosts of a stretch stopped, of which `before` is what they shared."""
    count = stretch.num_hosts
    shares = () if before is None else even_shares(before.left, count)
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
            part = before.of_host(planned, shares[index].instructions)
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


def _host(stretch: Stretch, index: int) -> Host | None:
    return None if stretch.alone else Host(index=index, count=stretch.num_hosts)


def _are_behind_rest(old: Sequence[OldHost]) -> bool:
    """Whether all hosts are in epochs that no stretch before has anything to do with."""
    return all(
        host.rest is not None and (host.point.epoch > host.rest.epoch or not host.has_examples)
        for host in old
    )


def _from_the_start(old: Sequence[OldHost], stretch: Stretch) -> Stretch:
    """Return a stretch as if its hosts had read all epochs from the first one on."""
    consumed = [
        host.point.epoch * host.order.epoch_size + host.point.emitted if host.has_examples else 0
        for host in old
    ]
    return replace(stretch, consumed=tuple(consumed))


def _after(old: Sequence[OldHost], settings: ReadSettings, before: _Rest | None) -> _Rest:
    epochs = epochs_of(old)
    last = epochs[-1]
    left = left_of_epochs(old, epochs)
    check_left(left, old, last)
    if not any(host.point.remaining for host in old):
        return _Rest(left=left, epoch=last, num_further_epochs=0)
    if _is_whole(old, last) and (before is None or last > before.epoch):
        # Nobody has begun this epoch: it is read as every other.
        last, left = last - 1, left.select(slice(0, 0))
    return _Rest(left=left, epoch=last, num_further_epochs=settings.epochs - 1 - last)


def _is_whole(old: Sequence[OldHost], epoch: int) -> bool:
    """Whether all hosts are at the start of an epoch."""
    return all(
        host.point.remaining and host.point.epoch == epoch and not host.point.emitted
        for host in old
        if host.has_examples
    )
