"""What each host reads under every way to share, and who is late."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted, first_upper
from shardctl.planning.hosts.advice import advice, reason
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.hosts.hosts import measure_cells, title
from shardctl.rendering.pictures.hosts import hosts_pictures
from shardctl.rendering.report.elements import (
    Section,
    figures,
    items,
    not_shown,
    paragraph,
    plain,
    sentence,
    table,
)


def hosts_section(report: Report) -> Section:
    """Return what hosts read, and which way to share serves best."""
    plan = report.hosts
    body = not_shown(plan) if isinstance(plan, NotShown) else "".join(_body(plan))
    return Section(anchor="hosts", title="What does each host read?", body=body)


def _body(plan: HostsPlan) -> Iterator[str]:
    comparison = plan.comparisons[0]
    best = comparison.recommended
    named = "None" if best is None else plain(best.name)
    several = len(comparison.strategies) > 1
    serves = f"<strong>Serves best: {named}.</strong> " if several else ""
    yield paragraph(f"{serves}{first_upper(sentence(reason(comparison)))}.", "lead")
    yield figures(hosts_pictures(plan))
    where = title(plan, counted(comparison.num_hosts, "host"))
    yield table(f"The ways to share, side by side: {where}", *measure_cells(plan))
    refused = [one for one in comparison.strategies if one.refusal is not None]
    yield items(f"{plain(one.name)}: {sentence(one.refusal)}" for one in refused)
    yield items(map(sentence, advice(comparison, plan.settings)))
