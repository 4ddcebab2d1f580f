"""Where two orders part, why, and the settings of both, as sections of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from shardctl.core.stages.document import pipeline_of
from shardctl.core.stages.text import text_of
from shardctl.core.text import counted, first_upper
from shardctl.errors import ShardctlError
from shardctl.planning.diff.diff import Diff
from shardctl.planning.report.compare import ComparedSetting, ReportComparison
from shardctl.planning.report.compared_side import ComparedSide
from shardctl.planning.report.parting import NamedPosition
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.config import value_text
from shardctl.rendering.diff.diff import cause_line, headline, moved_line, without_effect
from shardctl.rendering.pictures.compared import parting_picture
from shardctl.rendering.report.elements import (
    Section,
    cells_table,
    code,
    figures,
    folded,
    items,
    name,
    not_shown,
    paragraph,
    plain,
    table,
)
from shardctl.rendering.text.tables import Column

_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "A", "B"))


def dataset_line(comparison: ReportComparison) -> str:
    """Return what both read, and first of all whether that is the same, as HTML."""
    one, other = comparison.sides
    if not comparison.dataset_changes and one.spec == other.spec:
        return f"Both read {code(one.spec)} of {name(one.head.title)}."
    told = f"A reads {_read(one)}, and B {_read(other)}."
    if not comparison.dataset_changes:
        return told
    return (
        f"<strong>The datasets or their layouts are not the same.</strong> {told} Equal ids need "
        "not be equal examples."
    )


def _read(side: ComparedSide) -> str:
    return f"{code(side.spec)} of {name(side.head.title)}"


def parting_section(comparison: ReportComparison) -> Section:
    """Return where the orders first differ, how much moved, and why."""
    found = comparison.diff
    body = not_shown(found) if isinstance(found, NotShown) else "".join(_parting(comparison, found))
    causes = _causes(comparison)
    return Section(anchor="parting", title="Where do they part?", body=f"{body}{causes}")


def _parting(comparison: ReportComparison, found: Diff) -> Iterator[str]:
    yield paragraph(f"<strong>{plain(headline(found))}.</strong>", "lead")
    if found.first is not None:
        yield paragraph(f"{first_upper(plain(moved_line(found.moved)))}.")
    yield items(plain(first_upper(note)) for note in found.notes)
    if comparison.blocks:
        lengths = [side.snapshot.num_examples for side in (found.expected, found.actual)]
        longer = None if lengths[0] == lengths[1] else "AB"[lengths[1] > lengths[0]]
        things = "ids" if comparison.dataset_changes else "examples"
        strip = parting_picture(comparison.blocks, found.first, longer=longer, things=things)
        yield figures([strip])
    if comparison.neighbours:
        yield _neighbours(comparison.neighbours)


def _neighbours(rows: tuple[NamedPosition, ...]) -> str:
    columns = [Column(heading="position")]
    named = any(one.a_tfds_id or one.b_tfds_id for one in rows)
    for letter in "AB":
        columns.append(Column(heading=f"id in {letter}"))
        if named:
            columns.append(Column(heading=f"tfds_id in {letter}", align="left"))
    cells = []
    for row in rows:
        sides = ((row.a, row.a_tfds_id), (row.b, row.b_tfds_id))
        cells.append(
            [
                _emphasised(f"{row.position:,}", row),
                *(
                    cell
                    for given, tfds_id in sides
                    for cell in ([_id(given), name(tfds_id or "")] if named else [_id(given)])
                ),
            ]
        )
    caption = "The examples around the first difference; positions in bold hold different ones"
    return cells_table(caption, columns, cells)


def _emphasised(html: str, row: NamedPosition) -> str:
    return f"<strong>{html}</strong>" if row.differs else html


def _id(given: int | str | None) -> str:
    return "(end)" if given is None else name(given)


def _causes(comparison: ReportComparison) -> str:
    found = comparison.diff
    if isinstance(found, NotShown):
        told = [plain(cause_line(cause)) for cause in comparison.dataset_changes]
        return f"<h3>What differs of the datasets</h3>\n{items(told)}" if told else ""
    if found.equal:
        told = [plain(line.strip()) for line in without_effect(found)]
        return items(told)
    told = [plain(cause_line(cause)) for cause in found.causes]
    return f"<h3>Why: from A to B</h3>\n{items(told)}"


def settings_section(comparison: ReportComparison) -> Section:
    """Return the settings that differ, with both values, and those that do not."""
    differing = [setting for setting in comparison.settings if setting.differs]
    same = [setting for setting in comparison.settings if not setting.differs]
    body = paragraph("Every setting in force has one value on both sides.")
    if differing:
        caption = "Settings in force that are not the same"
        body = table(caption, _SETTINGS, map(_row, differing), kind="said")
    if same:
        caption = f"{counted(len(same), 'setting')} with one value on both sides"
        body += folded(caption, table(caption, _SETTINGS, map(_row, same), kind="said"))
    return Section(anchor="settings", title="Which settings differ?", body=body)


def _row(setting: ComparedSetting) -> tuple[str, str, str]:
    key = setting.name
    return key, setting_text(key, setting.a), setting_text(key, setting.b)


def setting_text(setting: str, value: Any) -> str:
    """Return a value of a setting as `config` shows it; stages as one line.

    >>> setting_text("cycle", 16), setting_text("shuffle_files", True), setting_text("host", None)
    ('16', 'true', 'none')
    """
    if setting == "stages" and value is not None:
        with suppress(ShardctlError):  # stages of another version
            return text_of(pipeline_of(value))
    return value_text(value)
