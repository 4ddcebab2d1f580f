"""Metadata of TFDS and of Hugging Face beside their files, each of which says counts of shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from shardctl.metadata.index.sidecars import Sidecars
from shardctl.stores.stores import LocalStore
from tests.byte_sources import RECORDED
from tests.tfds_datasets import build_dataset


def of_folder(folder: Path) -> Sidecars:
    return Sidecars(LocalStore().scan(str(folder)))


def written(folder: Path, document: dict[str, Any]) -> Sidecars:
    (folder / "dataset_info.json").write_text(json.dumps(document))
    found = of_folder(folder)
    assert found.problems == []
    return found


def said_of(sidecars: Sidecars, *paths: Path) -> dict[str, list[int]]:
    return {path.name: [e.num_examples for e in sidecars.said.get(str(path), [])] for path in paths}


def test_tfds_says_the_length_of_each_shard(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 1, 4], "test": [1]})
    info = of_folder(folder)
    assert said_of(info, *folder.glob("toy-*")) == {
        "toy-train.tfrecord-00000-of-00003": [3],
        "toy-train.tfrecord-00001-of-00003": [1],
        "toy-train.tfrecord-00002-of-00003": [4],
        "toy-test.tfrecord-00000-of-00001": [1],
    }
    assert info.said.get(f"{folder}/toy-train.tfrecord-00003-of-00003", []) == []
    assert info.said.get("elsewhere/toy-test.tfrecord-00000-of-00001", []) == []
    assert info.absent(set()) == []


def test_names_that_follow_no_number_are_found_too(tmp_path: Path) -> None:
    split = {"name": "train", "shardLengths": ["7"], "filepathTemplate": "{DATASET}.{FILEFORMAT}"}
    info = written(tmp_path, {"name": "toy", "version": "1.0.0", "splits": [split]})
    assert said_of(info, tmp_path / "toy.tfrecord") == {"toy.tfrecord": [7]}


def test_a_cache_folder_of_hugging_face_says_the_length_of_each_shard() -> None:
    folder = RECORDED / "hugging_face_cache"
    info = of_folder(folder)
    assert said_of(info, *folder.glob("*.arrow")) == {
        "json-train-00000-of-00002.arrow": [11],
        "json-train-00001-of-00002.arrow": [12],
        "json-test.arrow": [11],
    }
    assert said_of(info, folder / "json-test.parquet") == {"json-test.parquet": [11]}
    assert info.absent(set()) == []


def test_names_of_datasets_are_written_as_hugging_face_writes_them(tmp_path: Path) -> None:
    splits = {"train": {"num_examples": 3}}
    for name, prefix in (("MyDataset", "my_dataset"), ("HTTPLogs2Go", "http_logs2_go")):
        info = written(tmp_path, {"dataset_name": name, "splits": splits})
        file = tmp_path / f"{prefix}-train.arrow"
        assert said_of(info, file) == {file.name: [3]}


def test_metadata_without_splits_say_nothing(tmp_path: Path) -> None:
    empty: dict[str, Any] = {"splits": {}}
    for document in ({"features": {}, **empty}, {"dataset_name": "d", **empty}):
        assert not written(tmp_path, document)
