"""What hosts read as bars in a terminal: who is late, who is idle, how often the data is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from shardctl.core.hosts.modes import HOST_MODES
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.strategy import Strategy
from shardctl.planning.pictures.buckets import Bucket, buckets
from shardctl.rendering.hosts.loads import Quantity, quantities, told
from shardctl.rendering.terminal.bars import Bar, Series, bar_lines, beside, num_rows
from shardctl.rendering.text.quantities import numbered
from shardctl.rendering.text.tables import Screen, paragraph

_WHAT_TO_SEE = (
    "To see: bars of one length are hosts in step; the others wait for the host with the longest."
)
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
                mark="refused" if refused else "",
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
    idle = [_num_idle(found[0], group) for group in groups]
    labels = [numbered(group.first, group.last) for group in groups]
    series = [
        Series(
            heading=quantity.name,
            bars=[
                _bar(quantity, group, num_idle)
                for group, num_idle in zip(buckets(quantity.values, rows), idle, strict=True)
            ],
        )
        for quantity in found
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
    marks = []
    if quantity.straggler is not None and group.first <= quantity.straggler <= group.last:
        marks.append("most")
    if num_idle and quantity.name == "examples":
        marks.append("idle" if num_idle == group.count else f"{num_idle:,} idle")
    return Bar(
        least=least,
        most=most,
        text=quantity.between(least, most),
        mark=", ".join(marks),
        look="warning" if marks else "",
    )


def sweep_bars(plan: HostsPlan, screen: Screen) -> Iterator[str]:
    """Yield a bar for each number of hosts, or group of them: what is over 1 of its figures."""
    rows = plan.comparisons
    if not rows[0].num_examples:
        yield paragraph(_NOTHING, beside(screen))
        return
    shown = buckets(range(len(rows)), num_rows(len(rows)))
    groups = [rows[bucket.first : bucket.last + 1] for bucket in shown]
    labels = [
        numbered(min(one.num_hosts for one in group), max(one.num_hosts for one in group))
        for group in groups
    ]
    series = []
    meanings = []
    for index, strategy in enumerate(rows[0].strategies):
        for heading, meaning, figure in _figures(strategy.name):
            meanings.append(f"{heading}: {meaning}")
            bars = [_over_one([one.strategies[index] for one in group], figure) for group in groups]
            series.append(Series(heading=heading, bars=bars))
    told_below = "; ".join(meanings)
    yield paragraph(
        f"To see: bars show what is over 1, so the shortest are best. {told_below}.", beside(screen)
    )
    yield "\n"
    yield from bar_lines("hosts", labels, series, screen)


_Figure = tuple[str, str, Callable[[Strategy], float | None]]


def _figures(name: str) -> Iterator[_Figure]:
    """Yield heading, meaning and value of what tells how a strategy does with a number of hosts."""
    mode = HOST_MODES.get(name)
    if mode is None or not (mode.whole_files or mode.reads_all):
        yield f"{name} read", "times the data is read", lambda one: one.read_amplification
    if mode is None or mode.whole_files:
        meaning = "examples of the busiest host / mean"
        yield f"{name} imbalance", meaning, lambda one: one.imbalance


def _over_one(group: Sequence[Strategy], figure: Callable[[Strategy], float | None]) -> Bar:
    values = [figure(strategy) or 0.0 for strategy in group]
    least, most = min(values), max(values)
    first, last = f"{least:,.3f}", f"{most:,.3f}"
    num_refused = sum(strategy.refusal is not None for strategy in group)
    mark = "refused" if num_refused == len(group) else f"{num_refused:,} refused"
    fewest, largest = (pick(one.idle_hosts for one in group) for pick in (min, max))
    marks = [f"{numbered(fewest, largest)} idle"] if largest else []
    marks += [mark] if num_refused else []
    return Bar(
        least=max(least - 1, 0.0),
        most=max(most - 1, 0.0),
        text=first if first == last else f"{first}–{last}",
        mark=", ".join(marks),
        look="warning" if marks else "",
    )
