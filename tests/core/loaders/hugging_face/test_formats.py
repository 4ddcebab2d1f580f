"""Which record files are streamed as tables."""

from __future__ import annotations

import pytest

from shardctl.core.loaders.hugging_face.formats import reads_tables


@pytest.mark.parametrize("file_format", ["parquet", "arrow"])
def test_formats_whose_readers_make_tables(file_format: str) -> None:
    assert reads_tables(file_format, "5.2.0")


@pytest.mark.parametrize("file_format", ["tfrecord", "array_record", "webdataset", "mds"])
def test_the_others_are_rows_of_a_generator(file_format: str) -> None:
    assert not reads_tables(file_format, "5.2.0")


def test_the_versions_that_lose_examples_make_tables_of_webdataset() -> None:
    versions = ("4.7.0", "4.8.0", "4.8.2", "4.8.3", "5.2.0")
    tables = [reads_tables("webdataset", version) for version in versions]
    assert tables == [False, True, True, False, False]
