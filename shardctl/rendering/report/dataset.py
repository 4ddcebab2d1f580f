"""What is read, and how: the dataset, its shards, every setting with who says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.text import counted
from shardctl.planning.config import SettingInForce
from shardctl.planning.report.report import Report
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.config import origin_words, value_words
from shardctl.rendering.layout import LEGEND, split_cells
from shardctl.rendering.pictures.layout import layout_pictures
from shardctl.rendering.report.elements import (
    Section,
    code,
    facts,
    figures,
    folded,
    name,
    not_shown,
    paragraph,
    plain,
    table,
)
from shardctl.rendering.text.tables import Column

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "value", "origin"))


def dataset_section(report: Report) -> Section:
    """Return what the dataset is and how it is read."""
    return Section(anchor="data", title="What is read, and how", body="".join(_body(report)))


def _body(report: Report) -> Iterator[str]:
    yield facts(_facts(report))
    layout = report.layout
    if isinstance(layout, NotShown):
        yield not_shown(layout)
    else:
        yield table("Splits, and how evenly their shards share the examples", *split_cells(layout))
        yield paragraph(plain(LEGEND), "quiet")
        yield figures(layout_pictures(layout))
    yield "<h3>Every setting in force</h3>\n"
    stated = [item for item in report.in_force if item.origin.source != "default"]
    others = [item for item in report.in_force if item.origin.source == "default"]
    if stated:
        yield _settings("Settings that somebody chose, and what follows from them", stated)
    else:
        yield paragraph("Nobody chose a setting: all of them are defaults.")
    if others:
        caption = f"{counted(len(others), 'default')}, which nobody changed"
        yield folded(caption, _settings(caption, others))


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    dataset = report.dataset
    yield "dataset", name(dataset.title)
    yield "what is read of it", code(report.spec)
    yield "file format", plain(dataset.file_format)
    yield "known from", name(dataset.data_dir or dataset.origin)


def _settings(caption: str, settings: Sequence[SettingInForce]) -> str:
    rows = ((item.name, value_words(item), origin_words(item.origin)) for item in settings)
    return table(caption, _SETTINGS, rows, kind="said")
