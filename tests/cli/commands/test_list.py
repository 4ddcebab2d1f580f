"""`shardctl list`, from the command line to what it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl
from tests.tfds_datasets import build_dataset


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data dir with three datasets and what is none."""
    root = tmp_path / "data"
    for name, config, version in [
        ("toy", None, "1.0.0"),
        ("toy", None, "1.10.0"),
        ("blocks", "red", "2.0.0"),
    ]:
        build_dataset(root, name, {"train": [1]}, config=config, version=version)
    (root / "downloads").mkdir()
    (root / "half" / "1.0.0").mkdir(parents=True)
    return root


def found_in(root: Path) -> list[list[str]]:
    return [
        ["blocks/red:2.0.0", str(root / "blocks/red/2.0.0")],
        ["toy:1.0.0", str(root / "toy/1.0.0")],
        ["toy:1.10.0", str(root / "toy/1.10.0")],
    ]


def test_datasets_in_data_dirs_come_first_and_built_in_ones_by_name(
    shardctl: Shardctl, data: Path
) -> None:
    ran = shardctl("list", "--data-dir", data)
    assert (ran.exit_code, ran.stderr) == (0, "")
    here, built_in = ran.stdout.split("\n\n")
    assert [line.split() for line in here.splitlines()] == [["dataset", "folder"], *found_in(data)]
    title, names, hint = built_in.splitlines()
    assert title == "built-in layouts"
    assert {"imagenet2012", "mnist", "c4"} <= set(names.split(", "))
    assert hint == "(--all shows their configs and versions)"


def test_all_shows_built_in_configs_and_versions(shardctl: Shardctl, data: Path) -> None:
    rows = shardctl("list", "--data-dir", data, "--all").stdout.splitlines()
    assert [row.split() for row in rows[1:4]] == found_in(data)
    assert ["imagenet2012:5.1.0", "built-in", "layout"] in [row.split() for row in rows]


def test_every_dataset_listed_is_one_that_a_command_takes(shardctl: Shardctl, data: Path) -> None:
    rows = shardctl("list", "--data-dir", data, "--all").stdout.splitlines()[1:]
    assert len(rows) > 60
    for row in rows:
        name = row.split()[0]
        ran = shardctl("layout", "-d", name, "--data-dir", data)
        assert (ran.exit_code, ran.stderr) == (0, "")
        assert ran.stdout.startswith(f"{name}: ")


@pytest.mark.parametrize("chosen_by", ["option", "environment", "shardctl.yaml", "home"])
def test_data_dirs_are_chosen_as_for_names(
    shardctl: Shardctl, data: Path, monkeypatch: pytest.MonkeyPatch, chosen_by: str
) -> None:
    arguments = []
    if chosen_by == "option":
        arguments = ["--data-dir", data]
    elif chosen_by == "environment":
        monkeypatch.setenv("TFDS_DATA_DIR", str(data))
    elif chosen_by == "shardctl.yaml":
        Path("shardctl.yaml").write_text(f"data_dir: {data}\n")
    else:
        (Path.home() / "tensorflow_datasets").symlink_to(data)
    assert "toy:1.10.0" in shardctl("list", *arguments).stdout


def test_without_datasets_the_folders_searched_are_named(shardctl: Shardctl) -> None:
    first = shardctl("list").stdout.splitlines()[0]
    assert first == f"no datasets in {Path.home() / 'tensorflow_datasets'}"


def test_programs_get_every_dataset_and_where_it_is_from(shardctl: Shardctl, data: Path) -> None:
    document = json.loads(shardctl("list", "--data-dir", data, "-f", "json").stdout)
    assert list(document) == ["format_version", "kind", "data_dirs", "datasets"]
    assert [document["format_version"], document["kind"]] == [1, "list"]
    assert document["data_dirs"] == [str(data), str(Path.home() / "tensorflow_datasets")]
    assert document["datasets"][:2] == [
        {
            "name": "blocks",
            "config": "red",
            "version": "2.0.0",
            "path": str(data / "blocks/red/2.0.0"),
            "source": "data_dir",
        },
        {
            "name": "toy",
            "config": None,
            "version": "1.0.0",
            "path": str(data / "toy/1.0.0"),
            "source": "data_dir",
        },
    ]
    assert {
        "name": "imagenet2012",
        "config": None,
        "version": "5.1.0",
        "path": None,
        "source": "catalog",
    } in document["datasets"]


def test_json_yaml_and_csv_say_the_same(shardctl: Shardctl, data: Path) -> None:
    said = {
        form: shardctl("list", "--data-dir", data, "-f", form).stdout
        for form in ("json", "yaml", "csv")
    }
    document = json.loads(said["json"])
    assert yaml.safe_load(said["yaml"]) == document
    assert list(csv.DictReader(said["csv"].splitlines())) == [
        {key: value or "" for key, value in dataset.items()} for dataset in document["datasets"]
    ]


@pytest.mark.parametrize("folder", ["nowhere", "gs://bucket/data", "", "a\0b"])
def test_a_data_dir_that_is_not_a_folder_is_refused(shardctl: Shardctl, folder: str) -> None:
    ran = shardctl("list", "--data-dir", folder)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: --data-dir '")
    reason = "remote paths are not supported yet" if "://" in folder else "no such local folder"
    assert f"': {reason}" in ran.stderr
