"""A real pipeline as a table, as a document or as rows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from shardctl.base.columns import RecordStream, picked, record_of, stream_of
from shardctl.base.phrase import refused
from shardctl.base.text import printable
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.folders import folders_of
from shardctl.draw.step_rows import heading
from shardctl.draw.tables import Cell, Screen, columns, indented, paragraph, table
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.files.documents import Document, to_yaml
from shardctl.saved.head import kind_head
from shardctl.settings.read_settings import ReadSettings, settings_in_force
from shardctl.settings.table import SETTINGS
from shardctl.stages.pipelines import with_changed
from shardctl.verbs.inspect.answer import InspectedStage, Inspection
from shardctl.verbs.inspect.cure import patch_of

_COLUMNS = columns("# <stage <what_it_does_to_the_order <line")
_INDENT = "  "
_LINE = "file line code=text"
_FINDING = "code=rule.code name=rule.name severity title=rule.title why fix"


def inspect_table(
    inspections: Sequence[Inspection], function: str, screen: Screen
) -> Iterator[str]:
    """Yield for each dataset its stages, what makes its order nondeterministic, lint's findings."""
    for index, inspection in enumerate(inspections):
        if index:
            yield "\n"
        yield from heading(_title(inspection, function), inspection.assumptions, screen, "bold")
        rows = [_row(number, stage) for number, stage in enumerate(inspection.stages, 1)]
        yield table(_COLUMNS, rows, screen)
        yield "\n"
        yield from _verdict(inspection, screen)
        for finding in inspection.findings() if inspection.predictable else ():
            headline = f"{finding.rule.code} {finding.severity}: {finding.rule.title}"
            yield paragraph(headline, screen, style=finding.severity)
            yield from indented(f"fix: {finding.fix}", screen)


def _title(inspection: Inspection, function: str) -> str:
    name = f"{function} [{inspection.name}]" if inspection.name else function
    if inspection.dataset is None:
        return f"{name}: elements of no dataset"
    datasets = inspection.datasets.values() or [inspection.dataset]
    titles = " and ".join(dataset.title for dataset in datasets)
    return f"{name}: {inspection.spec or 'several parts'} of {titles}"


def _row(number: int, stage: InspectedStage) -> Sequence[str]:
    shown = stage.effect if stage.reason is None else Cell("nondeterministic, see below", "error")
    return str(number), _INDENT * stage.level + stage.call, shown, str(stage.line or "-")


def _verdict(inspection: Inspection, screen: Screen) -> Iterator[str]:
    if inspection.predictable:
        under = " under these assumptions" if inspection.assumptions else ""
        said = (
            f"The order is deterministic{under}; -f yaml writes the shardctl.yaml of this pipeline."
        )
        yield paragraph(said, screen)
    on_tf_data = inspection.settings.reader.on_tf_data
    for found in inspection.open:
        place = "" if found.line is None else f" at {found.line}: {found.line.text}"
        said = f"{found.stage.call} makes the order nondeterministic{place}"
        yield paragraph(said, screen, style="error")
        if found.cure is None:
            # Of other loaders no change of a line is known, and the reason says what to set.
            what = "a seed does not fix it" if on_tf_data else "why"
            yield from indented(f"{what}: {found.reason}", screen)
            continue
        code = "" if found.cure.code is None else f": {found.cure.code}"
        yield from indented(f"why: {found.reason}", screen)
        yield from indented(f"fix: {found.cure}{code}", screen)
    if inspection.refused is not None:
        yield paragraph(inspection.refused, screen, style="error")
    if inspection.cures:
        yield "\n"
        said = f"if you set: {'; '.join(map(str, inspection.cures))}"
        whole = all(found.cure for found in inspection.open)
        said = f"Deterministic {said}" if whole else f"A seed fixes the rest {said}"
        hint = "; --patch writes the change as a diff" * any(cure.edit for cure in inspection.cures)
        yield paragraph(f"{said}{hint}.", screen)


def inspect_document(inspections: Sequence[Inspection], function: str = "") -> Document:
    """Return the document of `inspect`; of several datasets that of each is in `pipelines`."""
    # By identity: several pipelines may read one and the same Dataset.
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
            {
                **picked(found, "stage=stage.call reason"),
                **picked(found.line, _LINE),
                "cure": record_of(found.cure, "text file=line.file line=line.line code"),
            }
            for found in inspection.open
        ],
        "refused": inspection.refused,
        "iterated": record_of(inspection.iterated, _LINE),
        "assumptions": [*inspection.assumptions],
        "findings": [picked(finding, _FINDING) for finding in inspection.findings()],
    }


def _stage_record(stage: InspectedStage) -> Document:
    place = picked(stage.line, _LINE)
    return {**picked(stage, "call operation level effect open=reason"), **place}


def inspect_rows(inspections: Sequence[Inspection], function: str = "") -> RecordStream:
    """Return a row a stage."""
    fields = "level call operation effect open file line"
    rows = [
        (inspection.name, number, *(_stage_record(stage)[field] for field in fields.split()))
        for inspection in inspections
        for number, stage in enumerate(inspection.stages, 1)
    ]
    return stream_of(f"name stage {fields}", rows)


def inspect_patch(inspections: Sequence[Inspection], function: str) -> Iterator[str]:
    """Yield the changes that make the orders deterministic as a diff; others as comments."""
    cures = [cure for one in inspections for cure in one.cures]
    for inspection in inspections:
        if inspection.open and not inspection.settings.reader.on_tf_data:
            raise refused("{patch}: known of tf.data alone; the answer says what to set")
        for found in inspection.open:
            place = "" if found.line is None else f", {found.line}"
            if found.cure is None:
                yield f"# a seed does not fix {found.stage.call}{place}: {found.reason}\n"
            elif found.cure.edit is None:
                yield f"# by hand: {found.cure}\n"
    yield from patch_of(cures)


# The shardctl.yaml from which commands read as a real pipeline does.


def project_yaml(inspections: Sequence[Inspection], function: str) -> Iterator[str]:
    """Yield the shardctl.yaml from which the commands read as the pipeline does.

    Raises:
        UsageError: several datasets, or one that commands cannot name.
        UnpredictableOrderError: its order is another one each time, though no stage is why.
    """
    inspection = the_one(inspections)
    dataset = inspection.dataset
    if dataset is None:
        raise UsageError("the pipeline reads no dataset, so that commands have nothing to read")
    # Its stages say nothing of it, so that commands would predict an order.
    if inspection.refused is not None:
        raise UnpredictableOrderError(inspection.refused)
    yield f"# The pipeline of {printable(function, 200)}, as shardctl inspect found it.\n"
    yield from (f"# Assumed: {printable(said, 500)}\n" for said in inspection.assumptions)
    for found in inspection.open:
        yield f"# {printable(str(found), 500)}\n"
    # How commands name the dataset, which may be several folders.
    refs = references(dataset)
    settings = inspection.project_settings
    if settings.stages is not None:  # whose scans lie beside the file
        stages = with_changed(settings.stages, kept=os.path.basename)
        settings = replace(settings, stages=stages)
    # Where files repeat, the cache of TFDS is among the stages, or is not there.
    linted = {"lint": {"autocache": False}} if settings.is_endless else {}
    yield from to_yaml(
        {
            "dataset": refs[0] if len(refs) == 1 else refs,
            "read": settings_document(settings),
            **linted,
        }
    )


def the_one(inspections: Sequence[Inspection]) -> Inspection:
    """Return the inspection where there is one.

    Raises:
        UsageError: the function returns several datasets.
    """
    if len(inspections) == 1:
        return inspections[0]
    names = ", ".join(one.name for one in inspections)
    raise UsageError(f"a shardctl.yaml is about one dataset; choose with --only NAME: {names}")


def references(dataset: Dataset) -> list[str]:
    """Return the references by which commands find a dataset: its folders, or a layout file."""
    if is_without_metadata(dataset):
        return [layout_name(dataset)]
    return [os.fspath(folder.data_dir or folder.title) for folder in folders_of(dataset)]


def is_without_metadata(dataset: Dataset) -> bool:
    """Return whether a dataset is record files that need a layout file."""
    return dataset.origin == "record files"


def layout_name(dataset: Dataset) -> str:
    """Return the name of the layout file of record files without metadata."""
    return f"{dataset.name}.layout.yaml"


def settings_document(settings: ReadSettings) -> Document:
    """Return settings that are not TFDS's defaults, by the names of a shardctl.yaml."""
    default = ReadSettings()
    said: dict[str, Any] = {}
    for setting in sorted(SETTINGS, key=lambda setting: setting.field == "stages"):
        value = getattr(settings, setting.field)
        if value != getattr(default, setting.field):
            said[setting.field] = setting.kind.to_document(value)
    return said
