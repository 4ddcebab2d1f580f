"""What a loader reads when it is verified: files, or indices and the reason."""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet
import pytest

import shardctl.live.real_data as module
from shardctl import read_dataset
from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset
from shardctl.live.library import Library, Source
from shardctl.live.real_data import RealData, RecordSource, RowFiles, real_data
from shardctl.loaders.loader import LOADERS
from shardctl.loaders.loader_sequence import LoaderConfig
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.plan_order import plan_order
from shardctl.verbs.verify.answer import BUDGETS, Take
from tests.tfds_datasets import build_dataset

SPLITS = {"train": (3, 0, 5, 2)}
VERSIONS = {"torch": "2.13.0", "hf": "5.2.0"}


def data_of(
    dataset: Dataset, spec: str = "train", loader: str = "torch", take: Take = None
) -> RealData:
    settings = {"loader": loader, "loader_version": VERSIONS[loader]}
    planned = plan_order(dataset, spec, settings)
    assert isinstance(planned.order, LoaderOrder)
    return real_data(planned.resolved, planned.order, take, None)


def toy(root: Path, file_format: str) -> Dataset:
    return read_tfds_folder(build_dataset(root, splits=SPLITS, file_format=file_format))


def parquet(folder: Path, *sizes: int) -> Dataset:
    folder.mkdir()
    for number, size in enumerate(sizes):
        path = folder / f"train-{number:05d}-of-{len(sizes):05d}.parquet"
        pyarrow.parquet.write_table(pa.table({"id": [number * 100 + i for i in range(size)]}), path)
    return read_dataset(f"{folder}/*.parquet")


def test_array_record_files_are_read_by_tfds_and_were_checked(tmp_path: Path) -> None:
    data = data_of(toy(tmp_path, "array_record"), "train[20%:]+train[:1]")
    assert data.read == "files"
    assert isinstance(data.examples, RecordSource)
    assert [int(data.examples[index]) for index in range(9)] == list(range(9))
    assert data.checks.num_files == 3
    assert [*data.versions] == ["tensorflow_datasets"]
    assert not data.notes


def test_a_part_of_parquet_files_is_not_what_tfds_hands_out(tmp_path: Path) -> None:
    """ParquetDataSource of TFDS 4.9.10 leaves `skip` and `take` out."""
    dataset = toy(tmp_path, "parquet")
    assert data_of(dataset).read == "files"
    data = data_of(dataset, "train[:1]")
    assert data.read == "index ranges"
    assert data.differs == (
        "tfds.data_source hands out 3 examples of 'train[:1]', and the metadata says 1"
    )


@pytest.mark.parametrize(
    ("file_format", "loader", "reason"),
    [
        ("tfrecord", "torch", "is given, through tfds.data_source, array_record and parquet files"),
        ("array_record", "hf", "Hugging Face Datasets opens arrow and parquet files, and these"),
    ],
)
def test_other_formats_are_indices_with_a_note(
    tmp_path: Path, file_format: str, loader: str, reason: str
) -> None:
    data = data_of(toy(tmp_path, file_format), loader=loader)
    assert data.read == "index ranges"
    assert reason in data.notes[0]
    assert data.notes[0].endswith("; the loader runs over indices of the same number instead")


def test_files_that_are_elsewhere_or_damaged_are_not_opened(tmp_path: Path) -> None:
    assert "not on this machine" in data_of(read_dataset("mnist")).notes[0]
    dataset = toy(tmp_path, "array_record")
    (tmp_path / "toy/1.0.0/toy-train.array_record-00002-of-00004").write_bytes(b"")
    data = data_of(dataset)
    assert data.read == "index ranges"
    assert [finding.kind for finding in data.checks.findings]
    assert "not all of them are sound" in data.notes[0]


def test_hugging_face_opens_whole_files_by_itself(tmp_path: Path) -> None:
    dataset = parquet(tmp_path / "data", 3, 5)
    data = data_of(dataset, loader="hf")
    assert data.read == "files"
    assert data.rows is not None
    assert data.rows.indices_of([{"id": 102}]).tolist() == [5]
    assert data_of(dataset, "train[:3]", "hf").rows is not None
    assert "parts of some" in data_of(dataset, "train[:4]", "hf").notes[0]


def test_many_rows_are_known_again_where_all_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGETS, "files", 7)
    dataset = parquet(tmp_path / "data", 3, 5)
    assert "all 8 have to be read" in data_of(dataset, loader="hf").notes[0]
    assert data_of(dataset, loader="hf", take="all").rows is not None


@pytest.mark.parametrize("missing", [["tensorflow_datasets"], ["array_record"]])
def test_a_package_that_reads_them_may_be_missing(
    tmp_path: Path, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_there(name: str) -> bool:
        return name not in missing

    dataset: Any = toy(tmp_path, "array_record")
    monkeypatch.setattr(module, "_is_there", is_there)
    assert f"tfds.data_source needs {missing[0]}" in data_of(dataset).notes[0]


# Records of `tfds.data_source`, beside those that lie at their places in the files.

LENGTHS = (3, 0, 5, 2)


def source(root: Path, file_format: str = "array_record", **changed: Any) -> RecordSource:
    folder = root / "toy" / "1.0.0"
    if not folder.exists():
        build_dataset(root, splits={"train": LENGTHS}, file_format=file_format)
    files = [folder / f"toy-train.{file_format}-{i:05d}-of-00004" for i in range(4) if LENGTHS[i]]
    values = {
        "folder": str(folder),
        "spec": "train",
        "file_format": file_format,
        "files": tuple(map(str, files)),
        "skip": (0, 0, 0),
        "take": (3, 5, 2),
        **changed,
    }
    return RecordSource(**values)


@pytest.mark.parametrize("file_format", ["array_record", "parquet"])
def test_a_record_at_its_place_is_its_index(tmp_path: Path, file_format: str) -> None:
    records = pickle.loads(pickle.dumps(source(tmp_path, file_format)))
    assert len(records) == len(records.data_source) == 10
    assert [int(records[index]) for index in range(10)] == list(range(10))
    assert [int(index) for index in records.__getitems__([9, 0, 4])] == [9, 0, 4]
    assert pickle.loads(pickle.dumps(records))._opened is None  # each process opens its own


def test_a_subsplit_counts_from_its_first_record(tmp_path: Path) -> None:
    part: dict[str, Any] = {"spec": "train[2:7]", "skip": (2, 0), "take": (1, 4)}
    records = source(tmp_path, **part)
    records.files = records.files[:2]
    assert len(records.data_source) == 5
    assert [int(records[index]) for index in range(5)] == list(range(5))


def test_a_record_of_another_place_is_none(tmp_path: Path) -> None:
    records = source(tmp_path)
    records.files = (records.files[0], records.files[2], records.files[1])
    records.take = (3, 2, 5)
    records.__post_init__()
    assert [int(records[index]) for index in range(10)] == [0, 1, 2, *[-1] * 7]


# Rows of files told apart by their contents.


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
        ) -> Generator[Sequence[Mapping[str, Any]]]:
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
