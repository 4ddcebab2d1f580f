"""A report as a document: what it is about, then each part as its own command writes it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from shardctl.base.columns import picked
from shardctl.files.documents import Document
from shardctl.metadata.project_file import NOWHERE, SettingOrigins
from shardctl.saved.head import head
from shardctl.settings.read_settings import settings_in_force
from shardctl.verbs.config.view import setting_record
from shardctl.verbs.eval.view import eval_document
from shardctl.verbs.hosts.view import hosts_document
from shardctl.verbs.layout.answer import Layout
from shardctl.verbs.layout.view import size_record
from shardctl.verbs.lint.view import lint_document
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.view import loaders_document, quality_document
from shardctl.verbs.report.answer import Report
from shardctl.verbs.report.question import NotShown

_STRIPS = "start stop is_cut visits"


def report_document(report: Report) -> Document:
    """Return the document: a part that cannot be shown is `{not_shown: why}`.

    Shards are not listed one by one, which `layout` does.
    """
    quality, order = report.quality, report.order
    assumptions = () if isinstance(order, NotShown) else order.assumptions
    has_no_order = report.is_open is None and isinstance(order, NotShown)
    return {
        **head("report", report.dataset.identity, assumptions=assumptions),
        "spec": report.spec,
        "pipeline": settings_in_force(report.settings, ordered=report.dataset.ordered),
        **picked(report, "num_examples num_hosts num_devices"),
        "predictable": None if has_no_order else report.is_open is None,
        "open": report.is_open,
        "assumed": dict(quality.assumed) if isinstance(quality, Quality) else {},
        "settings": [setting_record(item) for item in report.in_force],
        **picked(report, "notes warnings"),
        "layout": part_document(report.layout, _layout),
        "strips": part_document(report.strips, lambda found: picked(found, _STRIPS)),
        "quality": part_document(quality, quality_document),
        "hosts": part_document(report.hosts, hosts_document),
        "eval": part_document(report.evaluation, eval_document),
        "lint": part_document(report.lint, lambda lint: lint_document(lint, origins_of(report))),
        "loaders": part_document(report.loaders, loaders_document),
    }


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


def part_document(part: Any, document: Callable[[Any], Document]) -> Document | None:
    """Return the document of a part of a report, or why it is not there; None if not asked for."""
    if isinstance(part, NotShown):
        return {"not_shown": part.reason}
    return None if part is None else document(part)


def _layout(layout: Layout) -> Document:
    splits = ({**size_record(split), **picked(split, "balance")} for split in layout.splits)
    return {"splits": list(splits)}
