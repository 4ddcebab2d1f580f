"""`shardctl snapshot`, from the command line to what it writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [30, 40, 50]}, test: {shard_lengths: [5]}}\n"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> Path:
    """A dataset in the folder that commands run in."""
    path = Path("toy.yaml")
    path.write_text(LAYOUT)
    return path


def test_a_snapshot_is_yaml_on_stdout_or_in_a_file(shardctl: Shardctl) -> None:
    printed = shardctl("snapshot", "-d", "toy.yaml", "--block", 2)
    assert (printed.exit_code, printed.stderr) == (0, "")
    written = shardctl("snapshot", "-d", "toy.yaml", "--block", 2, "-o", "order.yaml")
    assert (written.exit_code, written.stdout, written.stderr) == (0, "", "")
    assert Path("order.yaml").read_text() == printed.stdout
    document = yaml.safe_load(printed.stdout)
    assert document["kind"] == "snapshot"
    assert document["first_ids"][:7] == [0, 1, 30, 31, 70, 71, 2]
    assert document["pipeline"]["block"] == 2


def test_json_says_the_same(shardctl: Shardctl) -> None:
    document = json.loads(shardctl("snapshot", "-d", "toy.yaml", "-f", "json").stdout)
    again = yaml.safe_load(shardctl("snapshot", "-d", "toy.yaml").stdout)
    assert (document["order"], document["checksum"]) == (again["order"], again["checksum"])


def test_other_formats_are_refused(shardctl: Shardctl) -> None:
    outcome = shardctl("snapshot", "-d", "toy.yaml", "-f", "csv")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert outcome.stderr == "error: no format 'csv' here; choose from yaml, json\n"


def test_an_order_that_is_left_open_is_refused_and_nothing_is_written(shardctl: Shardctl) -> None:
    outcome = shardctl("snapshot", "-d", "toy.yaml", "--shuffle-files", "-o", "order.yaml")
    assert outcome.exit_code == 2
    assert "--shuffle-seed" in outcome.stderr
    assert not Path("order.yaml").exists()


def test_what_surprises_about_a_spec_is_said(shardctl: Shardctl) -> None:
    outcome = shardctl("snapshot", "train[:0shard]", "-d", "toy.yaml")
    assert outcome.exit_code == 0
    assert "warning:" in outcome.stderr


def test_every_run_and_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the hash seed, nor the locale, the time zone, the umask or the folder count."""
    texts = set()
    for number, zone in enumerate(("UTC", "Asia/Tokyo")):
        folder = tmp_path / f"copy {number}"
        folder.mkdir()
        (folder / "toy.yaml").write_text(LAYOUT)
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(number),
            "TZ": zone,
            "LC_ALL": ("C", "C.UTF-8")[number],
            "COLUMNS": str(40 + 100 * number),
        }
        arguments = ["-d", "toy.yaml", "--shuffle-seed", "3", "-o", "order.yaml"]
        subprocess.run(
            [sys.executable, "-m", "shardctl", "snapshot", "train+test", *arguments],
            cwd=folder,
            env=environment,
            check=True,
        )
        texts.add((folder / "order.yaml").read_bytes())
    assert len(texts) == 1
