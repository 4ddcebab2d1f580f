"""What tells how a way to share does with a number of hosts: the figures of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from shardctl.core.hosts.modes import HOST_MODES
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.strategy import Strategy
from shardctl.planning.pictures.buckets import buckets
from shardctl.rendering.text.quantities import in_ranges, numbered


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that is 1 where nothing is wasted: its name, its meaning, its value."""

    heading: str
    meaning: str
    value: Callable[[Strategy], float | None]


def figures(name: str) -> Iterator[Figure]:
    """Yield the figures that tell how a way to share does, those that others have by nature not.

    >>> [figure.heading for name in ("even", "files", "examples") for figure in figures(name)]
    ['even read', 'files imbalance']
    """
    mode = HOST_MODES.get(name)
    if mode is None or not (mode.whole_files or mode.reads_all):
        yield Figure(
            heading=f"{name} read",
            meaning="times the data is read",
            value=attrgetter("read_amplification"),
        )
    if mode is None or mode.whole_files:
        yield Figure(
            heading=f"{name} imbalance",
            meaning="examples of the busiest host / mean",
            value=attrgetter("imbalance"),
        )


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


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A figure over a group of numbers of hosts: how far over 1 it is, and what stands out."""

    least: float
    most: float
    words: str

    @property
    def text(self) -> str:
        """The figure itself.

        >>> Spread(least=0.028, most=0.055, words="").text
        '1.028–1.055'
        """
        least, most = f"{1 + self.least:,.3f}", f"{1 + self.most:,.3f}"
        return least if least == most else f"{least}–{most}"


def spread_of(group: Group, index: int, figure: Figure) -> Spread:
    """Return what a figure of the strategy at `index` is over a group; there are examples."""
    strategies = [comparison.strategies[index] for comparison in group]
    over = [(figure.value(strategy) or 1.0) - 1.0 for strategy in strategies]
    idle = [strategy.idle_hosts for strategy in strategies]
    num_refused = sum(strategy.refusal is not None for strategy in strategies)
    words = [f"{numbered(min(idle), max(idle))} idle"] if max(idle) else []
    if num_refused:
        words.append("refused" if num_refused == len(group) else f"{num_refused:,} refused")
    return Spread(least=max(min(over), 0.0), most=max(*over, 0.0), words=", ".join(words))


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
