"""`shardctl list`, from the command line to what it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

HOME = "tensorflow_datasets"  # the data dir in the home folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data dir with three datasets and what is none."""
    root = tmp_path / "data"
    for name, config, version in [
        ("toy", None, "1.0.0"),
        ("toy", None, "1.10.0"),
        ("blocks", "red", "2.0.0"),
    ]:
        write_dataset(root, name, {"train": [1]}, config=config, version=version)
    (shard,) = (root / "toy/1.0.0").glob("*.tfrecord-*")
    assert shard.stat().st_size == 16 + 15
    (root / "downloads").mkdir()
    (root / "half" / "1.0.0").mkdir(parents=True)
    return root


def found_in(root: Path) -> list[list[str]]:
    return [  # one example in each; TFDS states its bytes without the 16 of its record
        [title, "1", "15", "B", "tfrecord", str(root / folder)]
        for title, folder in (
            ("blocks/red:2.0.0", "blocks/red/2.0.0"),
            ("toy:1.0.0", "toy/1.0.0"),
            ("toy:1.10.0", "toy/1.10.0"),
        )
    ]


_HEADINGS = ["dataset", "examples", "size", "format", "folder"]


def test_datasets_in_data_dirs_come_first_and_built_in_ones_by_name(
    shardctl: Shardctl, data: Path
) -> None:
    ran = shardctl("list", "--data-dir", data)
    assert (ran.exit_code, ran.stderr) == (0, "")
    here, built_in = ran.stdout.split("\n\n")
    assert [line.split() for line in here.splitlines()] == [_HEADINGS, *found_in(data)]
    title, names, hint = built_in.splitlines()
    assert title == "built-in layouts"
    assert {"imagenet2012", "mnist", "c4"} <= set(names.split(", "))
    assert hint == "(--all shows their configs and versions)"


def test_all_shows_built_in_configs_and_versions(shardctl: Shardctl, data: Path) -> None:
    rows = shardctl("list", "--data-dir", data, "--all").stdout.splitlines()
    assert [row.split() for row in rows[1:4]] == found_in(data)
    # As published: 1,281,167 + 50,000 + 100,000 examples.
    (imagenet,) = [row.split() for row in rows if row.startswith("imagenet2012:5.1.0 ")]
    assert imagenet[1:] == ["1,431,167", "155.8", "GiB", "tfrecord", "built-in", "layout"]


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
        (Path.home() / HOME).symlink_to(data)
    assert "toy:1.10.0" in shardctl("list", *arguments).stdout


def test_without_datasets_the_folders_searched_are_named(shardctl: Shardctl) -> None:
    first = shardctl("list").stdout.splitlines()[0]
    assert first == f"no datasets in {Path.home() / HOME}"


ONE_EXAMPLE = {
    "file_format": "tfrecord",
    "num_examples": 1,
    "num_bytes": 15,
    "splits": [{"name": "train", "num_examples": 1, "num_shards": 1, "num_bytes": 15}],
    "problem": None,
}


def test_programs_get_every_dataset_and_where_it_is_from(shardctl: Shardctl, data: Path) -> None:
    document = json.loads(shardctl("list", "--data-dir", data, "-f", "json").stdout)
    assert list(document) == ["format_version", "kind", "data_dirs", "datasets"]
    assert [document["format_version"], document["kind"]] == [1, "list"]
    assert document["data_dirs"] == [str(data), str(Path.home() / HOME)]
    assert document["datasets"][:2] == [
        {
            "name": "blocks",
            "config": "red",
            "version": "2.0.0",
            "path": str(data / "blocks/red/2.0.0"),
            "source": "data_dir",
            **ONE_EXAMPLE,
        },
        {
            "name": "toy",
            "config": None,
            "version": "1.0.0",
            "path": str(data / "toy/1.0.0"),
            "source": "data_dir",
            **ONE_EXAMPLE,
        },
    ]
    (imagenet,) = [
        found
        for found in document["datasets"]
        if (found["name"], found["version"]) == ("imagenet2012", "5.1.0")
    ]
    assert (
        imagenet.items()
        >= {
            "config": None,
            "path": None,
            "source": "catalog",
            "file_format": "tfrecord",
            "num_examples": 1_431_167,
            "problem": None,
        }.items()
    )
    assert [split["num_shards"] for split in imagenet["splits"]] == [1024, 64, 128]


def test_json_yaml_and_csv_say_the_same(shardctl: Shardctl, data: Path) -> None:
    said = {
        form: shardctl("list", "--data-dir", data, "-f", form).stdout
        for form in ("json", "yaml", "csv")
    }
    document = json.loads(said["json"])
    assert yaml.safe_load(said["yaml"]) == document
    assert list(csv.DictReader(said["csv"].splitlines())) == [
        {
            **{key: "" if value is None else str(value) for key, value in dataset.items()},
            "splits": " ".join(split["name"] for split in dataset["splits"]),
        }
        for dataset in document["datasets"]
    ]


def test_words_choose_in_every_format_and_finding_nothing_exits_with_1(
    shardctl: Shardctl, data: Path
) -> None:
    rows = shardctl("list", "TOY", "1.10", "--data-dir", data).stdout.splitlines()
    assert [row.split() for row in rows] == [_HEADINGS, found_in(data)[2]]
    ran = shardctl("list", "toy", "--data-dir", data, "-f", "json")
    assert [found["version"] for found in json.loads(ran.stdout)["datasets"]] == ["1.0.0", "1.10.0"]
    ran = shardctl("list", "blocs", "--data-dir", data)
    assert (ran.exit_code, ran.stderr) == (1, "")
    assert ran.stdout.endswith("has 'blocs' in its name or format; near: blocks\n")
    ran = shardctl("list", "blocs", "--data-dir", data, "-f", "json")
    assert (ran.exit_code, json.loads(ran.stdout)["datasets"]) == (1, [])


def test_metadata_that_is_broken_is_named_and_the_rest_listed(
    shardctl: Shardctl, data: Path
) -> None:
    broken = data / "toy/1.0.0/dataset_info.json"
    broken.write_text("{")
    ran = shardctl("list", "--data-dir", data)
    assert ran.exit_code == 0
    assert ran.stderr.startswith(f"warning: {broken}: line 1, column 2 is not JSON")
    rows = [row.split() for row in ran.stdout.splitlines()]
    assert rows[2] == ["toy:1.0.0", "damaged", "-", "-", str(broken.parent)]
    assert rows[3] == found_in(data)[2]
    # What the words leave out is not read.
    assert shardctl("list", "blocks", "--data-dir", data).stderr == ""


@pytest.mark.parametrize("folder", ["nowhere", "no://bucket/data", "", "a\0b"])
def test_a_data_dir_that_is_not_a_folder_is_refused(shardctl: Shardctl, folder: str) -> None:
    ran = shardctl("list", "--data-dir", folder)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: --data-dir '")
    unknown = "nobody knows the scheme no://"
    reason = unknown if "://" in folder else "no such local folder"
    assert f"': {reason}" in ran.stderr
