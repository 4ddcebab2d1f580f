"""Every document begins alike, and what it says of its dataset is read back as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.dataset.identity import DatasetHead
from shardctl.files.head import head, identity_head, read_head, read_identity
from tests.core.instructions.tfds_splits import toy_dataset
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
        {"name": "train", "num_examples": 7, "num_shards": 2},
        {"name": "test", "num_examples": 2, "num_shards": 1},
    ]
    document = json.loads(json.dumps(written))
    assert read_identity(document) == dataset.identity
    found = read_head(document)
    assert type(found) is DatasetHead
    assert vars(found) == {k: v for k, v in vars(dataset.identity).items() if k in vars(found)}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", None, "the dataset's name must be text, not nothing"),
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
        ("splits", [3], "a split must be a mapping"),
        ("splits", [{"name": 3}], "the name of a split must be text"),
        ("splits", [{"name": "a", "num_examples": -1, "num_shards": 1}], "negative"),
        ("splits", [{"name": "a", "num_examples": 1}], "num_shards of a split must be a whole"),
    ],
)
def test_an_ill_formed_identity_is_one_line(key: str, value: object, words: str) -> None:
    document = {**identity_head("resume", TOY.identity, format_version=1), key: value}
    assert words in (error_line(lambda: read_identity(document)) or "")


def test_a_split_that_is_there_twice_is_refused() -> None:
    written = identity_head("resume", TOY.identity, format_version=1)
    written["splits"] *= 2
    assert error_line(lambda: read_identity(written)) == "split 'train' is there twice"
