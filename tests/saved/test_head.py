"""Every document begins alike, and what it says of its dataset is read back as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead
from shardctl.metadata.reference import merge_datasets
from shardctl.saved.head import head, identity_head, read_head, read_identity
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import error_line

TOY = toy_dataset({"train": (3, 4), "test": (2,)})
NAMED = replace(TOY, config="v", version="1.0.0", ordered=True)


@pytest.mark.parametrize("dataset", [TOY, NAMED, replace(NAMED, data_dir="/d/\udcff")])
def test_what_is_written_of_a_dataset_is_read_back(dataset: Dataset) -> None:
    written = identity_head("resume", dataset.identity, format_version=1)
    sizes = [tuple(split.values()) for split in written["splits"]]
    template = "toy-{}.tfrecord-{{SHARD_INDEX}}-of-{{NUM_SHARDS}}".format
    assert sizes == [("train", 7, 2, template("train")), ("test", 2, 1, template("test"))]
    document = json.loads(json.dumps(written))
    assert read_identity(document) == dataset.identity
    found = read_head(document)
    assert type(found) is DatasetHead
    assert vars(found) == {k: v for k, v in vars(dataset.identity).items() if k in vars(found)}


def test_the_folders_of_a_dataset_are_read_back_in_their_order() -> None:
    several = merge_datasets([replace(NAMED, data_dir="/d/a"), replace(NAMED, data_dir="/d/b")])
    written = identity_head("resume", several.identity, format_version=1)
    folders = written["dataset"]["folders"]
    assert [folder["path"] for folder in folders] == ["a", "b"]
    assert list(folders[0]) == ["path", "title", "fingerprint", "num_bytes", "splits"]
    assert read_identity(json.loads(json.dumps(written))) == several.identity
    pinned = head("snapshot", several.identity.without_folder())["dataset"]
    assert (pinned["data_dir"], pinned["folders"]) == (None, folders)


FOLDER: dict[str, Any] = {"path": None, "title": None, "fingerprint": "f"}
FOLDER |= {"num_bytes": None, "splits": []}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", None, "dataset.name must be text, not nothing"),
        ("config", 3, "config must be text"),
        ("file_format", "", "file_format is empty"),
        ("folders", {}, "folders must be a list"),
        ("folders", [{"fingerprint": "f"}], "dataset.folders[0] has no path"),
        ("folders", [FOLDER | {"splits": [1]}], "dataset.folders[0].splits[0] must be text"),
        ("folders", [FOLDER | {"num_bytes": -1}], "is negative"),
        ("folders", [FOLDER | {"title": ["t"]}], "dataset.folders[0].title must be text"),
    ],
)
def test_an_ill_formed_head_is_one_line(key: str, value: object, words: str) -> None:
    document = head("plan", TOY.identity)
    document["dataset"][key] = value
    assert words in (error_line(lambda: read_head(document)) or "")


SPLITS = identity_head("resume", TOY.identity, format_version=1)["splits"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"dataset": None}, "dataset must be a mapping"),
        ({"ordered": 1}, "ordered must be true or false"),
        ({"splits": [{"name": 3}]}, "splits[0].name must be text"),
        ({"splits": [{"name": "a", "num_examples": -1, "num_shards": 1}]}, "negative"),
        ({"splits": [{"name": "a", "num_examples": 1}]}, "splits[0] has no num_shards"),
        ({"splits": SPLITS * 2}, "split 'train' is there twice"),
    ],
)
def test_an_ill_formed_identity_is_one_line(changed: dict[str, Any], words: str) -> None:
    document = {**identity_head("resume", TOY.identity, format_version=1), **changed}
    assert words in (error_line(lambda: read_identity(document)) or "")
