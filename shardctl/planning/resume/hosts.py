"""How does a job resume with another number of hosts?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.hosts.even_splits import even_range
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.order.order import Order
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import HostShare, ResumePlan, settings_as_planned
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.order import PlannedOrder, plan_order
from shardctl.planning.resume.rest_of_epoch import (
    ResumePoint,
    inputs_read,
    pending_inputs,
    reads_at,
    rest_of_reading,
    resume_point,
)
from shardctl.planning.resume.resume import (
    calls_after_read,
    consumed_examples,
    further_epochs,
    ids_at,
    num_further_epochs,
)

MAX_HOSTS = 100_000


@dataclass(frozen=True, kw_only=True)
class _OldHost:
    """One of the hosts that stopped, and where."""

    order: Order
    point: ResumePoint


@checked
def resume_on_hosts(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int,
    to_hosts: int,
    consumed: int | Sequence[int] | None = None,
    steps: int | None = None,
) -> ResumePlan:
    """Return how a job of `hosts` hosts resumes with `to_hosts`: exactly once, in another order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: those of the job, without a host.
        hosts: how many hosts it had.
        to_hosts: how many it goes on with.
        consumed: how many examples each had handed out; one count for all, or a list of one for
            each.
        steps: how many batches, in place of `consumed`.

    Returns:
        A ResumePlan, whose `hosts` say what each new host reads. What no host has handed out is
        split evenly, in the order of the files. Where hosts are in different epochs it goes on
        in that of the foremost, and what others have left of earlier ones is shared as well.

    Raises:
        UsageError: a count past a host's end, as many counts as no host count, a host in the
            settings, files that repeat without end.

    >>> import shardctl
    >>> plan = shardctl.resume_on_hosts("imagenet2012", "train", hosts=4, to_hosts=6, consumed=1000)
    >>> plan.remaining, plan.hosts[0]
    (1277167, <HostShare host 0 of 6: 212,862 examples, 171 file instructions>)
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    refuse_unreadable(dataset)
    if settings.host is not None:
        raise UsageError(
            phrase("{host} with {to_hosts}: all hosts are planned at once; leave {host} out")
        )
    if settings.repeat_files:
        raise UsageError(
            phrase(
                "{repeat_files=True} with {to_hosts}: the epochs of each host run into one another "
                "without end, so nothing is left over to share; resume each host by itself"
            )
        )
    planned = old_orders(dataset, spec, settings, hosts)
    each = (consumed,) if isinstance(consumed, int) else consumed
    counts = _counts([p.order for p in planned], each, steps)
    old = [
        _OldHost(order=one.order, point=resume_point(one.order, count))
        for one, count in zip(planned, counts, strict=True)
    ]
    epochs = _epochs(old)
    left_of = _left_of_all if settings.host_mode.reads_all else _left
    left = joined([left_of(old, epoch).runs() for epoch in epochs])
    unfinished = any(host.point.remaining for host in old)
    _check_count(left, old, epochs[-1], counts)
    buffered = settings.buffer is not None
    shares = even_shares(left, to_hosts)
    whole = planned[0].with_settings(settings).order
    return ResumePlan(
        dataset=dataset.identity,
        spec=planned[0].spec,
        mode="exactly-once",
        settings=settings_as_planned(settings, ordered=dataset.ordered),
        consumed=sum(counts),
        epoch=epochs[-1],
        remaining=left.num_examples,
        remaining_total=sum(h.order.num_examples for h in old) - sum(counts),
        instructions=left.select(slice(0, 0)),
        pending=_pending_ids(old) if buffered else None,
        further_epochs=further_epochs(whole, epochs[-1]) if unfinished else (),
        num_further_epochs=num_further_epochs(whole, epochs[-1]) if unfinished else 0,
        from_consumed=tuple(counts),
        hosts=shares,
        after_read=calls_after_read(settings, "exactly-once", epochs[-1]),
        warnings=(*planned[0].warnings, *_several_epochs(epochs)),
    )


def old_orders(
    dataset: Dataset, spec: str | None, settings: ReadSettings, hosts: int
) -> list[PlannedOrder]:
    """Return the order of each of the hosts that stopped."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise UsageError(
            phrase("{hosts=}: a number from 1 to {} is needed", MAX_HOSTS, hosts=hosts)
        )
    of_hosts = (replace(settings, host=Host(index=i, count=hosts)) for i in range(hosts))
    first = plan_order(dataset, spec, next(of_hosts))
    return [first, *map(first.with_settings, of_hosts)]


def _counts(
    orders: Sequence[Order], consumed: Sequence[int] | None, steps: int | None
) -> list[int]:
    if consumed is None or len(consumed) == 1:
        each = [None if consumed is None else consumed[0]] * len(orders)
    elif len(consumed) == len(orders):
        each = list(consumed)
    else:
        raise UsageError(
            phrase(
                "{consumed} names {} counts for {hosts=}: give one for all, or one a host",
                len(consumed),
                hosts=len(orders),
            )
        )
    counts = []
    for index, (order, count) in enumerate(zip(orders, each, strict=True)):
        try:
            counts.append(consumed_examples(order, consumed=count, steps=steps))
        except UsageError as error:
            raise UsageError(phrase("host {} of {}: {}", index, len(orders), error)) from None
    return counts


def _epochs(old: Sequence[_OldHost]) -> range:
    """Return the epochs that hosts are in; a host that has no examples is in none."""
    epochs_begun = [host.point.epoch for host in old if host.order.epoch_size]
    return range(min(epochs_begun), max(epochs_begun) + 1) if epochs_begun else range(1)


def _left(old: Sequence[_OldHost], epoch: int) -> Reads:
    """Return what the hosts have left of one epoch, each of them reading its own rows."""
    several = []
    for host in old:
        reads, reading = host.order.reads, host.order.reading(epoch)
        own = [rest_of_reading(reads, reading, _num_read(host, epoch))]
        if len(pending := _pending(host, epoch)):
            own.append(reads_at(reads, reading, pending))
        # A host's own runs first: in the order of the files the rows of all need no sort.
        several.append(joined(own).runs())
        del reading
        host.order.forget_readings()
    return joined(several)


def _left_of_all(old: Sequence[_OldHost], epoch: int) -> Reads:
    """Return what the hosts have left of one epoch, all of them reading the same rows.

    Host i of n has examples i, i + n, ... of the reading. From where the foremost host is on
    all are left; before that, and in the buffers, they are left one by one.
    """
    num_hosts, reads = len(old), old[0].order.reads
    reading = replace(old[0].order.reading(epoch), stride=1, phase=0)
    num_read = [_num_read(host, epoch) for host in old]
    foremost = max(num_read)
    positions = []
    for index, host in enumerate(old):
        # Example k of this host is at k * num_hosts + index of what all hosts read.
        between = np.arange(num_read[index], min(foremost, host.order.epoch_size))
        positions += [
            between * num_hosts + index,
            _pending(host, epoch) * num_hosts + index,
        ]
    single = reads_at(reads, reading, np.concatenate(positions))
    rest = rest_of_reading(reads, reading, foremost * num_hosts)
    del reading
    for host in old:
        host.order.forget_readings()
    return joined([single, rest])


def _num_read(host: _OldHost, epoch: int) -> int:
    """Return how many examples of an epoch a host has got from the reader."""
    if host.point.epoch > epoch or not host.point.remaining:
        return host.order.epoch_size
    if host.point.epoch < epoch:
        return 0
    return inputs_read(host.order, host.point)


def _pending(host: _OldHost, epoch: int) -> Int64s:
    """Return the inputs of an epoch (int64[p]) that a host's buffer held."""
    if host.point.epoch != epoch or not host.point.remaining:
        return np.empty(0, np.int64)
    return pending_inputs(host.order, host.point)


def _pending_ids(old: Sequence[_OldHost]) -> tuple[int | str, ...]:
    ids: list[int | str] = []
    for host in old:
        epoch = host.point.epoch
        ids += ids_at(host.order, host.order.reading(epoch), _pending(host, epoch))
        host.order.forget_readings()
    return tuple(ids)


def _check_count(left: Reads, old: Sequence[_OldHost], epoch: int, counts: list[int]) -> None:
    """Check that what is left and what was handed out add up to whole epochs."""
    expected = 0
    for host, count in zip(old, counts, strict=True):
        at_end = count == host.order.num_examples
        expected += 0 if at_end else (epoch + 1) * host.order.epoch_size - count
    if left.num_examples != expected:
        raise AssertionError(f"{left.num_examples} examples left, {expected} by count")


def _several_epochs(epochs: range) -> tuple[str, ...]:
    if len(epochs) == 1:
        return ()
    return (
        f"the hosts are in epochs {epochs[0]} to {epochs[-1]}: what is left of each is shared out "
        "as one",
    )


def even_shares(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise UsageError(
            phrase("{to_hosts=}: a number from 1 to {} is needed", MAX_HOSTS, to_hosts=num_hosts)
        )
    total = reads.num_examples
    shares = []
    for index in range(num_hosts):
        part = even_range(0, total, index, num_hosts, drop_remainder=False)
        share = reads.between(part.start, part.stop)
        shares.append(HostShare(index=index, count=num_hosts, instructions=share))
    return tuple(shares)
