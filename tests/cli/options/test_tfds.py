"""`index --tfds`: TFDS's metadata of counted files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import shardctl as api
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of TFRecord files; their features are in `tmp_path`."""
    built = write_dataset(tmp_path, splits={"train": [3, 0, 5]})
    os.rename(built / "features.json", tmp_path / "features.json")
    os.unlink(built / "dataset_info.json")
    return built


def read_by_tfds(folder: Path) -> list[int]:
    import tensorflow_datasets as tfds

    read = tfds.builder_from_directory(folder).as_dataset(split="train")
    return [int(example["id"]) for example in tfds.as_numpy(read)]


def test_tfds_reads_what_was_counted(folder: Path, tmp_path: Path, shardctl: Shardctl) -> None:
    words = ("index", folder, "--tfds", folder, "--features", tmp_path / "features.json")
    layout = tmp_path / "layout.yaml"
    ran = shardctl(*words, "-o", layout)
    assert (ran.exit_code, layout.exists()) == (0, True)
    assert "wrote features.json, dataset_info.json" in ran.stdout
    assert read_by_tfds(folder) == list(range(8))
    ran = shardctl(*words, "-f", "json")
    assert (ran.exit_code, json.loads(ran.stdout)["kind"]) == (0, "tfds_metadata")
    # The metadata that was read besides is what the files hold.
    assert shardctl("verify", "--files", "-d", folder).exit_code == 0
    os.unlink(folder / "dataset_info.json")
    api.tfds.write_metadata(layout, folder, tmp_path / "features.json")  # of a layout file too
    assert read_by_tfds(folder) == list(range(8))


def test_nothing_is_written_where_a_file_is_broken(
    folder: Path, tmp_path: Path, shardctl: Shardctl
) -> None:
    broken = folder / "toy-train.tfrecord-00002-of-00003"
    broken.write_bytes(broken.read_bytes()[:-3])
    words = ("index", folder, "--tfds", folder, "--features", tmp_path / "features.json")
    for more in ((), ("--keep-going",)):
        ran = shardctl(*words, *more)
        assert (ran.exit_code, "nothing is written for TFDS" in ran.stderr) == (1, True)
    assert not (folder / "dataset_info.json").exists()
