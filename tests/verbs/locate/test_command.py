"""`shardctl locate`, from the command line to what it writes."""

from __future__ import annotations

import csv
import io
import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.children import running_command
from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [5, 0, 3, 6]}, test: {shard_lengths: [2]}}\n"
# With a cycle of 2 and blocks of 2: 0 1 5 6 2 3 7 4 8 9 10 11 12 13
ORDER = ("-d", "toy.yaml", "--cycle", 2, "--block", 2)
FILE = "toy-train.tfrecord-0000{}-of-00004"


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)


def give(monkeypatch: pytest.MonkeyPatch, text: bytes) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))


def matches(ran: Any) -> list[dict[str, Any]]:
    assert (ran.exit_code, ran.stderr) == (0, "")
    found: list[dict[str, Any]] = json.loads(ran.stdout)["matches"]
    return found


def test_which_examples_were_in_a_step_and_when_one_is_read(shardctl: Shardctl) -> None:
    ran = shardctl("locate", *ORDER, "--batch", 4, "--step", 1, "--id", 2, "-f", "json")
    step, read = matches(ran)[:4], matches(ran)[4:]
    assert [match["id"] for match in step] == [2, 3, 7, 4]
    assert [match["position"] for match in step] == [4, 5, 6, 7]
    assert read == [
        {
            "position": 4,
            "epoch": 0,
            "step": 1,
            "id": 2,
            "tfds_id": f"{FILE.format(0)}__2",
            "filename": FILE.format(0),
            "index_in_shard": 2,
        }
    ]


def test_answers_are_in_the_order_of_the_command_line(shardctl: Shardctl) -> None:
    arguments = ["--id=8", "--position", 0, f"--tfds-id={FILE.format(2)}__2", "--id", 1]
    ran = shardctl("locate", *ORDER, *arguments, "--position", 2, "-f", "json")
    assert [match["position"] for match in matches(ran)] == [8, 0, 6, 1, 2]


def test_lists_come_from_stdin_where_the_options_are(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, b"8\n\n 5 \r\n13\n")
    ran = shardctl("locate", *ORDER, "--position", 1, "--id", "-", "--position", 0, "-f", "json")
    assert [match["id"] for match in matches(ran)] == [1, 8, 5, 13, 0]
    ran = shardctl("locate", *ORDER, "--position", "-", "--id", "-")
    assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
    assert "can be read only once" in ran.stderr
    give(monkeypatch, b"")
    assert shardctl("locate", *ORDER, "--id", "-").stdout.endswith("\nno matches\n")


def test_what_simulate_writes_can_be_located(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = (*ORDER, "--shuffle-seed", 3, "--buffer", 4, "--buffer-seed", 1, "all")
    for name, kind in (("ids", "--id"), ("tfds-ids", "--tfds-id")):
        ids = shardctl("simulate", *pipeline, "-f", name, "--take", -1).stdout
        give(monkeypatch, ids.encode())
        ran = shardctl("locate", *pipeline, kind, "-", "-f", "csv")
        rows = list(csv.DictReader(io.StringIO(ran.stdout)))
        assert [row["position"] for row in rows] == [str(i) for i in range(16)]
        assert ran.stderr == ""


def test_a_match_for_each_epoch_and_none_for_what_is_not_read(shardctl: Shardctl) -> None:
    ran = shardctl("locate", "train[:8]", *ORDER, "--epochs", 2, "--id", 5, "--id", 9)
    assert ran.exit_code == 0
    rows = [line.split() for line in ran.stdout.splitlines()[2:]]
    assert rows == [["2", "0", "5", FILE.format(2), "0"], ["10", "1", "5", FILE.format(2), "0"]]
    assert ran.stderr == "warning: id 9: this order never hands it out\n"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "nothing to locate: give --position P, --step S, --id I or --tfds-id T"),
        (["--position", "14"], "position 14: the order has 14 examples, counted from 0"),
        (["--position", "-1"], "--position '-1': a number from 0 is needed"),
        (["--step", "0"], "--step needs --batch N"),
        (["--step", "4", "--batch", "4"], "step 4: the order has 4 batches of 4"),
        (["--id", "test:0"], "split 'test' is not read; it is train"),
        (["--id", "14"], "train has 14 examples"),
        (["--tfds-id", "x__0"], "'x' is not read here"),
        (["--position", "0", "-f", "npy"], "no format 'npy' here; choose from table, json"),
        (["--position", "0", "--shuffle-files"], "give --shuffle-seed N"),
    ],
)
def test_what_cannot_be_located_is_one_line(
    shardctl: Shardctl, arguments: list[str], error: str
) -> None:
    ran = shardctl("locate", *ORDER, *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert error in ran.stderr


def test_every_format_has_every_match(shardctl: Shardctl) -> None:
    import yaml

    arguments = ("locate", *ORDER, "--position", 3, "--position", 9)
    document = json.loads(shardctl(*arguments, "-f", "json").stdout)
    assert yaml.safe_load(shardctl(*arguments, "-f", "yaml").stdout) == document
    assert (document["format_version"], document["kind"]) == (1, "locate")
    table = shardctl(*arguments).stdout
    for match in document["matches"]:
        assert match["filename"] in table
    shardctl(*arguments, "-o", "out", "-f", "json")
    assert json.loads(Path("out").read_text()) == document


def test_a_list_on_a_stdin_that_is_closed_is_one_line(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    ran = shardctl("locate", "--id", "-", "-d", "mnist")
    said = "error: - is a list on stdin, which is closed; give the values themselves\n"
    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", said)


LONG = "locate -d imagenet2012 --shuffle-seed 1 --epochs 1000000 --id 5"


@pytest.mark.long
@pytest.mark.parametrize("form", ["table", "json"])
def test_the_first_match_is_written_before_the_last_is_sought(form: str, tmp_path: Path) -> None:
    with running_command(*LONG.split(), "-f", form, folder=tmp_path) as running:
        assert any(b"800735" in line for line in running.stdout)
        running.process.send_signal(signal.SIGINT)
        running.stdout.read()
        assert running.stderr.read() == b""
        assert running.process.wait(timeout=30) == 130


@pytest.mark.long
def test_what_is_interrupted_leaves_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    with running_command(*LONG.split(), "-o", "found.csv", folder=folder) as running:
        while not any(path.stat().st_size for path in folder.iterdir()):
            assert running.process.poll() is None
            time.sleep(0.01)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(timeout=30) == 130
    assert list(folder.iterdir()) == []
