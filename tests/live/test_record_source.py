"""Records of `tfds.data_source`, beside those that lie at their places in the files."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from shardctl.live.real_data import RecordSource
from tests.tfds_datasets import build_dataset

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
