"""`shardctl layout`, from the command line to what it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.children import run_on_a_terminal
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "data", splits={"train": [3, 4, 5], "test": [2, 0]})


def test_imagenet_is_a_summary_and_its_shards(shardctl: Shardctl) -> None:
    ran = shardctl("layout", "-d", "imagenet2012", "train", "test")
    assert (ran.exit_code, ran.stderr) == (0, "")
    shown = ran.stdout.splitlines()
    assert shown[0] == "imagenet2012:5.1.0: tfrecord, built-in catalog, bytes by metadata"
    assert shown[2].split()[:5] == ["train", "1,281,167", "1,024", "136.9", "GiB"]
    assert shown[3].split()[:5] == ["test", "100,000", "128", "12.7", "GiB"]
    assert (
        "divides evenly among this many hosts: 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024" in shown
    )
    assert sum(line.startswith("imagenet2012-") for line in shown) == 1024 + 128


def test_all_shows_every_shard(shardctl: Shardctl) -> None:
    ran = shardctl("layout", "-d", "imagenet2012", "train", "--all")
    assert ran.stdout.count("imagenet2012-train.tfrecord-") == 1024


def test_programs_get_every_shard_and_its_size(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("layout", "-d", toy, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (0, "")
    document = json.loads(ran.stdout)
    assert [document["format_version"], document["kind"]] == [1, "layout"]
    assert document["dataset"]["data_dir"] == str(toy)
    sizes = {file.name: file.stat().st_size for file in toy.iterdir()}
    train, test = (
        next(split for split in document["splits"] if split["name"] == name)
        for name in ("train", "test")
    )
    for split in (train, test):
        assert [shard["num_bytes"] for shard in split["shards"]] == [
            sizes[shard["filename"]] for shard in split["shards"]
        ]
        assert split["num_bytes"] == sum(shard["num_bytes"] for shard in split["shards"])
    assert [shard["first_id"] for shard in train["shards"]] == [0, 3, 7]
    assert train["balance"] == {"min": 3, "max": 5, "mean": 4.0, "imbalance": 1.25}
    assert test["balance"] == {"min": 0, "max": 2, "mean": 1.0, "imbalance": 2.0}


def test_files_that_disagree_with_the_metadata_are_warnings(shardctl: Shardctl, toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00003").unlink()
    (toy / "toy-train.tfrecord-00001-of-00003").write_bytes(b"")
    (toy / "toy-train.tfrecord-00003-of-00003").write_bytes(b"x")
    (toy / "toy-test.tfrecord-00000-of-00009").write_bytes(b"x")
    ran = shardctl("layout", "-d", toy)
    assert ran.exit_code == 0
    warnings = ran.stderr.splitlines()
    assert all(line.startswith("warning: ") for line in warnings)
    for words in (
        "'toy-train.tfrecord-00000-of-00003' is missing",
        "'toy-train.tfrecord-00001-of-00003' has 0 bytes",
        "'toy-train.tfrecord-00003-of-00003' is one too many",
        "'toy-test.tfrecord-00000-of-00009' is one of 9",
    ):
        assert sum(words in line for line in warnings) == 1
    assert "missing" in ran.stdout


def test_warnings_are_about_the_splits_asked_for(shardctl: Shardctl, toy: Path) -> None:
    (toy / "toy-train.tfrecord-00000-of-00003").unlink()
    assert shardctl("layout", "-d", toy, "test").stderr == ""
    assert "is missing" in shardctl("layout", "-d", toy, "train").stderr


def test_many_warnings_are_a_handful_and_a_count(shardctl: Shardctl, tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data", splits={"train": [1] * 20})
    for index in range(12):
        (folder / f"toy-train.tfrecord-{index:05}-of-00020").unlink()
    warnings = shardctl("layout", "-d", folder).stderr.splitlines()
    assert len(warnings) == 6
    assert warnings[-1] == "warning: and 7 more"


def test_a_dataset_without_its_files_is_not_a_disagreement(
    shardctl: Shardctl, tmp_path: Path
) -> None:
    folder = write_dataset(tmp_path / "data", with_files=False)
    ran = shardctl("layout", "-d", folder)
    assert ran.stderr == ""
    assert "bytes by metadata" in ran.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "error: no split 'trian' in toy:1.0.0; it has: "),
        (["train[:1]"], "error: 'train[:1]' is a subsplit, which plan resolves; "),
        (["-f", "xml"], "error: no format 'xml' here; choose from table, json, yaml, csv"),
    ],
)
def test_bad_usage_is_one_line_and_no_output(
    shardctl: Shardctl, toy: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    output = tmp_path / "out"
    ran = shardctl("layout", "-d", toy, "-o", output, *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(message)
    assert ran.stderr.count("\n") == 1
    assert not output.exists()


def test_output_goes_to_a_file(shardctl: Shardctl, toy: Path, tmp_path: Path) -> None:
    ran = shardctl("layout", "-d", toy, "-f", "csv", "-o", tmp_path / "out.csv")
    assert ran.stdout == ""
    assert (tmp_path / "out.csv").read_text() == shardctl("layout", "-d", toy, "-f", "csv").stdout


def test_a_pipe_gets_bars_where_they_are_asked_for(shardctl: Shardctl, toy: Path) -> None:
    table = shardctl("layout", "-d", toy).stdout
    shown = shardctl("layout", "-d", toy, "--picture").stdout
    assert shown.startswith(f"{table}\nTo see: bars of one length are shards")
    picture = shown.removeprefix(table).splitlines()
    # Shards of 3, 4 and 5 examples: the third is a quarter over the mean.
    assert "shard 2 has the most: 5 examples (+25.0% over the mean)" in picture
    assert 70 < max(map(len, picture)) <= 80


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_terminal_gets_bars_that_fit(toy: Path, columns: int) -> None:
    (toy / "toy-train.tfrecord-00001-of-00003").unlink()
    shown, _ = run_on_a_terminal("layout", "-d", str(toy), columns=columns)
    _, to_see, picture = shown.partition("To see: ")
    assert to_see
    assert "shard 1 is missing" in picture
    plain = re.sub(r"\x1b\[[\d;]*m", "", picture)
    assert max(map(len, plain.splitlines())) <= min(columns, 80)


def test_pictures_alone_are_one_svg(shardctl: Shardctl, toy: Path) -> None:
    ran = shardctl("layout", "-d", toy, "-f", "svg")
    texts = [element.text for element in ElementTree.fromstring(ran.stdout).iter()]
    assert {"train in toy:1.0.0: 3 shards", "test in toy:1.0.0: 2 shards"} <= set(texts)
    assert "5 most" in texts
