"""The datasets that names lead to, as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.files.documents import FORMAT_VERSION, Document
from shardctl.planning.list import DatasetList
from shardctl.rendering.text.tables import Column, Screen, paragraph, table

_COLUMNS = (Column(heading="dataset", align="left"), Column(heading="folder", align="left"))

CSV_HEADER = ("name", "config", "version", "path", "source")


def list_table(listed: DatasetList, screen: Screen, *, every_layout: bool = False) -> Iterator[str]:
    """Yield the datasets in the data dirs, then the names of the built-in layouts.

    With `every_layout` the built-in layouts are rows too, each with config and version.
    """
    rows = [(dataset.title, dataset.path or "built-in layout") for dataset in listed.datasets]
    num_here = len(listed.in_data_dirs)
    if not num_here:
        yield paragraph(f"no datasets in {', '.join(listed.data_dirs)}", screen)
    if not every_layout:
        rows = rows[:num_here]
    if rows:
        yield table(_COLUMNS, rows, screen)
    names = dict.fromkeys(dataset.name for dataset in listed.built_in)
    if names and not every_layout:
        yield "\n"
        yield paragraph("built-in layouts", screen, style="bold")
        yield paragraph(", ".join(names), screen)
        yield paragraph("(--all shows their configs and versions)", screen)


def list_document(listed: DatasetList) -> Document:
    """Return the document: the folders searched, and every dataset."""
    return {
        "format_version": FORMAT_VERSION,
        "kind": "list",
        "data_dirs": list(listed.data_dirs),
        "datasets": [dict(zip(CSV_HEADER, row, strict=True)) for row in list_rows(listed)],
    }


def list_rows(listed: DatasetList) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each dataset."""
    for dataset in listed.datasets:
        yield dataset.name, dataset.config, dataset.version, dataset.path, dataset.source
