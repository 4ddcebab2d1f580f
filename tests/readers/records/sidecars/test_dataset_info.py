"""Metadata of TFDS and of Hugging Face beside their files, each of which says counts of shards."""

from __future__ import annotations

import json
from pathlib import Path

from shardctl.readers.records.sidecars import HuggingFaceInfo, TfdsInfo
from tests.byte_sources import RECORDED
from tests.tfds_datasets import build_dataset


def test_tfds_says_the_length_of_each_shard(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, splits={"train": [3, 1, 4], "test": [1]})
    document = json.loads((folder / "dataset_info.json").read_text())
    info = TfdsInfo(document, folder=f"{folder}/")
    said = {file.name: info.expected(str(file)) for file in folder.glob("toy-*")}
    assert {name: found and found.num_examples for name, found in said.items()} == {
        "toy-train.tfrecord-00000-of-00003": 3,
        "toy-train.tfrecord-00001-of-00003": 1,
        "toy-train.tfrecord-00002-of-00003": 4,
        "toy-test.tfrecord-00000-of-00001": 1,
    }
    assert info.expected(f"{folder}/toy-train.tfrecord-00003-of-00003") is None
    assert info.expected(f"{folder}/other") is None
    assert info.expected("elsewhere/toy-test.tfrecord-00000-of-00001") is None
    assert info.absent(set()) == []


def test_names_that_follow_no_number_are_found_too() -> None:
    split = {"name": "train", "shardLengths": ["7"], "filepathTemplate": "{DATASET}.{FILEFORMAT}"}
    document = {"name": "toy", "version": "1.0.0", "splits": [split]}
    expected = TfdsInfo(document, folder="d/").expected("d/toy.tfrecord")
    assert expected is not None
    assert expected.num_examples == 7


def test_a_cache_folder_of_hugging_face_says_the_length_of_each_shard() -> None:
    folder = RECORDED / "hugging_face_cache"
    document = json.loads((folder / "dataset_info.json").read_text())
    info = HuggingFaceInfo(document, folder="d/")
    said = {file.name: info.expected(f"d/{file.name}") for file in folder.glob("*.arrow")}
    assert {name: found and found.num_examples for name, found in said.items()} == {
        "json-train-00000-of-00002.arrow": 11,
        "json-train-00001-of-00002.arrow": 12,
        "json-test.arrow": 11,
    }
    assert info.expected("d/json-test.parquet") is not None
    assert info.expected("e/json-test.arrow") is None
    assert info.absent(set()) == []


def test_names_of_datasets_are_written_as_hugging_face_writes_them() -> None:
    splits = {"train": {"num_examples": 3}}
    for name, prefix in (("MyDataset", "my_dataset"), ("HTTPLogs2Go", "http_logs2_go")):
        info = HuggingFaceInfo({"dataset_name": name, "splits": splits}, folder="")
        assert info.expected(f"{prefix}-train.arrow") is not None


def test_metadata_without_splits_say_nothing() -> None:
    documents: list[dict[str, object]] = [{}, {"features": {}}, {"dataset_name": "d"}]
    for document in (*documents, {"splits": {}}):
        assert HuggingFaceInfo(document, folder="").expected("d-train.arrow") is None
