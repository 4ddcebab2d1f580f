"""Two pipelines side by side as a page and a document, with the answer of `diff` about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from shardctl.base.columns import picked
from shardctl.base.text import counted
from shardctl.draw.tables import Column, Screen
from shardctl.errors import ShardctlError
from shardctl.files.documents import Document
from shardctl.saved.head import kind_head, own_version
from shardctl.stages.text import pipeline_of, text_of
from shardctl.verbs.config.view import value_text
from shardctl.verbs.diff import view as diff_view
from shardctl.verbs.diff.answer import Diff
from shardctl.verbs.quality.view import quality_document
from shardctl.verbs.report import elements as html
from shardctl.verbs.report.answer import NotShown
from shardctl.verbs.report.compare import ComparedSide, ReportComparison
from shardctl.verbs.report.page import Card, cards, part_document, quality_body, remarks, sentences


def comparison_page(comparison: ReportComparison) -> Iterator[str]:
    """Yield the page; the same comparison gives the same bytes."""
    one, other = comparison.sides
    yield html.page(
        title=f"{one.label} and {other.label}",
        heading=f"A: {html.name(one.label)}<br/>B: {html.name(other.label)}",
        kind="Two pipelines side by side",
        more=_datasets(comparison),
        sections=comparison_sections(comparison),
    )


def comparison_body(comparison: ReportComparison) -> str:
    """Return the page for a notebook, in a frame."""
    title = f"{comparison.a.label} and {comparison.b.label} side by side"
    return html.in_frame(title, repr(comparison)[1:-1], "".join(comparison_page(comparison)))


def comparison_sections(comparison: ReportComparison) -> list[html.Section]:
    """Return the sections in the order of a newcomer's questions."""
    body = cards(
        ("Is it the same order?", "difference", _same_order(comparison)),
        ("Which is shuffled better?", "shuffle", _better(comparison)),
    )
    return [
        html.Section("summary", "In short", (body, remarks(comparison.warnings))),
        html.Section("difference", "Where do they differ?", _difference(comparison)),
        html.Section("shuffle", "How does each shuffle?", _shuffles(comparison)),
        html.Section("settings", "Datasets and settings", _settings(comparison)),
    ]


def _shuffles(comparison: ReportComparison) -> Iterator[str]:
    yield '<div class="sides">\n'
    for letter, side in zip("AB", comparison.sides, strict=True):
        found = "".join(html.part(side.quality, quality_body))
        yield f"<div><h3>{letter}: {html.name(side.label)}</h3>\n{found}</div>\n"
    yield "</div>\n"


def _datasets(comparison: ReportComparison) -> str:
    """Return what both read, and first of all whether that is the same, as HTML."""
    one, other = (
        f"{html.code(side.spec)} of {html.name(side.head.title)}" for side in comparison.sides
    )
    if comparison.dataset_changes:
        differ = "<strong>The datasets or their layouts are not the same.</strong>"
        rest = "Equal ids need not be equal examples."
        return f"{differ} A reads {one}, and B {other}. {rest}"
    return f"Both read {one}." if one == other else f"A reads {one}, and B {other}."


def _same_order(comparison: ReportComparison) -> Card:
    found = comparison.diff
    if isinstance(found, NotShown):
        return Card("Not known", "open", sentences(found.reason))
    if found.first is not None:
        lines = (diff_view.headline(found), diff_view.moved_line(found.moved))
        return Card("No", "warn", sentences(*lines))
    body = sentences(diff_view.headline(found))
    if not found.equal:
        return Card("Not known", "open", body)
    same_ids = comparison.dataset_changes
    return Card("The same ids", "warn", body) if same_ids else Card("Yes", "good", body)


def _better(comparison: ReportComparison) -> Card:
    found = []
    for side in comparison.sides:
        if isinstance(side.quality, NotShown):
            return Card("Not known", "open", sentences(f"{side.label}: {side.quality.reason}"))
        found.append(side.quality)
    one, other = found
    body = sentences(
        f"A scores {one.score.value:.4f} ({one.verdict})",
        f"B scores {other.score.value:.4f} ({other.verdict})",
    )
    # Within two of their errors, or of spreads, two scores do not differ.
    # Both sources of uncertainty: chance, and measuring a sample.
    noise = 2 * max(each.score.spread + (each.score.sampling_error or 0.0) for each in found)
    lead = other.score.value - one.score.value
    return Card("About the same" if abs(lead) <= noise else "AB"[lead > 0], "open", body)


def _difference(comparison: ReportComparison) -> Iterator[str]:
    yield from html.part(comparison.diff, _differences)
    if isinstance(comparison.diff, NotShown):
        yield html.items(
            html.plain(diff_view.cause_line(cause)) for cause in comparison.dataset_changes
        )


def _differences(found: Diff) -> Iterator[str]:
    """Yield the answer of `diff`."""
    lines = "".join(diff_view.diff_table(found, Screen(abridged=True))).splitlines()
    yield "<pre>" + "\n".join(map(html.plain, lines)) + "</pre>\n"


_SETTINGS = tuple(Column(heading=text, align="left") for text in ("setting", "A", "B"))


def _settings(comparison: ReportComparison) -> Iterator[str]:
    differing = [one for one in comparison.settings if one.differs]
    same = [one for one in comparison.settings if not one.differs]
    yield html.paragraph("" if differing else "Every setting has the same value in A and B.")
    captions = ("Settings that differ", f"{counted(len(same), 'setting')} with equal values")
    for caption, shown in zip(captions, (differing, same), strict=True):
        rows = [(one.name, *(setting_text(one.name, v) for v in (one.a, one.b))) for one in shown]
        is_open = shown is differing
        yield html.table(caption, _SETTINGS, rows, kind="said", is_open=is_open) if rows else ""
    yield html.paragraph(f"Written by shardctl {html.plain(own_version())}.", "quiet")


def setting_text(setting: str, value: Any) -> str:
    """Return a value of a setting as `config` shows it; stages as one line.

    >>> setting_text("cycle", 16), setting_text("shuffle_files", True), setting_text("host", None)
    ('16', 'true', 'none')
    """
    if setting == "stages" and value is not None:
        with suppress(ShardctlError):  # stages of another version
            return text_of(pipeline_of(value))
    return value_text(value)


# Two pipelines side by side, as a document: each as the commands write it, and where they differ.


def comparison_document(comparison: ReportComparison) -> Document:
    """Return the document: of kind `report`, with both under `compared`.

    What cannot be had says why; `equal` is None where it is not known.
    """
    return {
        **kind_head("report"),
        "compared": {
            "equal": comparison.equal,
            "diff": part_document(comparison.diff, diff_view.diff_document),
            "dataset_changes": list(map(diff_view.cause_record, comparison.dataset_changes)),
            "settings": [picked(one, "name a b differs") for one in comparison.settings],
            "a": _side(comparison.a),
            "b": _side(comparison.b),
        },
        "warnings": list(comparison.warnings),
    }


def _side(side: ComparedSide) -> Document:
    return {
        **picked(side, "label is_snapshot"),
        "dataset": side.head.record(),
        **picked(side, "spec pipeline=settings rules"),
        "num_examples": None
        if isinstance(side.order, NotShown)
        else side.order.snapshot.num_examples,
        "quality": part_document(side.quality, quality_document),
    }
