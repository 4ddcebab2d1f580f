"""What hosts read as pictures: each way to share, host by host; sweeps over numbers of hosts."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.core.hosts.modes import HOST_MODES
from shardctl.core.text import counted, first_upper
from shardctl.planning.hosts.advice import reason
from shardctl.planning.hosts.hosts import Comparison, HostsPlan
from shardctl.planning.hosts.sharing import Strategy
from shardctl.planning.shard_map import Bucket, buckets
from shardctl.rendering.hosts.loads import Quantity, quantities, told, told_of_padding
from shardctl.rendering.pictures.axes import round_ticks
from shardctl.rendering.pictures.bars import Bar, Part, bars, sentences
from shardctl.rendering.pictures.panel import (
    MOST_COLUMNS,
    Panel,
    PanelRow,
    byte_ticks,
    count_text,
    draw_panels,
    groups_note,
    sweep_picture,
)
from shardctl.rendering.pictures.picture import Numbers, Picture
from shardctl.rendering.text.quantities import numbered

_CAPTION = (
    "Equal bars are hosts in step; the others wait for the one with the most. A host without "
    "examples is idle."
)
_TIMES_CAPTION = (
    "What all hosts together take from disk, as a multiple of the data: 1 is each example once. A "
    "file is read from its start, so what a host skips in it counts too."
)


def hosts_pictures(plan: HostsPlan) -> tuple[Picture, ...]:
    """Return how often each way to share reads the data, then what each host reads in each way.

    A sweep has one picture, of the figures over the numbers of hosts.
    """
    comparison = plan.comparisons[0]
    if comparison.strategies[0].columns is None:
        return (sweep_picture(plan),)
    found = [_times_read(plan, comparison)] if len(comparison.strategies) > 1 else []
    found += [_strategy_picture(plan, strategy) for strategy in comparison.strategies]
    return tuple(found)


def _times_read(plan: HostsPlan, comparison: Comparison) -> Picture:
    rows = [
        Bar(
            name=strategy.name,
            parts=(Part(strategy.read_amplification or 0.0, "alarm" if refused else "data"),),
            text=f"{_times(strategy)} refused" if refused else _times(strategy),
            title=f"{strategy.name}: {_said(strategy)}",
        )
        for strategy in comparison.strategies
        for refused in [strategy.refusal is not None]
    ]
    drawn = bars(rows, expected=1.0 if comparison.num_examples else None)
    best = comparison.recommended
    serves = f"Serves best: {'none' if best is None else best.name}, {reason(comparison)}."
    words = sentences([serves], top=drawn.bottom)
    return Picture(
        name="hosts-times-read",
        title=f"Times that {counted(comparison.num_hosts, 'host')} read {plan.spec}",
        caption=_TIMES_CAPTION,
        alternative=" ".join(
            [*(f"{one.name}: {_said(one)}." for one in comparison.strategies), serves]
        ),
        height=words.bottom,
        marks=(*drawn.marks, *words.marks),
        numbers=Numbers(
            headings=("way to share", "times read", "imbalance", "idle hosts", "refused"),
            rows=[
                (one.name, one.read_amplification, one.imbalance, one.idle_hosts, one.refusal or "")
                for one in comparison.strategies
            ],
        ),
    )


def _times(strategy: Strategy) -> str:
    times = strategy.read_amplification
    return "-" if times is None else f"{times:,.2f}"


def _said(strategy: Strategy) -> str:
    said = f"the data is read {_times(strategy)} times"
    return said if strategy.refusal is None else f"{said}, but {strategy.refusal}"


def _strategy_picture(plan: HostsPlan, strategy: Strategy) -> Picture:
    found = quantities(strategy)
    num_hosts = len(found[0].values)
    groups = buckets(found[0].values, MOST_COLUMNS)
    remarks = [] if strategy.refusal is None else [f"Refused: {strategy.refusal}."]
    panels: list[Panel] = []
    alike = []
    for quantity in found:
        least, most = int(quantity.values.min()), int(quantity.values.max())
        if least == most and (panels or not most):
            alike.append(f"{quantity.with_noun(most)} on every host.")
        else:
            panels.append(_panel(quantity, _shown(strategy, quantity, groups)))
    remarks += alike + [f"{first_upper(line)}." for line in told(strategy)]
    remarks += [f"{line}." for line in told_of_padding(plan.comparisons[0])]
    of = "host" if num_hosts == len(groups) else "host, the first of a group"
    drawn = draw_panels(panels, of=of)
    words = sentences(remarks, top=drawn.bottom)
    ranges = ", ".join(
        quantity.between(int(quantity.values.min()), int(quantity.values.max()))
        + ("" if quantity.name == "bytes" else f" {quantity.name}")
        for quantity in found
    )
    return Picture(
        name=f"hosts-{strategy.name if strategy.name in HOST_MODES else 'loader'}",
        title=f"{strategy.name}: what each of {counted(num_hosts, 'host')} reads",
        caption=_CAPTION,
        alternative=" ".join(
            [f"Under {strategy.name} a host of {num_hosts:,} has {ranges}.", *remarks]
        ),
        height=words.bottom,
        marks=(*drawn.marks, *words.marks),
        numbers=_numbers(strategy, found, groups),
        note=groups_note("host", groups),
    )


def _panel(quantity: Quantity, rows: Sequence[PanelRow]) -> Panel:
    most = int(quantity.values.max())
    if quantity.name == "bytes":
        ticks, unit = byte_ticks(most)
    else:
        ticks, unit = round_ticks(0, most, most=3, whole=True), quantity.name
    return Panel(title=f"{unit} a host", rows=rows, ticks=ticks, mean=quantity.mean)


def _shown(strategy: Strategy, quantity: Quantity, groups: Sequence[Bucket]) -> list[PanelRow]:
    columns = strategy.columns
    assert columns is not None
    rows = []
    for group, part in zip(groups, buckets(quantity.values, MOST_COLUMNS), strict=True):
        least, most = int(part.min), int(part.max)
        num_idle = int((columns.num_examples[group.first : group.last + 1] == 0).sum())
        hosts = f"host{'s' if group.count > 1 else ''} {numbered(group.first, group.last)}"
        said = quantity.between(least, most)
        rows.append(
            PanelRow(
                name=str(group.first),
                label=hosts,
                least=least,
                most=most,
                text=said if quantity.name == "bytes" else count_text(least, most),
                title=f"{hosts}: {said}",
                word=_word(quantity, part, num_idle),
            )
        )
    return rows


def _word(quantity: Quantity, group: Bucket, num_idle: int) -> str:
    words = []
    if quantity.stands_out(group):
        words.append("most")
    if num_idle:
        words.append("idle" if num_idle == group.count else "some idle")
    return ", ".join(words)


def _numbers(strategy: Strategy, found: Sequence[Quantity], groups: Sequence[Bucket]) -> Numbers:
    columns = strategy.columns
    assert columns is not None
    shown = [*found, Quantity(name="files", values=columns.num_files)]
    if all(group.count == 1 for group in groups):
        names = ("host", *(quantity.name for quantity in shown))
        values = [quantity.values.tolist() for quantity in shown]
        return Numbers(headings=names, rows=list(zip(range(len(groups)), *values, strict=True)))
    names = (
        "hosts",
        *(f"{one.name}, {what}" for one in shown for what in ("least", "most", "mean")),
    )
    parts = [buckets(quantity.values, MOST_COLUMNS) for quantity in shown]
    rows = [
        (
            numbered(group.first, group.last),
            *(
                figure
                for part in parts
                for figure in (int(part[row].min), int(part[row].max), part[row].mean)
            ),
        )
        for row, group in enumerate(groups)
    ]
    return Numbers(headings=names, rows=rows)
