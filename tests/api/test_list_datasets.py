"""The datasets that names lead to: what `shardctl list` shows, as a value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import shardctl


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TFDS_DATA_DIR", raising=False)
    folder = tmp_path / "data" / "toy" / "1.0.0"
    folder.mkdir(parents=True)
    info = {"name": "toy", "version": "1.0.0", "splits": [{"name": "train", "shardLengths": ["3"]}]}
    (folder / "dataset_info.json").write_text(json.dumps(info), "utf-8")
    return tmp_path / "data"


def test_what_is_prepared_comes_before_what_is_built_in(data_dir: Path) -> None:
    found = shardctl.list_datasets(data_dir=data_dir)
    assert [one.title for one in found.in_data_dirs] == ["toy:1.0.0"]
    assert found.in_data_dirs[0].path == str(data_dir / "toy" / "1.0.0")
    assert found.datasets[0].source == "data_dir"
    assert {one.name for one in found.built_in} >= {"mnist", "imagenet2012"}
    assert str(data_dir) == found.data_dirs[0]


def test_the_environment_names_a_data_dir(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not shardctl.list_datasets().in_data_dirs
    monkeypatch.setenv("TFDS_DATA_DIR", str(data_dir))
    assert [one.title for one in shardctl.list_datasets().in_data_dirs] == ["toy:1.0.0"]


def test_words_choose(data_dir: Path) -> None:
    found = shardctl.list_datasets("cifar", "100", data_dir=data_dir)
    assert {one.name for one in found.datasets} == {"cifar100"}
    assert [one.title for one in shardctl.list_datasets("toy", data_dir=data_dir).datasets] == [
        "toy:1.0.0"
    ]


def test_a_folder_that_is_not_there_is_an_error(data_dir: Path) -> None:
    with pytest.raises(shardctl.DatasetError, match="no such local folder"):
        shardctl.list_datasets(data_dir=data_dir / "nowhere")
