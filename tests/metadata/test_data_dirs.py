"""Data dirs list what TFDS prepared in them, and nothing odd in them is an error."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.metadata.names import (
    DatasetName,
    data_dirs,
    dataset_names,
    find_dataset,
    list_datasets,
)
from shardctl.metadata.project_file import Project
from tests.tfds_datasets import build_dataset


def test_data_dirs_are_in_the_order_they_are_searched(tmp_path: Path) -> None:
    env = {"HOME": "/home/me", "TFDS_DATA_DIR": "~/tfds"}
    expected = [str(tmp_path), "/home/me/tfds", "/home/me/tensorflow_datasets"]
    project = Project(data_dir=str(tmp_path))
    assert list(map(str, data_dirs(tmp_path, env, Project(data_dir="/other")))) == expected
    assert list(map(str, data_dirs(None, env, project))) == expected
    assert list(map(str, data_dirs(None, env, Project()))) == expected[1:]
    assert list(map(str, data_dirs(None, {"HOME": "/home/me"}, Project()))) == expected[2:]


def test_each_data_dir_is_there_once(tmp_path: Path) -> None:
    (tmp_path / "tensorflow_datasets").mkdir()
    dirs = data_dirs("~/tensorflow_datasets", {"HOME": str(tmp_path)}, Project())
    assert list(dirs) == [tmp_path / "tensorflow_datasets"]


@pytest.mark.parametrize(
    ("given", "variable", "project", "said"),
    [
        ("no://bucket", None, None, "--data-dir 'no://bucket': nobody knows"),
        (None, "no://bucket/data", None, "TFDS_DATA_DIR 'no://bucket/data': nobody knows"),
        (None, None, "no://b", "/project/shardctl.yaml: data_dir 'no://b': nobody knows"),
        ("no://me:pw@bucket", None, None, "--data-dir 'no://bucket': nobody knows"),
        (None, "no://me:pw@bucket", None, "TFDS_DATA_DIR 'no://bucket': nobody knows"),
        ("/no/such", None, None, "--data-dir '/no/such': no such local folder"),
        (
            None,
            None,
            "/no/such",
            "/project/shardctl.yaml: data_dir '/no/such': no such local folder",
        ),
    ],
)
def test_a_data_dir_that_cannot_be_searched_is_refused_by_name(
    given: str | None, variable: str | None, project: str | None, said: str
) -> None:
    env = {"HOME": "/home/me"} | ({"TFDS_DATA_DIR": variable} if variable else {})
    dirs = data_dirs(given, env, Project(path=Path("/project/shardctl.yaml"), data_dir=project))
    with pytest.raises(DatasetError, match=f"^{re.escape(said)}"):
        find_dataset(dirs, DatasetName(name="toy"))
    assert list(dirs.local())[-1] == Path("/home/me/tensorflow_datasets")


def test_a_folder_before_a_remote_one_may_hold_the_dataset(tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, with_files=False)
    dirs = data_dirs(tmp_path, {"HOME": "/home/me", "TFDS_DATA_DIR": "no://bucket"}, Project())
    assert find_dataset(dirs, DatasetName(name="toy")) == folder
    with pytest.raises(DatasetError, match="TFDS_DATA_DIR"):
        find_dataset(dirs, DatasetName(name="mnist"))


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


@pytest.mark.parametrize("named", ["../other", "../toy/plain", "plain/..", 7, "", None, ["plain"]])
def test_a_default_config_is_the_name_of_a_folder_there(tmp_path: Path, named: object) -> None:
    """What else stands for it counts as none, and leads nowhere else."""
    folder = build_dataset(tmp_path, config="plain", with_files=False)
    build_dataset(tmp_path, name="other", with_files=False)
    metadata = tmp_path / "toy" / ".config" / "metadata.json"
    metadata.parent.mkdir(exist_ok=True)
    metadata.write_text(json.dumps({"default_config_name": "plain"}))
    assert find_dataset([tmp_path], DatasetName(name="toy")) == folder
    metadata.write_text(json.dumps({"default_config_name": named}))
    with pytest.raises(DatasetError, match=r"none of them the default; choose one: toy/plain"):
        find_dataset([tmp_path], DatasetName(name="toy"))


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
