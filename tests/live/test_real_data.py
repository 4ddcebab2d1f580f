"""What a loader reads when it is verified: files, or indices and the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.live.real_data as module
from shardctl import read_dataset
from shardctl.dataset.dataset import Dataset
from shardctl.live.real_data import RealData, RecordSource, real_data
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir()
    for number, size in enumerate(sizes):
        path = folder / f"train-{number:05d}-of-{len(sizes):05d}.parquet"
        pq.write_table(pa.table({"id": [number * 100 + i for i in range(size)]}), path)
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


def test_rows_that_are_alike_are_counted(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 1, 2]}), tmp_path / "train.parquet")
    data = data_of(read_dataset(str(tmp_path / "train.parquet")), loader="hf")
    assert data.notes == ("1 row with the contents of an earlier one, not told apart from it",)


@pytest.mark.parametrize("missing", [["tensorflow_datasets"], ["array_record"]])
def test_a_package_that_reads_them_may_be_missing(
    tmp_path: Path, missing: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_there(name: str) -> bool:
        return name not in missing

    dataset: Any = toy(tmp_path, "array_record")
    monkeypatch.setattr(module, "_is_there", is_there)
    assert f"tfds.data_source needs {missing[0]}" in data_of(dataset).notes[0]
