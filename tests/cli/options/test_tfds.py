"""`index --tfds`: TFDS's metadata of counted files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shardctl.cli.main import main
from tests.tfds_datasets import write_dataset


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of TFRecord files; their features are in `tmp_path`."""
    built = write_dataset(tmp_path, splits={"train": [3, 0, 5]})
    os.rename(built / "features.json", tmp_path / "features.json")
    os.unlink(built / "dataset_info.json")
    return built


def code_of(*words: object) -> int | str | None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return ended.value.code


def read_by_tfds(folder: Path) -> list[int]:
    import tensorflow_datasets as tfds

    read = tfds.builder_from_directory(folder).as_dataset(split="train")
    return [int(example["id"]) for example in tfds.as_numpy(read)]


def test_tfds_reads_what_was_counted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("index", folder, "--tfds", folder, "--features", tmp_path / "features.json")
    layout = tmp_path / "layout.yaml"
    assert code_of(*words, "-o", layout) == 0
    assert "wrote features.json, dataset_info.json" in capsys.readouterr().out
    assert layout.exists()
    assert read_by_tfds(folder) == list(range(8))
    assert code_of(*words, "-f", "json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["kind"] == "tfds_metadata"
    # The metadata that was read besides is what the files hold.
    assert code_of("verify", "--files", "-d", folder) == 0


def test_nothing_is_written_where_a_file_is_broken(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = folder / "toy-train.tfrecord-00002-of-00003"
    broken.write_bytes(broken.read_bytes()[:-3])
    words = ("index", folder, "--tfds", folder, "--features", tmp_path / "features.json")
    for more in ((), ("--keep-going",)):
        assert code_of(*words, *more) == 1
        assert "nothing was written for TFDS" in capsys.readouterr().err
    assert not (folder / "dataset_info.json").exists()


def test_a_layout_file_is_a_dataset_of_tfds_too(folder: Path, tmp_path: Path) -> None:
    import shardctl

    layout = tmp_path / "layout.yaml"
    assert code_of("index", folder, "-o", layout) == 0
    shardctl.tfds.write_metadata(layout, folder, tmp_path / "features.json")
    assert read_by_tfds(folder) == list(range(8))
