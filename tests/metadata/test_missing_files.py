"""Shards none of whose files is here are one finding, which says what lies in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.dataset.dataset import FileFinding
from shardctl.metadata.files_on_disk import check_files, files_of_another_count, none_here
from shardctl.metadata.tfds_metadata import read_tfds_folder
from tests.tfds_datasets import build_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    splits = {"train": [3, 0, 5], "test": [2]}
    return build_dataset(tmp_path, splits=splits, with_files=False)


def finding(folder: Path, split: str, shards: list[int]) -> FileFinding:
    dataset = read_tfds_folder(folder)
    return none_here(dataset, dataset.split(split), shards)


def test_it_has_the_first_name_and_the_examples_of_all(folder: Path) -> None:
    found = finding(folder, "train", [0, 2])
    assert (found.filename, found.expected, found.found, found.num_files) == (
        "toy-train.tfrecord-00000-of-00003",
        8,
        None,
        2,
    )
    assert (found.kind, found.split) == ("missing", "train")
    assert found.reason == (
        "no file of split 'train' is here: 2 files are missing, of which this is the first"
    )
    assert finding(folder, "test", [0]).reason == "missing"


def test_shards_of_another_number_are_named(folder: Path) -> None:
    for name in ("train.tfrecord-00001-of-00004", "train.tfrecord-00000-of-00004", "x"):
        (folder / f"toy-{name}").touch()
    in_place = "; in their place: 'toy-train.tfrecord-00000-of-00004' and 1 more that look alike"
    assert (finding(folder, "train", [0, 2]).reason or "").endswith(in_place)
    assert finding(folder, "train", [2]).reason == f"missing{in_place}"
    assert finding(folder, "test", [0]).reason == "missing"
    assert len(files_of_another_count(read_tfds_folder(folder))) == 2


def test_a_folder_of_metadata_alone_has_no_problems_until_look_alikes_lie_there(
    folder: Path,
) -> None:
    dataset = read_tfds_folder(folder)
    (folder / "other-train.tfrecord-00000-of-00001").touch()
    assert check_files(dataset).problems == ()
    (folder / "toy-train.tfrecord-00000-of-00004").touch()
    found = check_files(dataset)
    assert not found.present
    assert [(problem.kind, problem.split) for problem in found.problems] == [
        ("missing", "train"),
        ("missing", "test"),
        ("extra", None),
        ("wrong-count", "train"),
    ]
