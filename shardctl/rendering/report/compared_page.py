"""Two pipelines side by side, as one HTML page: where they part, and how each shuffles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

from shardctl.core.text import counted, first_upper
from shardctl.files.documents import Document
from shardctl.files.head import kind_head, own_version
from shardctl.planning.quality.quality import Quality
from shardctl.planning.report.compare import ReportComparison
from shardctl.planning.report.compared_side import ComparedSide
from shardctl.planning.report.shown import NotShown
from shardctl.rendering.diff.diff import cause_record, diff_document, headline, moved_line
from shardctl.rendering.eval import eval_document
from shardctl.rendering.hosts.hosts import hosts_document
from shardctl.rendering.quality.quality import quality_document
from shardctl.rendering.report.compared_figures import (
    dataset_line,
    evaluation_section,
    hosts_section,
    parting_section,
    settings_section,
    shuffle_section,
)
from shardctl.rendering.report.document import part_document, shard_map_document
from shardctl.rendering.report.elements import (
    Section,
    cells_table,
    code,
    command,
    items,
    name,
    paragraph,
    plain,
    sentence,
)
from shardctl.rendering.report.page import in_frame, page
from shardctl.rendering.report.summary import Answer, Told, cards
from shardctl.rendering.text.tables import Column


def comparison_page(comparison: ReportComparison) -> Iterator[str]:
    """Yield the page, section by section; the same comparison gives the same bytes."""
    one, other = comparison.sides
    yield from page(
        title=f"{one.label} and {other.label}",
        heading=f"A: {name(one.label)}<br/>B: {name(other.label)}",
        kind="Two pipelines side by side",
        more=dataset_line(comparison),
        sections=list(comparison_sections(comparison)),
    )


def comparison_body(comparison: ReportComparison) -> str:
    """Return the page for a notebook, in a frame."""
    title = f"{comparison.a.label} and {comparison.b.label} side by side"
    return in_frame(title, repr(comparison)[1:-1], comparison_page(comparison))


def comparison_sections(comparison: ReportComparison) -> Iterator[Section]:
    """Yield the sections in the order of a newcomer's questions."""
    yield _summary(comparison)
    yield parting_section(comparison)
    yield settings_section(comparison)
    yield shuffle_section(comparison)
    yield hosts_section(comparison)
    yield evaluation_section(comparison)
    yield _about(comparison)


def _summary(comparison: ReportComparison) -> Section:
    body = cards(
        (
            Answer("The same order?", "parting", "Where they part", _same_order(comparison)),
            Answer("Shuffled better?", "shuffle", "How each shuffles", _better(comparison)),
            Answer("The same settings?", "settings", "Which differ", _settings(comparison)),
        )
    )
    return Section(anchor="summary", title="In short", body=body)


def _same_order(comparison: ReportComparison) -> Told:
    found = comparison.diff
    if isinstance(found, NotShown):
        return Told("Not known", "open", paragraph(f"{sentence(found.reason)}."))
    told = paragraph(f"{plain(headline(found))}.")
    if found.first is None and found.equal:
        if comparison.dataset_changes:
            return Told("The same ids", "warn", told)
        return Told("Yes", "good", told)
    if found.first is None:
        return Told("Not known", "open", told)
    return Told("No", "warn", told + paragraph(f"{first_upper(plain(moved_line(found.moved)))}."))


def _better(comparison: ReportComparison) -> Told:
    one, other = (side.quality for side in comparison.sides)
    if isinstance(one, NotShown) or isinstance(other, NotShown):
        missing = next(side for side in comparison.sides if isinstance(side.quality, NotShown))
        assert isinstance(missing.quality, NotShown)
        told = paragraph(f"{name(missing.label)}: {sentence(missing.quality.reason)}.")
        return Told("Not known", "open", told)
    lead = other.score.value - one.score.value
    told = paragraph(
        f"A scores {_scored(one)}; B {_scored(other)}. 0 is the order of storage, 1 a uniform "
        "permutation."
    )
    if abs(lead) <= _noise(one, other):
        return Told("About the same", "open", told)
    return Told("B" if lead > 0 else "A", "open", told)


def _scored(quality: Quality) -> str:
    return f"{quality.score.value:.4f} ({plain(quality.verdict)})"


def _noise(one: Quality, other: Quality) -> float:
    """Return within which two scores cannot be told apart: two of their errors, or of spreads."""
    spreads = [
        quality.score.spread + (quality.score.sampling_error or 0.0) for quality in (one, other)
    ]
    return 2 * max(spreads)


def _settings(comparison: ReportComparison) -> Told:
    differing = [plain(setting.name) for setting in comparison.settings if setting.differs]
    if not differing:
        return Told("Yes", "good", paragraph("Every setting in force has one value on both sides."))
    most = 6
    named = ", ".join(differing[:most]) + (
        f" and {len(differing) - most} more" if len(differing) > most else ""
    )
    return Told(f"{len(differing)} differ", "warn", paragraph(f"{named}."))


def _about(comparison: ReportComparison) -> Section:
    return Section(anchor="about", title="About this page", body="".join(_told(comparison)))


def _told(comparison: ReportComparison) -> Iterator[str]:
    columns = [Column(heading=text, align="left") for text in ("what", "A", "B")]
    sides = comparison.sides
    rows = [
        ("file", *(name(side.label) for side in sides)),
        ("what it is", *map(_kind, sides)),
        ("dataset", *(name(side.head.title) for side in sides)),
        ("fingerprint of the dataset", *(code(side.head.fingerprint) for side in sides)),
        ("what is read of it", *(code(side.spec) for side in sides)),
        ("rules of the order", *(plain(side.rules) for side in sides)),
    ]
    yield cells_table("What A and B are", columns, rows, kind="said")
    if comparison.notes:
        yield "<h3>What was assumed</h3>\n"
        yield items(first_upper(sentence(note)) for note in comparison.notes)
    warnings = [
        f"{letter}: {sentence(text)}"
        for letter, side in zip("AB", sides, strict=True)
        for text in side.warnings
    ]
    if warnings:
        yield "<h3>Worth knowing</h3>\n"
        yield items(warnings)
    if comparison.again:
        yield "<h3>Make it again</h3>\n"
        yield command(comparison.again)
    yield paragraph(f"Written by shardctl {plain(own_version())}.", "quiet")


def _kind(side: ComparedSide) -> str:
    if not side.is_snapshot:
        return "settings, read as they are now"
    if isinstance(side.order, NotShown):
        return "a snapshot"
    examples = counted(side.order.snapshot.num_examples, "example")
    return f"a snapshot of the order of {examples}, as it was pinned"


# Two pipelines side by side, as a document: each as the commands write it, and where they part.


def comparison_document(comparison: ReportComparison) -> Document:
    """Return the document: of kind `report`, with both under `compared`.

    What cannot be had says why; `equal` is None where it cannot be told.
    """
    return {
        **kind_head("report"),
        "compared": {
            "equal": comparison.equal,
            "num_hosts": comparison.num_hosts,
            "num_devices": comparison.num_devices,
            "diff": part_document(comparison.diff, diff_document),
            "blocks": list(map(asdict, comparison.blocks)),
            "neighbours": list(map(asdict, comparison.neighbours)),
            "dataset_changes": [cause_record(cause) for cause in comparison.dataset_changes],
            "settings": [
                {"name": one.name, "a": one.a, "b": one.b, "differs": one.differs}
                for one in comparison.settings
            ],
            "a": _side(comparison.a),
            "b": _side(comparison.b),
        },
        "notes": list(comparison.notes),
        "warnings": list(comparison.warnings),
        "again": comparison.again,
    }


def _side(side: ComparedSide) -> Document:
    return {
        "label": side.label,
        "is_snapshot": side.is_snapshot,
        "dataset": side.head.record(),
        "spec": side.spec,
        "pipeline": side.settings,
        "rules": asdict(side.rules),
        "num_examples": None
        if isinstance(side.order, NotShown)
        else side.order.snapshot.num_examples,
        "quality": part_document(side.quality, quality_document),
        "shard_map": part_document(side.shard_map, shard_map_document),
        "hosts": part_document(side.hosts, hosts_document),
        "eval": part_document(side.evaluation, eval_document),
    }
