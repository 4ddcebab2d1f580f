"""The first record of a file is that which TFDS reads first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.store import StoredFile
from shardctl.stores.stores import store_of
from shardctl.tfds.metadata import first_record
from tests.record_files import framed, header
from tests.tfds_datasets import WRITABLE_FORMATS, build_dataset


def stored(path: Path) -> StoredFile:
    file = store_of(str(path)).status(str(path))
    assert file is not None
    return file


@pytest.mark.parametrize("file_format", WRITABLE_FORMATS)
def test_the_first_record_is_that_of_tfds(tfds: Any, file_format: str, tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3]}, file_format=file_format)
    record = first_record(stored(next(folder.glob("toy-train*"))), file_format)
    assert record is not None
    features = tfds.builder_from_directory(folder).info.features
    assert int(features.deserialize_example_np(record)["id"]) == 0


@pytest.mark.tensorflow
def test_what_has_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for data in (b"", b"abc", header(2**40) + b"abc", framed(b"abc")[:-5]):
        path.write_bytes(data)
        with pytest.raises(DatasetError, match=r"'.*file'"):
            first_record(stored(path), "tfrecord")
        with pytest.raises(DatasetError, match=r"'.*file'"):
            first_record(stored(path), "parquet")


@pytest.mark.tensorflow
def test_columns_that_tfds_does_not_write_are_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"image": [b"1"], "label": [2]}), path)
    with pytest.raises(DatasetError, match="there is none: the columns are image, label"):
        first_record(stored(path), "parquet")


def test_a_format_without_a_library_here_has_no_record(tmp_path: Path) -> None:
    path = tmp_path / "x.riegeli"
    path.write_bytes(b"x")
    assert first_record(stored(path), "riegeli") is None
