"""A sweep over numbers of hosts as a picture: what is read more than once, and how uneven it is."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.core.text import counted
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.rendering.hosts.loads import (
    Figure,
    Group,
    group_name,
    refused_numbers,
    spread_of,
    sweep_figures,
    sweep_groups,
)
from shardctl.rendering.pictures.axes import Tick, round_ticks
from shardctl.rendering.pictures.bars import sentences
from shardctl.rendering.pictures.panels.panel import (
    MOST_COLUMNS,
    Panel,
    PanelRow,
    draw_panels,
)
from shardctl.rendering.pictures.picture import Numbers, Picture

_CAPTION = (
    "Each bar is a number of hosts and begins at 1, the best there is: every example read once, "
    "and every host with as many as the others. No bar is no waste."
)


def sweep_picture(plan: HostsPlan) -> Picture:
    """Return a panel for each figure that tells how a way to share does with a number of hosts."""
    groups = sweep_groups(plan, MOST_COLUMNS)
    shown = sweep_figures(plan) if plan.comparisons[0].num_examples else []
    said = [_said(plan, index, figure) for index, figure in shown] or ["There are no examples."]
    said += [f"{line}." for line in refused_numbers(plan)]
    panels = {figure: [_shown(group, index, figure) for group in groups] for index, figure in shown}
    drawn = draw_panels(
        [
            Panel(
                title=f"{figure.heading}: {figure.meaning}, from 1",
                rows=rows,
                ticks=_ticks(max(row.most for row in rows)),
            )
            for figure, rows in panels.items()
            if any(row.most for row in rows)
        ],
        of="hosts" if len(groups) == len(plan.comparisons) else "hosts, the least of a group",
    )
    words = sentences(said, top=drawn.bottom)
    return Picture(
        name="hosts-sweep",
        title=f"{plan.spec} on {counted(len(plan.comparisons), 'number')} of hosts",
        caption=_CAPTION,
        alternative=" ".join(said),
        height=words.bottom,
        marks=(*drawn.marks, *words.marks),
        numbers=_numbers(groups, shown),
        note=_note(groups, plan),
    )


def _note(groups: Sequence[Group], plan: HostsPlan) -> str | None:
    count = len(plan.comparisons)
    if len(groups) == count:
        return None
    return f"{count:,} numbers of hosts in {len(groups)} groups, each of those that follow."


def _said(plan: HostsPlan, index: int, figure: Figure) -> str:
    """Return the extremes of a figure, and with how many hosts it is worst."""
    values = {one.num_hosts: spread_of([one], index, figure) for one in plan.comparisons}
    least = min(values.values(), key=lambda spread: spread.least)
    worst = max(values, key=lambda count: values[count].most)
    if least.text == values[worst].text:
        return f"{figure.heading}: {least.text} with each number of hosts."
    return f"{figure.heading}: {least.text} to {values[worst].text}, the most on {worst:,} hosts."


def _shown(group: Group, index: int, figure: Figure) -> PanelRow:
    spread = spread_of(group, index, figure)
    return PanelRow(
        name=str(min(one.num_hosts for one in group)),
        label=f"{group_name(group)} hosts",
        least=spread.least,
        most=spread.most,
        text=spread.text,
        title=f"{group_name(group)} hosts: {spread.text} {spread.words}".rstrip(),
        word="refused" if "refused" in spread.words else "idle" if spread.words else "",
    )


def _ticks(most: float) -> list[Tick]:
    """Return ticks of what is over 1, which say the figure itself."""
    ticks = round_ticks(0, most, most=3)
    digits = max(len(tick.text.partition(".")[2]) for tick in ticks)
    return [Tick(tick.value, f"{1 + tick.value:,.{digits}f}") for tick in ticks]


def _numbers(groups: Sequence[Group], shown: Sequence[tuple[int, Figure]]) -> Numbers:
    """Return the figures of each group, of those by themselves with who serves best."""
    if all(len(group) == 1 for group in groups):
        names = [strategy.name for strategy in groups[0][0].strategies]
        facts = ("times read", "imbalance", "idle hosts")
        rows = [
            (
                comparison.num_hosts,
                "none" if comparison.recommended is None else comparison.recommended.name,
                *(
                    value
                    for one in comparison.strategies
                    for value in (one.read_amplification, one.imbalance, one.idle_hosts)
                ),
            )
            for (comparison,) in groups
        ]
        headings = (f"{name}: {fact}" for name in names for fact in facts)
        return Numbers(headings=("hosts", "serves best", *headings), rows=rows)
    spreads = [[spread_of(group, index, figure) for index, figure in shown] for group in groups]
    return Numbers(
        headings=(
            "hosts",
            *(f"{figure.heading}, {what}" for _, figure in shown for what in ("least", "most")),
        ),
        rows=[
            (group_name(group), *(1 + end for one in row for end in (one.least, one.most)))
            for group, row in zip(groups, spreads, strict=True)
        ],
    )
