"""A real pipeline as a table, as a document or as rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from shardctl.core.settings.document import settings_in_force
from shardctl.files.documents import Document
from shardctl.files.head import kind_head
from shardctl.planning.inspect import InspectedStage, Inspection
from shardctl.planning.lint.lint import Finding
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.tables import Cell, Column, Screen, paragraph, table

CSV_HEADER = (
    "name",
    "stage",
    "level",
    "call",
    "operation",
    "effect",
    "open",
    "file",
    "line",
)
_COLUMNS = (
    Column(heading="#"),
    Column(heading="stage", align="left"),
    Column(heading="what it does to the order", align="left"),
    Column(heading="line", align="left"),
)
_INDENT = "  "


def inspect_table(
    inspections: Sequence[Inspection], function: str, screen: Screen
) -> Iterator[str]:
    """Yield for each dataset its stages in their order, where it is open, and lint's findings."""
    for index, inspection in enumerate(inspections):
        if index:
            yield "\n"
        yield paragraph(_title(inspection, function), screen, style="bold")
        rows = [_row(number, stage) for number, stage in enumerate(inspection.stages, 1)]
        yield table(_COLUMNS, rows, screen)
        yield "\n"
        yield from _verdict(inspection, screen)
        for finding in inspection.findings() if inspection.predictable else ():
            headline = f"{finding.rule.code} {finding.severity}: {finding.rule.title}"
            yield paragraph(headline, screen, style=finding.severity)
            yield from _indented(f"fix: {as_options(finding.fix)}", screen)


def _title(inspection: Inspection, function: str) -> str:
    name = f"{function} [{inspection.name}]" if inspection.name else function
    if inspection.dataset is None:
        return f"{name}: elements of no dataset"
    return f"{name}: {inspection.spec or 'several parts'} of {_datasets_in_words(inspection)}"


def _datasets_in_words(inspection: Inspection) -> str:
    assert inspection.dataset is not None
    datasets = inspection.datasets.values() or [inspection.dataset]
    return " and ".join(dataset.title for dataset in datasets)


def _row(number: int, stage: InspectedStage) -> Sequence[str]:
    effect = _effect(stage)
    shown = effect if stage.reason is None else Cell(effect, "error")
    return str(number), _INDENT * stage.level + stage.call, shown, str(stage.line or "-")


def _effect(stage: InspectedStage) -> str:
    if stage.reason is None:
        return stage.effect
    return f"leaves the order open: {as_options(stage.reason)}"


def _verdict(inspection: Inspection, screen: Screen) -> Iterator[str]:
    if inspection.predictable:
        yield paragraph("The order is fixed: -f yaml writes the shardctl.yaml of it.", screen)
    for found in inspection.open:
        place = "" if found.line is None else f" at {found.line}: {found.line.text}"
        said = f"{found.stage.call} leaves the order open{place}"
        yield paragraph(said, screen, style="error")
        yield from _indented(f"why: {as_options(found.reason)}", screen)
    if inspection.refused is not None:
        yield paragraph(as_options(inspection.refused), screen, style="error")


def _indented(text: str, screen: Screen) -> Iterator[str]:
    width = None if screen.width is None else max(screen.width - 2, 10)
    for line in paragraph(text, replace(screen, width=width)).splitlines():
        yield f"{_INDENT}{line}\n"


def inspect_document(inspections: Sequence[Inspection], function: str) -> Document:
    """Return the document of `inspect`; of several datasets that of each is in `pipelines`."""
    datasets = {id(one.dataset): one.dataset for one in inspections if not one.datasets}
    only = next(iter(datasets.values())) if len(datasets) == 1 else None
    return {
        **kind_head("inspect"),
        "dataset": None if only is None else only.identity.record(),
        "function": function,
        "predictable": all(one.predictable for one in inspections),
        "pipelines": [_pipeline_record(one) for one in inspections],
    }


def _pipeline_record(inspection: Inspection) -> Document:
    dataset = inspection.dataset
    ordered = dataset is not None and dataset.ordered
    several = {ref: one.identity.record() for ref, one in inspection.datasets.items()}
    return {
        "name": inspection.name or None,
        "dataset": None if dataset is None or several else dataset.identity.record(),
        "datasets": several,
        "spec": inspection.spec,
        "predictable": inspection.predictable,
        "pipeline": settings_in_force(inspection.settings, ordered=ordered),
        "stages": [_stage_record(stage) for stage in inspection.stages],
        "open": [
            {"stage": found.stage.call, "reason": as_options(found.reason), **_place(found.stage)}
            for found in inspection.open
        ],
        "refused": None if inspection.refused is None else as_options(inspection.refused),
        "findings": [_finding_record(finding) for finding in inspection.findings()],
    }


def _stage_record(stage: InspectedStage) -> Document:
    return {
        "call": stage.call,
        "operation": stage.operation,
        "level": stage.level,
        "effect": _effect(stage),
        "open": None if stage.reason is None else as_options(stage.reason),
        **_place(stage),
        "arguments": dict(stage.arguments),
    }


def _place(stage: InspectedStage) -> Document:
    line = stage.line
    return {
        "file": None if line is None else line.file,
        "line": None if line is None else line.line,
        "code": None if line is None else line.text,
    }


def _finding_record(finding: Finding) -> Document:
    return {
        "code": finding.rule.code,
        "name": finding.rule.name,
        "severity": finding.severity,
        "title": finding.rule.title,
        "why": as_options(finding.why),
        "fix": as_options(finding.fix),
    }


def inspect_rows(
    inspections: Sequence[Inspection], function: str = ""
) -> Iterator[Sequence[object]]:
    """Yield a CSV row a stage."""
    for inspection in inspections:
        for number, stage in enumerate(inspection.stages, 1):
            place = _place(stage)
            yield (
                inspection.name,
                number,
                stage.level,
                stage.call,
                stage.operation,
                _effect(stage),
                "" if stage.reason is None else as_options(stage.reason),
                place["file"] or "",
                place["line"] or "",
            )
