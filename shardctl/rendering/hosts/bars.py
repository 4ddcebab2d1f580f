"""What hosts read as bars in a terminal: who is late, who is idle, how often the data is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.strategy import Strategy
from shardctl.planning.pictures.buckets import Bucket, buckets
from shardctl.rendering.hosts.figures import (
    Spread,
    group_name,
    refused_numbers,
    spread_of,
    sweep_figures,
    sweep_groups,
)
from shardctl.rendering.hosts.loads import Quantity, quantities, told
from shardctl.rendering.terminal.bars import Bar, Series, bar_lines, beside, num_rows
from shardctl.rendering.text.quantities import numbered
from shardctl.rendering.text.tables import Screen, paragraph

_WHAT_TO_SEE = (
    "To see: bars of one length are hosts in step; the others wait for the host with the longest."
)
_OVER_ONE = "To see: bars show what is over 1, so the shortest are best."
_NOTHING = "To see: nothing, for there are no examples."
_OF_GROUPS = " Of a group of hosts the full part is the least, the shaded part the most."


def hosts_bars(comparison: Comparison, screen: Screen) -> Iterator[str]:
    """Yield how often each strategy reads the data, then a bar for each host, or group of them.

    Where hosts are alike, one bar stands for all.
    """
    if not comparison.num_examples:
        yield paragraph(_NOTHING, beside(screen))
        return
    grouped = _OF_GROUPS if num_rows(comparison.num_hosts) < comparison.num_hosts else ""
    yield paragraph(_WHAT_TO_SEE + grouped, beside(screen))
    if len(comparison.strategies) > 1:
        yield "\n"
        yield from _times_read(comparison.strategies, screen)
    for strategy in comparison.strategies:
        yield "\n"
        yield from _strategy(strategy, screen)


def _times_read(strategies: Sequence[Strategy], screen: Screen) -> Iterator[str]:
    bars = []
    for strategy in strategies:
        times = strategy.read_amplification or 0.0
        refused = strategy.refusal is not None
        bars.append(
            Bar(
                least=times,
                most=times,
                text=f"{times:,.2f}",
                word="refused" if refused else "",
                look="warning" if refused else "",
            )
        )
    names = [strategy.name for strategy in strategies]
    yield from bar_lines("way to share", names, [Series(heading="times read", bars=bars)], screen)


def _strategy(strategy: Strategy, screen: Screen) -> Iterator[str]:
    if strategy.refusal is not None:
        yield paragraph(f"{strategy.name}: {strategy.refusal}", beside(screen), style="warning")
    found, remarks = quantities(strategy), list(told(strategy))
    rows = num_rows(len(found[0].values)) if remarks else 1
    groups = buckets(found[0].values, rows)
    examples = found[0]
    idle = [_num_idle(examples, group) for group in groups]
    labels = [numbered(group.first, group.last) for group in groups]
    series = [
        Series(
            heading=quantity.name,
            bars=[
                _bar(quantity, group, num_idle if quantity is examples else 0)
                for group, num_idle in zip(buckets(quantity.values, rows), idle, strict=True)
            ],
        )
        for quantity in sorted(found, key=lambda one: one.straggler is None)  # if one has room
    ]
    yield from bar_lines(f"{strategy.name}: host", labels, series, screen)
    for remark in remarks:
        yield paragraph(remark, beside(screen), style="warning")


def _num_idle(examples: Quantity, group: Bucket) -> int:
    if group.min:
        return 0
    return int((examples.values[group.first : group.last + 1] == 0).sum())


def _bar(quantity: Quantity, group: Bucket, num_idle: int) -> Bar:
    least, most = int(group.min), int(group.max)
    words = []
    if quantity.stands_out(group):
        words.append("most")
    if num_idle:
        words.append("idle" if num_idle == group.count else f"{num_idle:,} idle")
    return Bar(
        least=least,
        most=most,
        text=quantity.between(least, most),
        word=", ".join(words),
        look="warning" if words else "",
    )


def sweep_bars(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    """Yield a bar for each number of hosts, or group of them: what is over 1 of its figures."""
    if not plan.comparisons[0].num_examples:
        yield paragraph(_NOTHING, beside(screen))
        return
    groups = sweep_groups(plan, num_rows(len(plan.comparisons)))
    shown = sweep_figures(plan)
    meanings = "; ".join(f"{figure.heading}: {figure.meaning}" for _, figure in shown)
    yield paragraph(f"{_OVER_ONE} {meanings}.", beside(screen))
    yield "\n"
    series = [
        Series(
            heading=figure.heading,
            bars=[_over_one(spread_of(group, index, figure)) for group in groups],
        )
        for index, figure in shown
    ]
    yield from bar_lines("hosts", list(map(group_name, groups)), series, screen)
    for remark in refused_numbers(plan):
        yield paragraph(remark, beside(screen), style="warning")


def _over_one(spread: Spread) -> Bar:
    return Bar(
        least=spread.least,
        most=spread.most,
        text=spread.text,
        word=spread.words,
        look="warning" if spread.words else "",
    )
