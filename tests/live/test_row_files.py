"""Rows of files told apart by their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

from shardctl.base.arrays import Int64s
from shardctl.live.library import Library, Source
from shardctl.live.real_data import RowFiles
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.loader_sequence import LoaderConfig


def written(folder: Path, file_format: str, columns: Sequence[Mapping[str, Any]]) -> RowFiles:
    paths = []
    for number, column in enumerate(columns):
        path, table = folder / f"{number}.{file_format}", pa.table(dict(column))
        if file_format == "parquet":
            pyarrow.parquet.write_table(table, path, row_group_size=2)
        else:
            kind = pa.ipc.new_stream if number else pa.ipc.new_file  # both are read
            with kind(str(path), table.schema) as writer:
                writer.write_table(table)
        paths.append(str(path))
    return RowFiles(files=tuple(paths), file_format=file_format)


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_rows_are_counted_over_all_files(tmp_path: Path, file_format: str) -> None:
    columns = [{"a": [1, 2, 3], "b": ["x", "y", None]}, {"a": [4, 2], "b": ["x", "z"]}]
    rows = written(tmp_path, file_format, columns)
    assert rows.num_alike == 0
    there: list[dict[str, Any]] = [{"b": "z", "a": 2}, {"a": 3, "b": None}, {"a": 1, "b": "y"}]
    assert rows.indices_of(there).tolist() == [4, 2, -1]


def test_rows_with_the_same_contents_are_the_first_of_them(tmp_path: Path) -> None:
    rows = written(tmp_path, "parquet", [{"a": [5, 6, 5]}, {"a": [6, 7]}])
    assert rows.num_alike == 2
    assert rows.indices_of([{"a": 5}, {"a": 6}]).tolist() == [0, 1]
    assert rows.canonical(np.array([0, 1, 2, 3, 4, -1])).tolist() == [0, 1, 0, 1, 4, -1]


def test_what_a_loader_hands_out_becomes_indices_and_is_closed(tmp_path: Path) -> None:
    closed = []

    class Backwards(Library):
        def batches(self, asked: LoaderConfig, source: Source) -> Iterator[Int64s]:
            raise NotImplementedError

        def rows(
            self, asked: LoaderConfig, files: Sequence[str], file_format: str
        ) -> Iterator[Sequence[Mapping[str, Any]]]:
            try:
                yield [{"a": 7}, {"a": 6}]
                yield [{"a": 5}]
            finally:
                closed.append(len(files))

    rows = written(tmp_path, "parquet", [{"a": [5, 6]}, {"a": [7]}])
    batches = rows.batches(
        LoaderConfig(lengths=np.array([2, 1]), version="1"), Backwards(LOADERS["torch"])
    )
    assert next(batches).tolist() == [2, 1]
    batches.close()
    assert closed == [2]
