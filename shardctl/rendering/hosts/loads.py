"""What hosts differ in, and which of them stand out: said alike by tables, bars and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.hosts.host_reads import HostReads
from shardctl.core.text import counted
from shardctl.planning.hosts.hosts import Comparison
from shardctl.planning.hosts.strategy import OUTSTANDING, Strategy
from shardctl.planning.pictures.buckets import Bucket
from shardctl.rendering.text.quantities import (
    bytes_between,
    counts_between,
    human_bytes,
    percent_over,
    subject,
)

FROM_DISK = "examples from disk"
_ONE = {"examples": "example", FROM_DISK: "example from disk", "batches": "batch"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantity:
    """What each host has of something, int64[num_hosts].

    `in_step` is set where a single one more or less makes others wait.
    """

    name: str
    values: Int64s
    in_step: bool = False

    @cached_property
    def mean(self) -> float:
        """The mean of all hosts, the idle ones included."""
        return float(self.values.mean())

    @cached_property
    def excess(self) -> float:
        """How far the host with the most is above the mean, as a part of the mean."""
        return int(self.values.max()) / self.mean - 1 if self.mean else 0.0

    @cached_property
    def straggler(self) -> int | None:
        """The first host that has the most, None where none stands out.

        One example more is as even as whole numbers can be, so it stands out only `in_step`.
        """
        differs = int(self.values.max()) - int(self.values.min())
        if self.in_step:
            return int(self.values.argmax()) if differs else None
        if differs > 1 and 1 + self.excess >= OUTSTANDING:
            return int(self.values.argmax())
        return None

    def stands_out(self, group: Bucket) -> bool:
        """Whether a group of hosts has one with the most, or with as much when it is rounded."""
        less = int(self.values.max()) - int(group.max)
        as_much = not less or (not self.in_step and less < (OUTSTANDING - 1) * self.mean)
        return as_much and self.straggler is not None

    @property
    def of_straggler(self) -> str:
        """The most that a host has, and how far that is over the mean where it can be read."""
        most = self.with_noun(int(self.values.max()))
        return f"{most} ({percent_over(self.excess)})" if 1 + self.excess >= OUTSTANDING else most

    def with_noun(self, value: int) -> str:
        """Return a value with what it counts; a size has its unit already.

        >>> Quantity(name="batches", values=np.array([3])).with_noun(3)
        '3 batches'
        """
        if self.name == "bytes":
            return human_bytes(value)
        return counted(value, _ONE.get(self.name, self.name), self.name)

    def between(self, least: int, most: int) -> str:
        """Return a range of values, or the one that all have.

        >>> Quantity(name="examples", values=np.array([3, 4])).between(3, 4000)
        '3–4,000'
        """
        said = bytes_between if self.name == "bytes" else counts_between
        return said(least, most)


def quantities(strategy: Strategy) -> tuple[Quantity, ...]:
    """Return what hosts have of examples, of batches and of bytes, where these are known.

    Without bytes it is the examples taken from disk, where they are others than are handed out.
    """
    columns = strategy.columns
    if columns is None:
        return ()
    found = [Quantity(name="examples", values=columns.num_examples)]
    if columns.num_bytes is not None:
        found.append(Quantity(name="bytes", values=columns.num_bytes))
    elif not np.array_equal(columns.num_read, columns.num_examples):
        found.append(Quantity(name=FROM_DISK, values=columns.num_read))
    if strategy.batches is not None:
        found.insert(1, Quantity(name="batches", values=strategy.batches, in_step=True))
    return tuple(found)


def told(strategy: Strategy) -> Iterator[str]:
    """Yield who is late and who is idle under a strategy, each a sentence without its dot."""
    columns = strategy.columns
    if columns is None:
        return
    most: dict[int, list[Quantity]] = {}
    for quantity in quantities(strategy):
        if quantity.straggler is not None:
            most.setdefault(quantity.straggler, []).append(quantity)
    for host, about in most.items():
        as_late = np.logical_and.reduce([one.values == one.values.max() for one in about])
        figures = ", ".join(one.of_straggler for one in about).replace("%)", "% over the mean)", 1)
        who = subject("host", np.flatnonzero(as_late), "has", "have")
        yield f"{who} the most: {figures}{_of_files(columns, host, about)}"
    batches = strategy.num_batches
    if batches is not None and batches.min != batches.max and strategy.refusal is None:
        yield (
            f"hosts make {batches.min:,} to {batches.max:,} batches: a collective hangs at step "
            f"{batches.min:,}"
        )
    if strategy.idle_hosts:
        idle = np.flatnonzero(columns.num_examples == 0)
        yield f"{subject('host', idle, 'is', 'are')} idle: no examples"


def told_of_padding(comparison: Comparison) -> Iterator[str]:
    """Yield how many examples a loader hands out again, and how many no host gets."""
    if comparison.num_repeated:
        is_or_are = "is" if comparison.num_repeated == 1 else "are"
        yield f"{counted(comparison.num_repeated, 'example')} {is_or_are} handed out again"
    if comparison.num_left_out:
        is_or_are = "is" if comparison.num_left_out == 1 else "are"
        yield f"{counted(comparison.num_left_out, 'example')} {is_or_are} handed out by no host"


def _of_files(columns: HostReads, host: int, about: list[Quantity]) -> str:
    files, mean = int(columns.num_files[host]), float(columns.num_files.mean())
    said = f"; {counted(files, 'file')}"
    said += f" (mean {mean:,.1f})" if round(mean, 1) != files else ""
    taken, own = int(columns.num_read[host]), int(columns.num_examples[host])
    if taken > own and all(one.name != FROM_DISK for one in about):
        said += f", {counted(taken, 'example')} taken from disk"
    return said
