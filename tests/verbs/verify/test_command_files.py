"""`shardctl verify --files`, from the command line to what it writes; TensorFlow stays out."""

from __future__ import annotations

import csv
import importlib
import io
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.children import run_on_a_terminal, running_command
from tests.cli.conftest import Shardctl
from tests.record_files import framed, header
from tests.tfds_datasets import write_dataset

# A newer pyarrow does not work beside NumPy 1, which TensorFlow 2.16 and 2.17 need.
PYARROW = f"pip install '{'pyarrow<26' if np.__version__ < '2' else 'shardctl[files]'}'"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify-files")
    return write_dataset(root, splits={"train": [5, 0, 3, 6], "test": [2]})


@pytest.fixture
def damaged(built: Path, tmp_path: Path) -> Path:
    """A copy with damage in two files of train, a FIFO for a third and one too many in test."""
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    first, _, third, last = sorted(folder.glob("toy-train*"))
    first.write_bytes(framed(b"abc") + header(2**40) + b"abc")
    third.unlink()
    os.mkfifo(third)
    data = bytearray(last.read_bytes())
    data[-1] ^= 1
    last.write_bytes(data)
    (folder / "toy-test.tfrecord-00001-of-00001").touch()
    return folder


def test_sound_files(shardctl: Shardctl, built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "tensorflow", hidden)
    ran = shardctl("verify", "--files", "-d", built)
    assert (ran.exit_code, ran.stderr) == (0, "")
    title, heading, train, test, checked, answer = ran.stdout.splitlines()
    assert title.startswith("toy:1.0.0: tfrecord, ")
    assert heading.split()[:4] == ["split", "examples", "records", "files"]
    assert train.split()[:5] == ["train", "14", "14", "4", "4"]
    assert test.split()[:5] == ["test", "2", "2", "1", "1"]
    assert checked == "5 files checked by the checksums of all their records"
    assert answer == "every file holds what the metadata says"


def test_every_damaged_file_is_named(shardctl: Shardctl, damaged: Path) -> None:
    ran = shardctl("verify", "--files", "-d", damaged, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    document = json.loads(ran.stdout)
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    size = (damaged / "toy-train.tfrecord-00003-of-00004").stat().st_size // 6
    assert [(f["kind"], f["record"], f["byte"]) for f in document["files"]] == [
        ("too-long", 1, 19),
        ("not-a-file", None, None),
        ("data", 5, 5 * size),
        ("extra", None, None),
    ]
    assert (document["equal"], document["num_files"]) == (False, 5)
    again = shardctl("verify", "--files", "-d", damaged, "-f", "yaml")
    assert yaml.safe_load(again.stdout) == document
    ran = shardctl("verify", "--files", "-d", damaged, "-f", "csv", "-o", "found.csv")
    assert (ran.exit_code, ran.stdout) == (1, "")
    rows = list(csv.DictReader(io.StringIO(Path("found.csv").read_text())))
    assert [(row["filename"], row["kind"], row["reason"]) for row in rows] == [
        (file["filename"], file["kind"], file["reason"]) for file in document["files"]
    ]
    ran = shardctl("verify", "test", "--files", "-d", damaged)
    assert ran.exit_code == 1
    assert "1 problem:" in ran.stdout


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Five files without metadata: a length, the data of another, and the end of a third broken."""
    folder = tmp_path / "bare"
    folder.mkdir()
    records = framed(b"abc") * 4
    for shard in range(5):
        data = bytearray(records)
        if shard in (1, 2):
            data[{1: 2, 2: 13}[shard]] ^= 1
        path = folder / f"data-{shard:05d}-of-00005.tfrecord"
        path.write_bytes(data[:-1] if shard == 4 else data)
    return folder


def test_every_damaged_file_without_metadata_is_named(shardctl: Shardctl, bare: Path) -> None:
    ran = shardctl("verify", "--files", "-d", bare, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    found = {file["filename"][5:10]: file["kind"] for file in json.loads(ran.stdout)["files"]}
    assert found == {"00001": "header", "00002": "data", "00004": "cut"}
    python = importlib.import_module("shardctl").verify_files(str(bare))
    assert {finding.kind for finding in python.findings} == {"header", "data", "cut"}
    (bare / "data-00003-of-00005.tfrecord").unlink()
    ran = shardctl("verify", "--files", "-d", bare)
    assert ran.exit_code == 1
    assert "train: shard 3 of 5 is missing" in ran.stdout
    assert "4 problems:" in ran.stdout


def test_a_split_of_which_no_file_is_whole_is_not_passed_over(
    shardctl: Shardctl, tmp_path: Path
) -> None:
    (tmp_path / "bare").mkdir()
    for split, fault in (("train", 0), ("val", 1)):
        data = bytearray(framed(b"abc") * 4)
        data[2] ^= fault
        (tmp_path / "bare" / f"toy-{split}-00000-of-00001.tfrecord").write_bytes(data)
    for splits in ([], ["val"]):
        ran = shardctl("verify", *splits, "--files", "-d", tmp_path / "bare", "-f", "json")
        assert (ran.exit_code, ran.stderr) == (1, "")
        (file,) = json.loads(ran.stdout)["files"]
        assert (file["filename"], file["kind"]) == ("toy-val-00000-of-00001.tfrecord", "header")
    assert shardctl("verify", "train", "--files", "-d", tmp_path / "bare").exit_code == 0


@pytest.mark.parametrize(
    ("shard", "code", "said"),
    [
        (0, 0, "every file holds what was counted"),
        (1, 1, "1 problem:"),
        (4, 1, "cut off in record"),
    ],
)
def test_one_file_can_be_checked_alone(
    shardctl: Shardctl, bare: Path, shard: int, code: int, said: str
) -> None:
    file = bare / f"data-{shard:05d}-of-00005.tfrecord"
    ran = shardctl("verify", "--files", "-d", file)
    assert (ran.exit_code, ran.stderr) == (code, "")
    assert said in ran.stdout
    assert "missing" not in ran.stdout
    ran = shardctl("verify", "--files", file)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert f"as in -d {file}" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--cycle", "2"], "--cycle with --files: the files are read whole, in no order"),
        (["--take", "5"], "--take with --files: the files are read whole, in no order"),
        (["--plan", "p"], "--plan with --files: the files are read whole, in no order"),
        (["trian"], "no split 'trian' in toy:1.0.0; it has: train, test"),
        (["train[:5]"], "files are checked by whole splits: train, test"),
        (["-f", "xml"], "no format 'xml' here; choose from table, json, yaml, csv"),
        (["-d", "mnist"], "'mnist:3.0.1' has no files on this machine (built-in catalog)"),
    ],
)
def test_what_cannot_be_checked_is_one_line(
    shardctl: Shardctl, built: Path, arguments: list[str], error: str
) -> None:
    dataset = [] if "-d" in arguments else ["-d", built]
    ran = shardctl("verify", "--files", *dataset, *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert error in ran.stderr


def test_several_splits_without_files_are_one_too_many(shardctl: Shardctl, built: Path) -> None:
    ran = shardctl("verify", "train", "test", "-d", built)
    assert ran.exit_code == 2
    assert ran.stderr == "error: 'test' is more than verify takes; shardctl verify -h explains\n"


@pytest.mark.parametrize(
    ("file_format", "module", "way"),
    [
        ("array_record", "array_record.python", "pip install 'shardctl[files]'"),
        ("parquet", "pyarrow", PYARROW),
    ],
)
def test_a_missing_package_is_named(
    shardctl: Shardctl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_format: str,
    module: str,
    way: str,
) -> None:
    folder = write_dataset(
        tmp_path, splits={"train": [3]}, file_format=file_format, with_files=False
    )
    (folder / f"toy-train.{file_format}-00000-of-00001").write_bytes(framed(b"a", b"b", b"c"))
    hidden: Any = None
    monkeypatch.setitem(sys.modules, module, hidden)
    ran = shardctl("verify", "--files", "-d", folder)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.endswith(f" needs a package: {way}\n")


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that takes a minute to read: the same million records of a byte, over and over."""
    folder = tmp_path_factory.mktemp("slow")
    file = folder / "l-train.tfrecord-00000-of-00400"
    file.write_bytes(framed(b"a") * 1_000_000)
    for shard in range(1, 400):
        os.link(file, folder / f"l-train.tfrecord-{shard:05d}-of-00400")
    split = {"num_examples": 400_000_000, "num_shards": 400}
    layout = {"name": "l", "data_dir": ".", "splits": {"train": split}}
    (folder / "l.json").write_text(json.dumps(layout))
    return folder


@pytest.mark.long
def test_an_interrupt_ends_it_soon(slow: Path) -> None:
    command = ("verify", "--files", "-d", slow / "l.json")
    with running_command(*command, folder=slow) as running:
        time.sleep(0.1)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(timeout=10) == 130
        assert (running.stdout.read(), running.stderr.read()) == (b"", b"")


def test_a_terminal_shows_how_far_it_is(tmp_path: Path) -> None:
    (tmp_path / "l-train.tfrecord-00000-of-00001").write_bytes(framed(b"a") * 100_000)
    layout = tmp_path / "l.json"
    split = {"num_examples": 100_000, "num_shards": 1}
    layout.write_text(json.dumps({"name": "l", "data_dir": ".", "splits": {"train": split}}))
    words = ("verify", "--files", "-d", str(layout))
    out, error = run_on_a_terminal(*words, columns=200, patience=0)
    assert "every file holds what the metadata says" in out
    assert "bytes" in error
