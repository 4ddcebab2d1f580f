"""A layout as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from shardctl.base.columns import Records, RecordStream, picked
from shardctl.base.text import counted
from shardctl.draw import tables
from shardctl.draw.quantities import human_bytes
from shardctl.files.documents import Document
from shardctl.metadata.layouts import dataset_fields, split_fields
from shardctl.saved.head import head
from shardctl.verbs.layout.answer import Layout, SplitLayout

_SHARDS = 6  # shards of one split on a terminal

_SUMMARY = tables.columns("<split.name=split split.num_examples=examples split.num_shards=shards")
_SUMMARY += tables.columns("~num_bytes=bytes balance.min=smallest balance.max=largest")
_SUMMARY += tables.columns("1balance.mean=mean 3balance.imbalance=imbalance")
_FACTS = tables.columns("<file first_id last_id examples")
_BYTES = tables.columns("bytes")
LEGEND = "smallest, largest, mean: examples in a shard; imbalance: largest / mean, 1 is even"
_SOURCES = {"disk": "bytes of the files", "metadata": "bytes by metadata", None: "bytes unknown"}

_RECORD = "index filename first_id num_examples num_bytes"  # the fields of a Shard


def layout_table(layout: Layout, screen: tables.Screen) -> Iterator[str]:
    """Yield a summary of the splits, then the shards of each."""
    dataset = layout.dataset
    sources = dict.fromkeys(_SOURCES[split.bytes_from] for split in layout.splits)
    where = dataset.data_dir or dataset.origin
    said = f", {next(iter(sources))}" if len(sources) == 1 else ""
    yield tables.paragraph(
        f"{dataset.title}: {dataset.file_format}, {where}{said}", screen, style="bold"
    )
    yield tables.table(*split_cells(layout), screen)
    yield tables.paragraph(LEGEND, screen)
    for split in layout.splits:
        yield "\n"
        yield from _shard_table(split, screen)
    yield from tables.pictures(layout, screen)


def split_cells(layout: Layout) -> tuple[Sequence[tables.Column], Sequence[Sequence[str]]]:
    """Return what the shards of each split come to, as columns and rows."""
    sources = [_SOURCES[split.bytes_from] for split in layout.splits]
    rows = tables.cells_of(_SUMMARY, layout.splits)
    for row, split, source in zip(rows, layout.splits, sources, strict=True):
        # Sources that differ are said for each split, behind its bytes, the fourth column.
        if len(set(sources)) > 1 and split.bytes_from is not None:
            row[3] += source.removeprefix("bytes")
    return _SUMMARY, rows


def _shard_table(split: SplitLayout, screen: tables.Screen) -> Iterator[str]:
    num_shards = split.split.num_shards
    yield tables.paragraph(
        f"{split.split.name}: {counted(num_shards, 'shard')}", screen, style="bold"
    )
    if not num_shards:
        return
    shown = [*_FACTS, *(_BYTES if split.split.shard_bytes is not None else ())]
    yield from tables.table_pieces(shown, _rows(split, shown), screen, keep=_SHARDS)


def _rows(split: SplitLayout, shown: Sequence[tables.Column]) -> Records:
    def cells(start: int, stop: int) -> list[list[Any]]:
        _, names, first, counts, sizes = split.columns(start, stop)
        last = [id + count - 1 for id, count in zip(first, counts, strict=True)]
        # An empty shard has no last id.
        if not all(counts):
            last = [str(id) if count else "-" for id, count in zip(last, counts, strict=True)]
        bytes_too = len(shown) > len(_FACTS)
        return [names, first, last, counts, *([[*map(_size, sizes, counts)]] if bytes_too else [])]

    return Records(split.split.num_shards, [column.heading for column in shown], cells)


def _size(num_bytes: int | None, count: int) -> str:
    if num_bytes is not None:
        return human_bytes(num_bytes)
    return tables.Cell("missing", "error") if count else "-"


def layout_document(layout: Layout) -> Document:
    """Return the document of `layout`: every shard of every split; a layout file as well."""
    splits = [
        {
            **size_record(split),
            "shards": _records(split),
            "balance": asdict(split.balance),
            **split_fields(split.split, layout.dataset),
        }
        for split in layout.splits
    ]
    chosen = [split.split for split in layout.splits]
    return {
        **head("layout", layout.dataset.identity),
        **dataset_fields(layout.dataset, chosen),
        "splits": splits,
    }


def size_record(split: SplitLayout) -> Document:
    """Return how large a split is."""
    of_split = picked(split.split, "name num_examples num_shards")
    return {**of_split, "num_bytes": split.num_bytes}


def layout_rows(layout: Layout) -> RecordStream:
    """Return a row for each shard."""
    return RecordStream(
        f"split {_RECORD}",
        lambda: (
            (count, [split.split.name, *cells])
            for split in layout.splits
            for count, cells in _records(split).pieces()
        ),
    )


def _records(split: SplitLayout) -> Records:
    return Records(split.split.num_shards, _RECORD, split.columns)
