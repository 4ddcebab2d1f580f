"""Data dirs list what TFDS prepared in them, and nothing odd in them is an error."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shardctl.readers.data_dirs import data_dirs, dataset_names, list_datasets
from tests.tfds_datasets import build_dataset


def test_data_dirs_are_in_the_order_they_are_searched() -> None:
    env = {"HOME": "/home/me", "TFDS_DATA_DIR": "~/tfds"}
    expected = ["/option", "/home/me/tfds", "/home/me/tensorflow_datasets"]
    assert list(map(str, data_dirs("/option", env))) == expected
    assert list(map(str, data_dirs(None, env))) == expected[1:]
    assert list(map(str, data_dirs(None, {"HOME": "/home/me"}))) == expected[2:]


def test_each_data_dir_is_there_once_and_remote_ones_are_left_out() -> None:
    env = {"HOME": "/home/me", "TFDS_DATA_DIR": "gs://bucket/data"}
    assert list(map(str, data_dirs("~/tensorflow_datasets", env))) == [
        "/home/me/tensorflow_datasets"
    ]


def test_datasets_are_listed_by_name_config_and_version_number(tmp_path: Path) -> None:
    for version in ("1.10.0", "1.9.0"):
        build_dataset(tmp_path / "a", version=version, with_files=False)
        build_dataset(tmp_path / "b", config="plain", version=version, with_files=False)
    build_dataset(tmp_path / "b", name="another", with_files=False)
    found = list_datasets([tmp_path / "a", tmp_path / "b", tmp_path / "nothing"])
    assert list(map(str, found)) == [
        "another:1.0.0",
        "toy:1.9.0",
        "toy:1.10.0",
        "toy/plain:1.9.0",
        "toy/plain:1.10.0",
    ]
    assert found[1].path == tmp_path / "a" / "toy" / "1.9.0"
    assert dataset_names([tmp_path / "a", tmp_path / "b"]) == ("another", "toy")


def test_folders_of_another_shape_are_passed_over(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (tmp_path / "toy" / "2.0.0").mkdir()  # a version without metadata
    (tmp_path / "toy" / "3.0.0.incompleteX").mkdir()
    (tmp_path / "toy" / "3.0.0.incompleteX" / "dataset_info.json").touch()
    (tmp_path / "toy" / "latest").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "downloads" / "extracted").mkdir(parents=True)
    (tmp_path / "file").touch()
    assert [found.path for found in list_datasets([tmp_path])] == [folder]


def test_a_folder_that_may_not_be_entered_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    (tmp_path / "secret").mkdir()
    scandir = os.scandir

    def guarded(path: Path) -> object:
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    assert [found.path for found in list_datasets([tmp_path])] == [folder]
