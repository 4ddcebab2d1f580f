"""The shardctl.yaml from which commands read as a real pipeline does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.folders import folders_of
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.table import SETTINGS
from shardctl.core.stages.document import document_of
from shardctl.core.text import printable
from shardctl.errors import UsageError
from shardctl.files.documents import Document, to_yaml
from shardctl.planning.inspect import Inspection
from shardctl.rendering.text.command_line import as_options


def project_yaml(inspections: Sequence[Inspection], function: str) -> Iterator[str]:
    """Yield the shardctl.yaml from which the commands read as the pipeline does.

    Raises:
        UsageError: several datasets, or one that commands cannot name.
    """
    inspection = the_one(inspections)
    dataset = inspection.dataset
    if dataset is None:
        raise UsageError("the pipeline reads no dataset, so that commands have nothing to read")
    yield f"# The pipeline of {printable(function, 200)}, as shardctl inspect found it.\n"
    for found in inspection.open:
        said = printable(f"{found.stage.call}: {as_options(found.reason)}", 500)
        yield f"# Its order is open: {said}\n"
    refs = references(dataset)
    settings = inspection.project_settings
    # Where files repeat, the cache of TFDS is among the stages, or is not there.
    linted = {"lint": {"autocache": False}} if settings.repeat_files else {}
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
    raise UsageError(
        f"a shardctl.yaml says how one dataset is read; choose with --only NAME: {names}"
    )


def references(dataset: Dataset) -> list[str]:
    """Return the references by which commands find a dataset: its folders, or a layout file."""
    if is_without_metadata(dataset):
        return [layout_name(dataset)]
    return [os.fspath(folder.data_dir or folder.title) for folder in folders_of(dataset)]


def is_without_metadata(dataset: Dataset) -> bool:
    """Return whether a dataset is record files that a layout file has to tell of."""
    return dataset.origin == "record files"


def layout_name(dataset: Dataset) -> str:
    """Return the name of the layout file of record files without metadata."""
    return f"{dataset.name}.layout.yaml"


def settings_document(settings: ReadSettings) -> Document:
    """Return settings that are not TFDS's defaults, by the names of a shardctl.yaml."""
    default = ReadSettings()
    said: dict[str, Any] = {}
    for setting in SETTINGS:
        value = getattr(settings, setting.field)
        if value == getattr(default, setting.field) or setting.field == "stages":
            continue
        said[setting.name] = setting.kind.to_document(value)
    if settings.stages is not None:
        said["stages"] = document_of(settings.stages)
    return said
