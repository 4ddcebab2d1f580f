"""The datasets that can be named, as a table, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.base.columns import RecordStream, picked, stream_of
from shardctl.draw.tables import Cell, Screen, cells_of, columns, paragraph, paragraphs, table
from shardctl.files.documents import Document
from shardctl.saved.head import kind_head
from shardctl.verbs.list.answer import DatasetList, ListedDataset

_COLUMNS = columns("<title=dataset num_examples=examples ~num_bytes=size <file_format=format")
_COLUMNS += columns("<path=folder")
_FIELDS = "name config version path source file_format num_examples"


def list_table(listed: DatasetList, screen: Screen, *, every_layout: bool = False) -> Iterator[str]:
    """Yield the datasets in the data dirs, then the names of the built-in layouts.

    With `every_layout`, or where words choose, the built-in layouts are rows too.
    """
    every_layout = every_layout or bool(listed.words)
    if listed.words and not listed.datasets:
        yield paragraph(_nothing(listed), screen)
        return
    if not listed.in_data_dirs and not listed.words:
        yield paragraph(f"no datasets in {', '.join(listed.data_dirs)}", screen)
    shown = listed.datasets if every_layout else listed.in_data_dirs
    if shown:
        yield table(_COLUMNS, list(map(_row, shown)), screen)
    names = dict.fromkeys(dataset.name for dataset in listed.built_in)
    if names and not every_layout:
        yield "\n"
        yield paragraph("built-in layouts", screen, style="bold")
        hint = "(--all shows their configs and versions)"
        yield from paragraphs(screen, ", ".join(names), hint)


def _nothing(listed: DatasetList) -> str:
    words = " and ".join(f"'{word}'" for word in listed.words)
    where = ", ".join(listed.data_dirs)
    return f"no dataset in {where} or the built-in catalog has {words} in its name or format"


def _row(listed: ListedDataset) -> list[str]:
    where = listed.path or "built-in layout"
    if listed.problem is not None:
        return [listed.title, Cell("damaged", "error"), "-", "-", where]
    title, *figures, file_format, _ = cells_of(_COLUMNS, [listed])[0]
    return [title, *figures, file_format or "-", where]


def list_document(listed: DatasetList) -> Document:
    """Return the document: the folders searched, and every dataset."""
    return {
        **kind_head("list"),
        "data_dirs": list(listed.data_dirs),
        "datasets": [_record(dataset) for dataset in listed.datasets],
    }


def _record(listed: ListedDataset) -> Document:
    splits = () if listed.dataset is None else listed.dataset.splits
    return {
        **picked(listed, f"{_FIELDS} num_bytes"),
        "splits": [picked(split, "name num_examples num_shards num_bytes") for split in splits],
        "problem": listed.problem,
    }


def list_rows(listed: DatasetList) -> RecordStream:
    """Return a row for each dataset; the names of its splits are one cell, blanks between."""
    rows = []
    for record in map(_record, listed.datasets):
        names = " ".join(split["name"] for split in record["splits"])
        rows.append(list({**record, "splits": names}.values()))
    return stream_of(f"{_FIELDS} num_bytes splits problem", rows)
