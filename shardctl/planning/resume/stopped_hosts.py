"""Where did the hosts of a job stop, and how far had each of them read?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.order.order import Order
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import UNSEEDED_MODES
from shardctl.core.resume.unseeded_buffer import (
    DEFAULT_RISK,
    UnseededBuffer,
    check_risk,
    of_all_hosts,
)
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.order import PlannedOrder, resolved_spec
from shardctl.planning.resume.rest_of_epoch import (
    ResumePoint,
    inputs_read,
    pending_inputs,
    resume_point,
)
from shardctl.planning.resume.unseeded import order_to_resume, without_seed

MAX_HOSTS = 100_000


@dataclass(frozen=True, kw_only=True)
class OldHost:
    """One of the hosts that stopped, and where; `buffer` is one whose seed is not known."""

    order: Order
    point: ResumePoint
    buffer: UnseededBuffer | None = None


def old_orders(
    dataset: Dataset,
    spec: str | None,
    settings: ReadSettings,
    hosts: int,
    *,
    mode: str = "exactly-once",
    risk: float | None = None,
) -> list[PlannedOrder]:
    """Return the order of each of the hosts that stopped; without a seed, see `order_to_resume`."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise UsageError(
            phrase("{hosts=}: a number from 1 to {} is needed", MAX_HOSTS, hosts=hosts)
        )
    first = order_to_resume(
        resolved_spec(dataset, spec),
        replace(settings, host=Host(index=0, count=hosts)),
        mode,
        risk,
    )
    known = first.order.settings
    others = (replace(known, host=Host(index=i, count=hosts)) for i in range(1, hosts))
    return [first, *map(first.with_settings, others)]


def stopped_hosts(
    orders: Sequence[Order], counts: Sequence[int], *, mode: str, risk: float | None
) -> tuple[list[OldHost], UnseededBuffer | None]:
    """Return where hosts stopped; in a mode without a seed also what is sure of all their buffers.

    Raises:
        UsageError: a risk outside its range.
    """
    points = [resume_point(order, count) for order, count in zip(orders, counts, strict=True)]
    sizes = [order.num_buffered for order in orders]
    if mode not in UNSEEDED_MODES or None in sizes:
        hosts = zip(orders, points, strict=True)
        return [OldHost(order=order, point=point) for order, point in hosts], None
    of_each = None
    if mode == "at-least-once":
        smallest = min(size or 1 for size in sizes)
        risk = min(DEFAULT_RISK, smallest) if risk is None else risk
        check_risk(risk, smallest)
        # A host that had handed out nothing loses nothing.
        of_each = risk / max(sum(bool(point.emitted) for point in points), 1)
    found, buffers = [], []
    for order, point in zip(orders, points, strict=True):
        place = without_seed(order, point, mode, of_each)
        buffers += [] if place is None else [place.buffer]
        found.append(
            OldHost(order=order, point=point, buffer=None if place is None else buffers[-1])
        )
    return found, of_all_hosts(buffers, risk)


def at_start_of(host: OldHost, epoch: int) -> OldHost:
    """Return a host that is to read an epoch from its start."""
    size = host.order.epoch_size
    point = ResumePoint(epoch=epoch, stream=epoch, emitted=0, remaining=size)
    return replace(host, point=point, buffer=None)


def num_read_of(host: OldHost, epoch: int) -> int:
    """Return how many examples of an epoch a host has got from the reader."""
    if host.point.epoch > epoch or not host.point.remaining:
        return host.order.epoch_size
    if host.point.epoch < epoch:
        return 0
    if host.buffer is not None:
        return host.buffer.first_read
    return inputs_read(host.order, host.point)


def pending_of(host: OldHost, epoch: int) -> Int64s:
    """Return the inputs of an epoch (int64[p]) that a host's buffer held."""
    if host.point.epoch != epoch or not host.point.remaining or host.buffer is not None:
        return np.empty(0, np.int64)
    return pending_inputs(host.order, host.point)
