"""`shardctl simulate`, from the command line to what it writes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from shardctl.settings.read_settings import ReadSettings, settings_in_force
from tests.cases import check_cases
from tests.children import run_on_a_terminal, running_command
from tests.cli.conftest import Shardctl
from tests.order.order_cases import read_settings
from tests.tfds_datasets import write_dataset

IMAGENET = ("-d", "imagenet2012")
LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [5, 0, 3, 6]}, test: {shard_lengths: [2]}}\n"


@pytest.fixture
def toy(shardctl: Shardctl) -> tuple[str, str]:
    """The options that choose a small dataset."""
    Path("toy.yaml").write_text(LAYOUT)
    return ("-d", "toy.yaml")


def ids_of(ran: Any) -> list[int]:
    assert (ran.exit_code, ran.stderr) == (0, "")
    return [int(line) for line in ran.stdout.splitlines()]


def test_skip_and_take_show_any_stretch(shardctl: Shardctl, toy: tuple[str, str]) -> None:
    every = ids_of(shardctl("simulate", *toy, "--cycle", 2, "--block", 2, "-f", "ids", "--take=-1"))
    assert every == [0, 1, 5, 6, 2, 3, 7, 4, *range(8, 14)]
    part = ("--skip", 3, "--take", "1_0", "-f", "ids", "--cycle", 2, "--block", 2)
    assert ids_of(shardctl("simulate", *toy, *part)) == every[3:13]
    assert ids_of(shardctl("simulate", *toy, "--skip", 14, "-f", "ids")) == []


def test_the_pipeline_pasted_under_read_gives_the_same_order(
    shardctl: Shardctl, toy: tuple[str, str]
) -> None:
    def law(read: ReadSettings) -> None:
        arguments = as_options(read)
        Path("shardctl.yaml").unlink(missing_ok=True)
        first = shardctl("simulate", *toy, *arguments, "-f", "yaml", "--take", -1)
        assert first.exit_code == 0
        document = yaml.safe_load(first.stdout)
        Path("shardctl.yaml").write_text(yaml.safe_dump({"read": document["pipeline"]}))
        again = shardctl("simulate", *toy, "-f", "yaml", "--take", -1)
        assert again.stdout == first.stdout

    check_cases(read_settings(num_examples=14, hosts=("even", "examples")), law, 12)


def as_options(read: ReadSettings) -> list[str]:
    """Return settings as one writes them on the command line."""
    arguments = []
    for name, value in settings_in_force(read, ordered=False).items():
        option = name.replace("_", "-")
        if value is None or (value is False and "reshuffle" not in name):
            continue
        if isinstance(value, bool):
            arguments.append(f"--{option}" if value else f"--no-{option}")
        else:
            arguments.append(f"--{option}={value}")
    return arguments


def test_options_win_over_the_settings_of_the_project(
    shardctl: Shardctl, toy: tuple[str, str]
) -> None:
    Path("shardctl.yaml").write_text(
        "dataset: toy.yaml\n"
        "read: {cycle: auto, cpus: 3, block: 2, reverse: true, shuffle-files: false}\n"
    )
    assert ids_of(shardctl("simulate", "-f", "ids", "--take", 3)) == [8, 9, 10]
    assert ids_of(shardctl("simulate", "-f", "ids", "--take", 3, "--no-reverse")) == [0, 1, 2]
    Path("order.txt").write_text("# last first\ntoy-train.tfrecord-00003-of-00004\n\n")
    ran = shardctl("simulate", "train[3shard]", "-f", "ids", "--file-order", "order.txt")
    assert ids_of(ran) == list(range(8, 14))
    # In a project it is a list, or the name of one beside it.
    Path("project").mkdir()
    Path("project/toy.yaml").write_text(LAYOUT)
    names = [f"toy-train.tfrecord-0000{i}-of-00004" for i in (2, 3, 0)]
    Path("project/order.txt").write_text("\n".join(names))
    os.chdir("project")
    for order in ("order.txt", names):
        document = {"dataset": "toy.yaml", "read": {"file_order": order, "block": 1}}
        Path("shardctl.yaml").write_text(yaml.safe_dump(document))
        assert ids_of(shardctl("simulate", "-f", "ids", "--take", 3)) == [5, 8, 0]


def test_a_file_holds_what_stdout_would(shardctl: Shardctl, toy: tuple[str, str]) -> None:
    for name in ("table", "json", "yaml", "csv", "ids", "tfds-ids", "jsonl"):
        printed = shardctl("simulate", *toy, "-f", name).stdout
        assert shardctl("simulate", *toy, "-f", name, "-o", "out").stdout == ""
        assert Path("out").read_text() == printed
    shardctl("simulate", *toy, "-f", "npy", "-o", "out", "--take", -1, "--shuffle-seed", 1)
    ids = np.load("out")
    assert ids.dtype == np.int64
    assert ids.tolist() == ids_of(
        shardctl("simulate", *toy, "-f", "ids", "--take", -1, "--shuffle-seed", 1)
    )


def test_a_long_file_has_a_progress_bar_on_stderr(tmp_path: Path) -> None:
    out, error = run_on_a_terminal(
        *("simulate", *IMAGENET, "--take", "600_000"),
        *("--buffer", "10000", "--buffer-seed", "1", "-f", "ids", "-o", str(tmp_path / "out")),
        patience=0,
    )
    assert out == ""
    assert "examples" in error
    assert "%" in error
    with open(tmp_path / "out", "rb") as file:
        assert sum(1 for _ in file) == 600_000


def test_a_terminal_gets_no_bytes_of_an_array(shardctl: Shardctl) -> None:
    process = subprocess.run(
        ["script", "-qec", f"{sys.executable} -m shardctl simulate -f npy", "/dev/null"],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert b"name a file with --output FILE" in process.stdout
    assert b"NUMPY" not in process.stdout


def test_an_array_may_be_piped(tmp_path: Path) -> None:
    words = ("simulate", *IMAGENET, "-f", "npy", "--take", "5")
    with running_command(*words, folder=tmp_path) as running:
        data = running.stdout.read()
        assert running.process.wait(30) == 0
    assert np.load(io.BytesIO(data)).tolist() == [0, 1, 2, 3, 4]


def test_datasets_of_stages_are_looked_up_in_the_data_dir_of_the_command(
    shardctl: Shardctl, tmp_path: Path
) -> None:
    write_dataset(tmp_path / "data", "first", {"train": [3, 4]})
    write_dataset(tmp_path / "data", "second", {"train": [5]})
    stages = "zip(train, read(train, data=second)) | take(2)"
    options = ("-d", "first", "--data-dir", tmp_path / "data", "--stages", stages, "-f", "ids")
    ran = shardctl("simulate", *options)
    assert (ran.exit_code, ran.stderr) == (0, "")
    names = ["first/train:0", "second/train:0", "first/train:1", "second/train:1"]
    assert ran.stdout.splitlines() == names
    ran = shardctl("simulate", "-d", tmp_path / "data/first/1.0.0", "--stages", stages)
    assert ran.exit_code == 2  # that data dir was the other command's
    assert "second" in ran.stderr


def test_no_dataset_is_chosen_where_the_stages_name_all(shardctl: Shardctl) -> None:
    ran = shardctl("simulate", "--stages", "read(test, data=mnist) | repeat", "--take", 3)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[1] == "positions 0 to 2 of an endless order"
    ran = shardctl("simulate", "-d", "mnist", "--stages", "repeat", "--take", 3, "-f", "json")
    assert json.loads(ran.stdout)["num_examples"] is None
