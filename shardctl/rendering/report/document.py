"""A report as a document: what it is about, then each part as its own command writes it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from shardctl.core.settings.document import settings_in_force
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.layout import Layout
from shardctl.planning.quality.quality import Quality
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.planning.shard_map import ShardMap, Strips
from shardctl.rendering.config import setting_record
from shardctl.rendering.eval import eval_document
from shardctl.rendering.hosts.hosts import hosts_document
from shardctl.rendering.layout import size_record
from shardctl.rendering.lint import lint_document
from shardctl.rendering.quality.loaders import loaders_document
from shardctl.rendering.quality.quality import quality_document
from shardctl.rendering.report.again import again
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.setting_origins import NOWHERE, SettingOrigins


def report_document(report: Report) -> Document:
    """Return the document: a part that cannot be shown is `{not_shown: why}`.

    Shards are not listed one by one, which `layout` does.
    """
    quality = report.quality
    return {
        **head("report", report.dataset.identity, assumptions=_assumptions(report)),
        "spec": report.spec,
        "pipeline": settings_in_force(report.settings, ordered=report.dataset.ordered),
        "num_examples": report.num_examples,
        "num_hosts": report.num_hosts,
        "num_devices": report.num_devices,
        "predictable": _is_predictable(report),
        "open": None if report.is_open is None else as_options(report.is_open),
        "assumed": dict(quality.assumed) if isinstance(quality, Quality) else {},
        "settings": [setting_record(item) for item in report.in_force],
        "again": again(report.question),
        "notes": list(map(as_options, report.notes)),
        "warnings": list(map(as_options, report.warnings)),
        "layout": part_document(report.layout, _layout),
        "shard_map": part_document(report.shard_map, shard_map_document),
        "strips": part_document(report.strips, _strips),
        "opened": None if report.opened is None else _strips(report.opened),
        "quality": part_document(quality, quality_document),
        "hosts": part_document(report.hosts, hosts_document),
        "eval": part_document(report.evaluation, eval_document),
        "lint": part_document(report.lint, lambda lint: lint_document(lint, origins_of(report))),
        "loaders": None
        if report.loaders is None
        else part_document(report.loaders, loaders_document),
    }


def _assumptions(report: Report) -> Iterable[str]:
    return () if isinstance(report.order, NotShown) else map(as_options, report.order.assumptions)


def _is_predictable(report: Report) -> bool | None:
    """Return whether the order is known, None where the pipeline has none."""
    if report.is_open is not None:
        return False
    return None if isinstance(report.order, NotShown) else True


def origins_of(report: Report) -> SettingOrigins:
    """Return where shardctl.yaml has the settings that it decides, for those who look at them."""
    decided = [item for item in report.in_force if item.origin.source == "file"]
    lines = {
        item.name.rpartition(".")[2]: item.origin.line
        for item in decided
        if item.origin.line is not None
    }
    file = next((item.origin.file for item in decided), None)
    return NOWHERE if file is None else SettingOrigins(file=os.path.relpath(file), lines=lines)


def part_document(part: Any, document: Callable[[Any], Document]) -> Document:
    """Return the document of a part of a report, or why it is not there."""
    if isinstance(part, NotShown):
        return {"not_shown": as_options(part.reason)}
    return document(part)


def _layout(layout: Layout) -> Document:
    splits = [{**size_record(split), "balance": asdict(split.balance)} for split in layout.splits]
    return {"splits": splits}


def shard_map_document(found: ShardMap) -> Document:
    """Return the map: the counts of each row under what the row and the columns stand for."""
    return {
        "num_shards": found.num_shards,
        "num_positions": found.num_positions,
        "rows": [
            {"shards": label, "expected": float(expected), "counts": counts}
            for label, expected, counts in zip(
                found.labels, found.expected, found.counts.tolist(), strict=True
            )
        ],
        "columns": [
            {"start": start, "stop": stop, "measured": measured}
            for (start, stop), measured in zip(found.columns, found.measured.tolist(), strict=True)
        ],
        "sampled": None if found.sampled is None else asdict(found.sampled),
    }


def _strips(found: Strips) -> Document:
    return {
        "start": found.start,
        "stop": found.stop,
        "is_cut": found.is_cut,
        "visits": [asdict(visit) for visit in found.visits],
    }
