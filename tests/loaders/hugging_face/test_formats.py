"""Which record files are streamed as tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.loaders.hugging_face import hugging_face_sequence
from shardctl.loaders.hugging_face_eras import (
    BEFORE_SHUFFLE,
    MAKE_ROWS,
    of_tables,
    streams_tables,
)
from shardctl.loaders.loader_sequence import LoaderConfig

LENGTHS = np.array([101, 57, 230, 12, 300, 99, 41])


def asked(file_format: str, version: str = "5.2.0", **more: Any) -> LoaderConfig:
    return LoaderConfig(lengths=LENGTHS, file_format=file_format, version=version, **more)


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_formats_whose_readers_make_tables(file_format: str) -> None:
    assert of_tables(asked(file_format))
    assert not of_tables(asked(file_format, arrow=False))


@pytest.mark.parametrize("file_format", ["tfrecord", "array_record", "webdataset", "mds"])
def test_the_others_are_rows_of_a_generator(file_format: str) -> None:
    assert not of_tables(asked(file_format))
    assert of_tables(asked(file_format, arrow=True))


def test_the_versions_that_lose_examples_make_tables_of_webdataset() -> None:
    versions = ("4.7.0", "4.8.0", "4.8.2", "4.8.3", "5.2.0")
    tables = [of_tables(asked("webdataset", version)) for version in versions]
    assert tables == [False, True, True, False, False]


def test_calls_before_the_shuffle_make_rows_of_tables() -> None:
    """As datasets 5.1.0 and 5.2.0 did with Parquet files: `tests/live` runs each of them."""
    rows = {
        name for name in BEFORE_SHUFFLE if not streams_tables(asked("parquet", before_shuffle=name))
    }
    assert rows == {*MAKE_ROWS}

    def order(**more: Any) -> list[int]:
        found = hugging_face_sequence(asked("parquet", seed=3, buffer=100, **more))
        indices: list[int] = found.indices_at(np.arange(840)).tolist()
        return indices

    assert order(before_shuffle="map") == order(arrow=False) != order()
    assert order(before_shuffle="cast_column") == order()
