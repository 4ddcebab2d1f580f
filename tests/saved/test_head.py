"""Every document begins alike, and what it says of its dataset is read back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import shardctl
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead
from shardctl.metadata.reference import merge_datasets
from shardctl.saved.head import head, identity_head, own_version, read_head, read_identity
from tests.spec.tfds_splits import toy_dataset
from tests.strategies import error_line

TOY = toy_dataset({"train": (3, 4), "test": (2,)})
NAMED = replace(TOY, config="v", version="1.0.0", ordered=True)


def test_a_document_begins_with_its_version_its_kind_and_its_dataset() -> None:
    toy = toy_dataset({"train": (1,)})
    dataset = Dataset(
        name="toy", config="v", version="1.0.0", data_dir="/data", splits=toy.splits, origin="x"
    )
    assert list(head("plan", dataset.identity).items()) == [
        ("format_version", 1),
        ("kind", "plan"),
        (
            "dataset",
            {
                "name": "toy",
                "config": "v",
                "version": "1.0.0",
                "file_format": "tfrecord",
                "data_dir": "/data",
                "fingerprint": toy.fingerprint,
            },
        ),
    ]


@pytest.mark.parametrize("dataset", [TOY, NAMED, replace(NAMED, data_dir="/d/\udcff")])
def test_what_is_written_of_a_dataset_is_read_back(dataset: Dataset) -> None:
    written = identity_head("resume", dataset.identity, format_version=1)
    assert written["splits"] == [
        {
            "name": name,
            "num_examples": num_examples,
            "num_shards": num_shards,
            "template": f"toy-{name}.tfrecord-{{SHARD_INDEX}}-of-{{NUM_SHARDS}}",
        }
        for name, num_examples, num_shards in (("train", 7, 2), ("test", 2, 1))
    ]
    document = json.loads(json.dumps(written))
    assert read_identity(document) == dataset.identity
    found = read_head(document)
    assert type(found) is DatasetHead
    assert vars(found) == {k: v for k, v in vars(dataset.identity).items() if k in vars(found)}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", None, "dataset.name must be text, not nothing"),
        ("name", "a\nb", "printed"),
        ("config", 3, "config must be text"),
        ("version", 1.0, "version must be text"),
        ("file_format", "", "file_format is empty"),
        ("data_dir", ["/d"], "data_dir must be text"),
        ("fingerprint", {}, "fingerprint must be text"),
    ],
)
def test_an_ill_formed_head_is_one_line(key: str, value: object, words: str) -> None:
    document = head("plan", TOY.identity)
    document["dataset"][key] = value
    assert words in (error_line(lambda: read_head(document)) or "")


@pytest.mark.parametrize("document", [{}, {"dataset": "toy"}, {"dataset": [{}]}])
def test_a_document_without_a_head_is_one_line(document: dict[str, object]) -> None:
    assert "dataset must be a mapping" in (error_line(lambda: read_head(document)) or "")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("ordered", 1, "ordered must be true or false"),
        ("splits", None, "splits must be a list"),
        ("splits", [3], "splits[0] must be a mapping"),
        ("splits", [{"name": 3}], "splits[0].name must be text"),
        ("splits", [{"name": "a", "num_examples": -1, "num_shards": 1}], "negative"),
        ("splits", [{"name": "a", "num_examples": 1}], "splits[0] has no num_shards"),
    ],
)
def test_an_ill_formed_identity_is_one_line(key: str, value: object, words: str) -> None:
    document = {**identity_head("resume", TOY.identity, format_version=1), key: value}
    assert words in (error_line(lambda: read_identity(document)) or "")


FOLDER: dict[str, object] = {
    "path": None,
    "title": None,
    "fingerprint": "f",
    "num_bytes": None,
    "splits": [],
}
FOLDERS = merge_datasets([replace(NAMED, data_dir="/d/a"), replace(NAMED, data_dir="/d/b")])


def test_the_folders_of_a_dataset_are_read_back_in_their_order() -> None:
    written = identity_head("resume", FOLDERS.identity, format_version=1)
    [first, second] = written["dataset"]["folders"]
    assert (first["path"], second["path"]) == ("a", "b")
    assert list(first) == ["path", "title", "fingerprint", "num_bytes", "splits"]
    assert read_identity(json.loads(json.dumps(written))) == FOLDERS.identity
    pinned = head("snapshot", FOLDERS.identity.without_folder())["dataset"]
    assert (pinned["data_dir"], pinned["folders"]) == (None, written["dataset"]["folders"])


@pytest.mark.parametrize(
    ("folders", "words"),
    [
        ({}, "folders must be a list"),
        ([3], "dataset.folders[0] must be a mapping"),
        ([{"fingerprint": "f"}], "dataset.folders[0] has no path"),
        ([FOLDER | {"splits": [1]}], "dataset.folders[0].splits[0] must be text"),
        ([FOLDER | {"fingerprint": None}], "dataset.folders[0].fingerprint must be text"),
        ([FOLDER | {"path": 3}], "dataset.folders[0].path must be text"),
        ([FOLDER | {"num_bytes": -1}], "is negative"),
        ([FOLDER | {"title": ["t"]}], "dataset.folders[0].title must be text"),
    ],
)
def test_ill_formed_folders_are_one_line(folders: object, words: str) -> None:
    document = head("plan", TOY.identity)
    document["dataset"]["folders"] = folders
    assert words in (error_line(lambda: read_head(document)) or "")


def test_a_split_that_is_there_twice_is_refused() -> None:
    written = identity_head("resume", TOY.identity, format_version=1)
    written["splits"] *= 2
    assert error_line(lambda: read_identity(written)) == "split 'train' is there twice"


def test_the_version_of_what_writes_is_that_of_the_package() -> None:
    assert own_version() == shardctl.__version__
