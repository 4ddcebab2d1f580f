"""Two pipelines side by side as a page and a document, with the answer of `diff` about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from shardctl.base.columns import picked
from shardctl.base.text import counted, first_upper
from shardctl.draw.tables import Column, Screen
from shardctl.errors import ShardctlError
from shardctl.files.documents import Document
from shardctl.saved.head import kind_head, own_version
from shardctl.stages.text import pipeline_of, text_of
from shardctl.verbs.config.view import value_text
from shardctl.verbs.diff import view as diff_view
from shardctl.verbs.diff.answer import Diff
from shardctl.verbs.quality.answer import Quality
from shardctl.verbs.quality.view import quality_document
from shardctl.verbs.report import elements as html
from shardctl.verbs.report.compare import ComparedSide, ReportComparison
from shardctl.verbs.report.document import part_document
from shardctl.verbs.report.page import (
    Card,
    cards,
    quality_body,
    stated,
)
from shardctl.verbs.report.question import NotShown


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
        html.Section("summary", "In short", (body,)),
        html.Section("difference", "Where do they differ?", _difference(comparison)),
        html.Section("settings", "Which settings differ?", _settings(comparison)),
        html.Section("shuffle", "How does each shuffle?", _shuffles(comparison)),
        html.Section("about", "About this page", _about(comparison)),
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
        return Card("Not known", "open", html.paragraph(f"{html.sentence(found.reason)}."))
    said = html.paragraph(f"{html.plain(diff_view.headline(found))}.")
    if found.first is not None:
        moved = html.paragraph(f"{first_upper(html.plain(diff_view.moved_line(found.moved)))}.")
        return Card("No", "warn", said + moved)
    if not found.equal:
        return Card("Not known", "open", said)
    same_ids = comparison.dataset_changes
    return Card("The same ids", "warn", said) if same_ids else Card("Yes", "good", said)


def _better(comparison: ReportComparison) -> Card:
    found: list[Quality] = []
    for side in comparison.sides:
        if isinstance(side.quality, NotShown):
            said = html.paragraph(f"{html.name(side.label)}: {html.sentence(side.quality.reason)}.")
            return Card("Not known", "open", said)
        found.append(side.quality)
    scores = [one.score for one in found]
    scored = [f"{one.score.value:.4f} ({html.plain(one.verdict)})" for one in found]
    said = html.paragraph(f"A scores {scored[0]}; B {scored[1]}.")
    # Within two of their errors, or of spreads, two scores do not differ.
    noise = 2 * max(score.spread + (score.sampling_error or 0.0) for score in scores)
    lead = scores[1].value - scores[0].value
    return Card("About the same" if abs(lead) <= noise else "AB"[lead > 0], "open", said)


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
    names = ", ".join(html.code(one.name) for one in differing)
    yield html.paragraph(f"{names}." if names else "Every setting has the same value in A and B.")
    captions = ("Settings that differ", f"{counted(len(same), 'setting')} with equal values")
    for caption, shown in zip(captions, (differing, same), strict=True):
        rows = [(one.name, *(setting_text(one.name, v) for v in (one.a, one.b))) for one in shown]
        yield html.table(caption, _SETTINGS, rows, kind="said") if rows else ""


def setting_text(setting: str, value: Any) -> str:
    """Return a value of a setting as `config` shows it; stages as one line.

    >>> setting_text("cycle", 16), setting_text("shuffle_files", True), setting_text("host", None)
    ('16', 'true', 'none')
    """
    if setting == "stages" and value is not None:
        with suppress(ShardctlError):  # stages of another version
            return text_of(pipeline_of(value))
    return value_text(value)


def _about(comparison: ReportComparison) -> Iterator[str]:
    sides = comparison.sides
    rows = (
        ("file", *(side.label for side in sides)),
        ("what it is", *("a snapshot" if side.is_snapshot else "settings" for side in sides)),
        ("dataset", *(side.head.title for side in sides)),
        ("fingerprint of the dataset", *(str(side.head.fingerprint) for side in sides)),
        ("split or slice", *(side.spec for side in sides)),
        ("rules of the order", *(str(side.rules) for side in sides)),
    )
    columns = [Column(heading=text, align="left") for text in ("what", "A", "B")]
    yield html.table("What A and B are", columns, rows, kind="said")
    yield from stated("Warnings", comparison.warnings)
    yield html.paragraph(f"Written by shardctl {html.plain(own_version())}.", "quiet")


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
        "spec": side.spec,
        "pipeline": side.settings,
        "rules": asdict(side.rules),
        "num_examples": None
        if isinstance(side.order, NotShown)
        else side.order.snapshot.num_examples,
        "quality": part_document(side.quality, quality_document),
    }
