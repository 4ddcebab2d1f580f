"""What hosts differ in, and which of them stand out: said alike by tables, bars and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.hosts.host_reads import HostReads
from shardctl.core.hosts.modes import HOST_MODES
from shardctl.core.text import counted
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.sharing import OUTSTANDING, Strategy
from shardctl.planning.shard_map import Bucket, buckets
from shardctl.rendering.text.quantities import (
    bytes_between,
    counts_between,
    human_bytes,
    in_ranges,
    numbered,
    percent_over,
    subject,
)

FROM_DISK = "examples from disk"
_ONE = {
    "examples": "example",
    FROM_DISK: "example from disk",
    "batches": "batch",
    "files": "file",
}


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
    def straggler(self) -> int | None:
        """The first host that has the most, None where none stands out.

        One example more is as even as whole numbers can be, so it stands out only `in_step`.
        """
        most = int(self.values.max())
        differs = most - int(self.values.min())
        much = differs > 1 and most >= OUTSTANDING * self.mean
        return int(self.values.argmax()) if differs and (self.in_step or much) else None

    def stands_out(self, group: Bucket) -> bool:
        """Whether a group of hosts has one with the most, or with as much when it is rounded."""
        less = int(self.values.max()) - int(group.max)
        as_much = not less or (not self.in_step and less < (OUTSTANDING - 1) * self.mean)
        return as_much and self.straggler is not None

    @property
    def of_straggler(self) -> str:
        """The most that a host has, and how far that is over the mean where it can be read."""
        most = int(self.values.max())
        over = f" ({percent_over(most / self.mean - 1)})" if most >= OUTSTANDING * self.mean else ""
        return self.with_noun(most) + over

    def with_noun(self, value: int) -> str:
        """Return a value with what it counts; a size has its unit already.

        >>> Quantity(name="batches", values=np.array([3])).with_noun(3)
        '3 batches'
        """
        is_size = self.name == "bytes"
        return human_bytes(value) if is_size else counted(value, _ONE[self.name], self.name)

    def between(self, least: int, most: int) -> str:
        """Return a range of values, or the one that all have.

        >>> Quantity(name="examples", values=np.array([3, 4])).between(3, 4000)
        '3–4,000'
        """
        return (bytes_between if self.name == "bytes" else counts_between)(least, most)


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
    counts = {"again": comparison.num_repeated, "by no host": comparison.num_left_out}
    for how, count in counts.items():
        if count:
            yield f"{counted(count, 'example')} {'is' if count == 1 else 'are'} handed out {how}"


def _of_files(columns: HostReads, host: int, about: list[Quantity]) -> str:
    files, mean = int(columns.num_files[host]), float(columns.num_files.mean())
    said = f"; {counted(files, 'file')}"
    said += f" (mean {mean:,.1f})" if round(mean, 1) != files else ""
    taken, own = int(columns.num_read[host]), int(columns.num_examples[host])
    if taken > own and all(one.name != FROM_DISK for one in about):
        said += f", {counted(taken, 'example')} taken from disk"
    return said


# What tells how a way to share does with a number of hosts: the figures of a sweep.


class Figure(NamedTuple):
    """A figure that is 1 where nothing is wasted: its name, its meaning, the field it is."""

    heading: str
    meaning: str
    field: str


def figures(name: str) -> Iterator[Figure]:
    """Yield the figures that tell how a way to share does, those that others have by nature not.

    >>> [figure.heading for name in ("even", "files", "examples") for figure in figures(name)]
    ['even read', 'files imbalance']
    """
    mode = HOST_MODES.get(name)
    if mode is None or not (mode.whole_files or mode.reads_all):
        yield Figure(f"{name} read", "times the data is read", "read_amplification")
    if mode is None or mode.whole_files:
        yield Figure(f"{name} imbalance", "examples of the busiest host / mean", "imbalance")


def sweep_figures(plan: HostsPlan) -> list[tuple[int, Figure]]:
    """Return the figures of a sweep, each with the number of its strategy."""
    return [
        (index, figure)
        for index, strategy in enumerate(plan.comparisons[0].strategies)
        for figure in figures(strategy.name)
    ]


Group = Sequence[Comparison]


def sweep_groups(plan: HostsPlan, most: int) -> list[Group]:
    """Return the comparisons of a sweep in at most so many groups, in the order asked."""
    rows = plan.comparisons
    return [rows[found.first : found.last + 1] for found in buckets(range(len(rows)), most)]


def group_name(group: Group) -> str:
    """Return the numbers of hosts of a group."""
    counts = [comparison.num_hosts for comparison in group]
    return numbered(min(counts), max(counts))


class Spread(NamedTuple):
    """A figure over a group of numbers of hosts: how far over 1 it is, and what stands out."""

    least: float
    most: float
    words: str

    @property
    def text(self) -> str:
        """The figure itself.

        >>> Spread(0.028, 0.055, "").text
        '1.028–1.055'
        """
        least, most = f"{1 + self.least:,.3f}", f"{1 + self.most:,.3f}"
        return least if least == most else f"{least}–{most}"


def spread_of(group: Group, index: int, figure: Figure) -> Spread:
    """Return what a figure of the strategy at `index` is over a group; there are examples."""
    strategies = [comparison.strategies[index] for comparison in group]
    over = [(getattr(strategy, figure.field) or 1.0) - 1.0 for strategy in strategies]
    idle = [strategy.idle_hosts for strategy in strategies]
    num_refused = sum(strategy.refusal is not None for strategy in strategies)
    words = [f"{numbered(min(idle), max(idle))} idle"] if max(idle) else []
    if num_refused:
        words.append("refused" if num_refused == len(group) else f"{num_refused:,} refused")
    return Spread(max(min(over), 0.0), max(*over, 0.0), ", ".join(words))


def refused_numbers(plan: HostsPlan) -> Iterator[str]:
    """Yield with which numbers of hosts a way to share is refused, and with which some are idle."""
    for index, first in enumerate(plan.comparisons[0].strategies):
        found = [(one.num_hosts, one.strategies[index]) for one in plan.comparisons]
        refused = sorted({count for count, strategy in found if strategy.refusal is not None})
        idle = sorted({count for count, strategy in found if strategy.idle_hosts})
        said = {"refused and hosts idle": refused} if refused == idle else {}
        for word, counts in (said or {"refused": refused, "hosts idle": idle}).items():
            if counts:
                yield f"{first.name}: {word} with {in_ranges(np.array(counts))} hosts"
