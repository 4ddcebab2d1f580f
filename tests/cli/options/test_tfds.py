"""`index --tfds`: TFDS's metadata of counted files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

import shardctl as api
from tests.cli.conftest import Shardctl
from tests.record_files import framed
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


def test_names_reach_no_terminal_as_they_are(tmp_path: Path, shardctl: Shardctl) -> None:
    """Names of files and of labels' files hold a return and U+0085, each format escapes them."""
    import tensorflow as tf
    import tensorflow_datasets as tfds

    name, folder = "a\r\x85b", Path("data")
    folder.mkdir()
    value = tf.train.Feature(int64_list=tf.train.Int64List(value=[0]))
    example = tf.train.Example(features=tf.train.Features(feature={name: value}))
    record = framed(example.SerializeToString())
    (folder / f"{name}-train.tfrecord-00000-of-00001").write_bytes(record)
    label = tfds.features.ClassLabel(names=[f"c{name}"])
    tfds.features.FeaturesDict({name: label}).save_config(tmp_path)
    words = ("index", folder, "--tfds", folder, "--features", tmp_path, "--force", "-f")
    shown = {form: shardctl(*words, form) for form in ("table", "csv", "json", "yaml")}
    for form, ran in shown.items():
        assert ran.exit_code == 0, ran.stderr
        assert all(map(str.isprintable, ran.stdout.split("\n"))), form
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = read(shown[form].stdout)
        assert found["splits"][0]["template"].startswith(name)
        assert f"{name}.labels.txt" in found["written"]
    assert r"a\r\x85b.labels.txt" in shown["table"].stdout
    assert r"a\r\x85b-train" in shown["csv"].stdout
