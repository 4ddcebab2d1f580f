"""What hosts read as pictures: each way to share, host by host; sweeps over numbers of hosts."""

from __future__ import annotations

from shardctl.base.text import counted
from shardctl.draw.picture import Bar, Paper, Picture, Series, bar_lines
from shardctl.draw.quantities import numbered
from shardctl.order.shard_map import Bucket, buckets
from shardctl.spec.host import HOST_MODES
from shardctl.verbs.hosts.answer import Comparison, HostsPlan
from shardctl.verbs.hosts.sharing import Strategy
from shardctl.verbs.hosts.view import (
    Quantity,
    group_name,
    quantities,
    refused_numbers,
    spread_of,
    sweep_figures,
    sweep_groups,
    told,
    told_of_padding,
)

_NOTHING = "nothing, for there are no examples."
_IN_STEP = "bars of one length are hosts in step; the others wait for the host with the longest."
_OF_GROUPS = " Of a group of hosts the full part is the least, the shaded part the most."
_TIMES = "how often all hosts together read the data; 1 is each example once."


def hosts_pictures(plan: HostsPlan, paper: Paper) -> tuple[Picture, ...]:
    """Return how often each way to share reads the data, then what each host reads in each way.

    A sweep has one picture, of the figures over the numbers of hosts.
    """
    comparison = plan.comparisons[0]
    if not comparison.num_examples:
        return (Picture(name="hosts", title=f"What hosts read of {plan.spec}", caption=_NOTHING),)
    if comparison.strategies[0].columns is None:
        return (_sweep(plan, paper),)
    found = [_times_read(plan, comparison, paper)] if len(comparison.strategies) > 1 else []
    found += [_strategy(comparison, strategy, paper) for strategy in comparison.strategies]
    return tuple(found)


def _times_read(plan: HostsPlan, comparison: Comparison, paper: Paper) -> Picture:
    bars = []
    for strategy in comparison.strategies:
        times = strategy.read_amplification or 0.0
        word = "" if strategy.refusal is None else "refused"
        bars.append(Bar(times, times, f"{times:,.2f}", word))
    names = [strategy.name for strategy in comparison.strategies]
    return Picture(
        name="hosts-times-read",
        title=f"Times that {counted(comparison.num_hosts, 'host')} read {plan.spec}",
        caption=_TIMES,
        marks=tuple(bar_lines("way to share", names, [Series("times read", bars)], paper)),
    )


def _strategy(comparison: Comparison, strategy: Strategy, paper: Paper) -> Picture:
    """Return a bar for each host, or group of them; where hosts are alike, one stands for all."""
    found, remarks = quantities(strategy), [*told(strategy), *told_of_padding(comparison)]
    rows = paper.num_rows(comparison.num_hosts) if remarks else 1
    groups = buckets(found[0].values, rows)
    series = [
        Series(
            quantity.name,
            [
                _bar(quantity, group, counts_idle=quantity is found[0])
                for group in buckets(quantity.values, rows)
            ],
        )
        for quantity in sorted(found, key=lambda one: one.straggler is None)  # if one has room
    ]
    labels = [numbered(group.first, group.last) for group in groups]
    refused = [] if strategy.refusal is None else [f"{strategy.name}: {strategy.refusal}"]
    return Picture(
        name=f"hosts-{strategy.name if strategy.name in HOST_MODES else 'loader'}",
        title=f"{strategy.name}: what each of {counted(comparison.num_hosts, 'host')} reads",
        caption=_IN_STEP + (_OF_GROUPS if 1 < len(groups) < comparison.num_hosts else ""),
        marks=tuple(bar_lines(f"{strategy.name}: host", labels, series, paper)),
        warnings=(*refused, *remarks),
    )


def _bar(quantity: Quantity, group: Bucket, *, counts_idle: bool) -> Bar:
    least, most = int(group.min), int(group.max)
    words = ["most"] if quantity.stands_out(group) else []
    if counts_idle and not group.min:
        idle = int((quantity.values[group.first : group.last + 1] == 0).sum())
        words.append("idle" if idle == group.count else f"{idle:,} idle")
    text = quantity.between(least, most)
    return Bar(least, most, text, ", ".join(words))


def _sweep(plan: HostsPlan, paper: Paper) -> Picture:
    """Return a bar for each number of hosts, or group of them: what is over 1 of its figures."""
    shown = sweep_figures(plan)
    groups = sweep_groups(plan, paper.num_rows(len(plan.comparisons)))
    meanings = "; ".join(f"{figure.heading}: {figure.meaning}" for _, figure in shown)
    series = []
    for index, figure in shown:
        spreads = [spread_of(group, index, figure) for group in groups]
        bars = [Bar(one.least, one.most, one.text, one.words) for one in spreads]
        series.append(Series(figure.heading, bars))
    labels = list(map(group_name, groups))
    return Picture(
        name="hosts-sweep",
        title=f"{plan.spec} on {counted(len(plan.comparisons), 'number')} of hosts",
        caption=f"bars show what is over 1, so the shortest are best. {meanings}.",
        marks=tuple(bar_lines("hosts", labels, series, paper)),
        warnings=tuple(refused_numbers(plan)),
    )
