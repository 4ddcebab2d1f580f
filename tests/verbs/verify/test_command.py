"""`shardctl verify`, from the command line to what it writes; the real thing runs in it."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.children import first_line, start
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import build_dataset

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [5, 0, 3, 6]}, test: {shard_lengths: [2]}}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    return build_dataset(root, splits={"train": [5, 0, 3, 6], "test": [2]})


def test_an_order_that_is_read_as_predicted(shardctl: Shardctl, built: Path) -> None:
    import tensorflow as tf
    import tensorflow_datasets as tfds

    ran = shardctl("verify", "-d", built, "--cycle", 2, "--epochs", 2)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "train of toy:1.0.0: cycle 2, block 16, 2 epochs",
        "as predicted: 28 of 28 examples, read from files",
        f"read by TFDS {tfds.__version__} and TensorFlow {tf.__version__}",
        "3 files hold what the metadata says",
    ]


def test_the_document(shardctl: Shardctl, built: Path) -> None:
    ran = shardctl("verify", "train+test", "-d", built, "--shuffle-seed", 4, "-f", "json")
    document = json.loads(ran.stdout)
    assert list(document)[:3] == ["format_version", "kind", "dataset"]
    assert (document["format_version"], document["kind"]) == (1, "verify")
    assert document["pipeline"]["shuffle_seed"] == 4
    assert document["read"] == "files"
    assert document["checked"] == [{"start": 0, "stop": 16, "read": "files", "host": None}]
    assert (document["num_checked"], document["equal"]) == (16, True)
    assert (document["first_difference"], document["files"]) == (None, [])
    assert document["num_files"] == 4
    again = shardctl("verify", "train+test", "-d", built, "--shuffle-seed", 4, "-f", "yaml")
    assert yaml.safe_load(again.stdout) == document


@pytest.mark.tensorflow
def test_a_layout_is_read_as_index_ranges(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    arguments = ("verify", "-d", "toy.yaml", "--buffer", 4, "--buffer-seed", 1)
    ran = shardctl(*arguments)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "14 of 14 examples, read from index ranges\nread by TensorFlow" in ran.stdout
    assert "the files of toy are not on this machine" in ran.stdout
    document = json.loads(shardctl(*arguments, "--take", 6, "-f", "json").stdout)
    assert (document["read"], document["num_checked"], document["num_files"]) == (
        "index ranges",
        6,
        0,
    )
    assert [(one["start"], one["stop"]) for one in document["checked"]] == [(0, 6)]


@pytest.mark.tensorflow
def test_a_folder_without_its_files_is_a_finding(
    shardctl: Shardctl, built: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    for file in folder.glob("toy-*"):
        file.rename(folder / file.name.replace("-of-0000", "-of-0001"))
    shardctl("resume", "--consumed", 1, "-d", folder, "-o", "plan.yaml")
    for arguments in (("verify",), ("verify", "--plan", "plan.yaml"), ("verify", "--files")):
        ran = shardctl(*arguments, "-d", folder)
        assert (ran.exit_code, ran.stderr) == (1, "")
        assert "no file of split 'train' is here: 3 files are missing" in ran.stdout
        assert "in their place: 'toy-train.tfrecord-00000-of-00014' and 3 more" in ran.stdout
    assert "3 of 3 files not as the metadata says:" in shardctl("verify", "-d", folder).stdout


@pytest.mark.tensorflow
def test_nothing_to_verify_is_bad_input(shardctl: Shardctl, built: Path) -> None:
    shardctl("resume", "train[:0]", "--consumed", 0, "-d", built, "-o", "plan.yaml")
    for arguments in (("train[:0]",), ("--plan", "plan.yaml")):
        ran = shardctl("verify", *arguments, "-d", built)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "error: nothing to verify: 'train[:0]' of toy:1.0.0 has no examples" in ran.stderr


def test_files_that_are_not_as_the_metadata_says(
    shardctl: Shardctl, built: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(built, tmp_path / "copy"))
    file = folder / "toy-train.tfrecord-00002-of-00004"
    file.write_bytes(file.read_bytes()[:-3])
    ran = shardctl("verify", "-d", folder, "--cycle", 1)
    assert (ran.exit_code, ran.stderr) == (1, "")
    _, headline, _, expected, found, says, _, files, _, row = ran.stdout.splitlines()
    assert headline == "differs at position 7, read from files"
    assert expected.split() == ["expected", "7", f"{file.name}__2"]
    assert found.split() == ["found", "(end)"]
    assert says.startswith("TensorFlow says: truncated record")
    assert files == "1 of 3 files not as the metadata says:"
    assert row.split()[:4] == [file.name, "3", "2", "cut"]

    document = json.loads(shardctl("verify", "-d", folder, "--cycle", 1, "-f", "json").stdout)
    first = document["first_difference"]
    assert (first["position"], first["expected"], first["found"]) == (7, 7, None)
    assert [(f["filename"], f["expected"], f["found"]) for f in document["files"]] == [
        (file.name, 3, 2)
    ]
    ran = shardctl("verify", "-d", folder, "--cycle", 1, "-f", "csv", "-o", "out.csv")
    assert (ran.exit_code, ran.stdout) == (1, "")
    rows = list(csv.DictReader(io.StringIO(Path("out.csv").read_text())))
    assert [(row["kind"], row["where"], row["expected"], row["found"]) for row in rows] == [
        ("order", "7", "7", ""),
        ("file", file.name, "3", "2"),
    ]


@pytest.mark.parametrize(("mode", "form"), [("exactly-once", "table"), ("exact-order", "json")])
def test_a_plan_is_run(shardctl: Shardctl, built: Path, mode: str, form: str) -> None:
    settings = ("--buffer", 3, "--buffer-seed", 1, "--epochs", 2, "--shuffle-seed", 2)
    shardctl("resume", "-d", built, *settings, "--consumed", 5, "--mode", mode, "-o", "p.yaml")
    ran = shardctl("verify", "--plan", "p.yaml", "-f", form)
    assert (ran.exit_code, ran.stderr) == (0, "")
    if form == "table":
        assert "as predicted: 23 of 28 examples, read from files" in ran.stdout
    else:
        document = json.loads(ran.stdout)
        assert (document["plan"], document["checked"][0]["start"]) == ("p.yaml", 5)
        assert (document["num_checked"], document["equal"], document["read"]) == (23, True, "files")
    ran = shardctl("verify", "--plan", "p.yaml", "--cycle", 3)
    assert ran.stderr == "error: --cycle with --plan: the plan file holds the whole pipeline\n"
    assert ran.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--shuffle-files"], "another order in each run; give --shuffle-seed N"),
        (["--no-deterministic"], "deterministic=False"),
        (["trian"], "no split 'trian' in toy"),
        (["--take", "-2"], "--take '-2': a whole number, at least -1, is needed"),
        (["-f", "xml"], "no format 'xml' here; choose from table, json, yaml, csv"),
        (["--plan", "none.yaml"], "none.yaml"),
    ],
)
def test_what_cannot_be_verified_is_one_line(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
) -> None:
    hidden: Any = None  # these are refused before TensorFlow is loaded
    monkeypatch.setitem(sys.modules, "tensorflow", hidden)
    Path("toy.yaml").write_text(LAYOUT)
    ran = shardctl("verify", "-d", "toy.yaml", *arguments)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert error in ran.stderr


@pytest.mark.slow
def test_the_noise_of_tensorflow_stays_out(built: Path) -> None:
    outside = {k: v for k, v in os.environ.items() if not k.startswith(("TF_", "CUDA_"))}
    ran = subprocess.run(
        [sys.executable, "-m", "shardctl", "verify", "-d", str(built), "-f", "json"],
        capture_output=True,
        text=True,
        env=outside,
        check=False,
        timeout=120,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads(ran.stdout)["equal"] is True
    assert ran.stdout.startswith("{\n")


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_what_is_missing_is_named_with_the_way_to_install_it(
    shardctl: Shardctl, built: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden: Any = None
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, hidden)
    ran = shardctl("verify", "-d", built)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert "; install it with: pip install " in ran.stderr


def test_a_tensorflow_that_nobody_has_compared_is_warned_of_once(
    shardctl: Shardctl, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    monkeypatch.setattr(tf, "__version__", "2.99.0")
    monkeypatch.setattr("shardctl.tfds.imports._seen", set())
    without = shardctl("simulate", "-d", built)  # it does not read with TensorFlow
    assert (without.exit_code, without.stderr) == (0, "")
    ran = shardctl("verify", "-d", built)
    assert ran.exit_code == 0
    assert ran.stderr.startswith("warning: TensorFlow 2.99.0 is newer than any whose orders were ")
    assert ran.stderr.count("\n") == 1
    assert "read by TFDS" in ran.stdout
    assert shardctl("verify", "-d", built).stderr == ""


@pytest.mark.tensorflow
@pytest.mark.parametrize(  # while TensorFlow loads, and while it reads
    "delay", [0, pytest.param(3, marks=pytest.mark.slow)]
)
def test_an_interrupt_ends_it(delay: float, tmp_path: Path) -> None:
    (tmp_path / "shardctl.yaml").write_text("dataset: imagenet2012\n")
    (tmp_path / "below").mkdir()
    with start(
        [*(sys.executable, "-m", "shardctl", "verify"), *["--epochs", "99", "--take", "-1"]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # nothing of stderr is read ahead of its first line
        cwd=tmp_path / "below",
    ) as process:
        note = first_line(process)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=300)
    assert (process.returncode, out, error) == (130, b"", b"")
    assert note.decode().strip() == "settings of ../shardctl.yaml: dataset imagenet2012"


@pytest.mark.tensorflow
def test_a_terminal_shows_how_far_it_is(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shardctl.cli.output._PATIENCE", 0)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    ran = shardctl("verify", "-d", "imagenet2012", "--take", "2000")
    assert "examples" in ran.stderr
    assert "%" in ran.stderr
    assert "\x1b[1mtrain of imagenet2012" in ran.stdout
    assert all(len(line) <= 60 + len("\x1b[1m\x1b[0m") for line in ran.stdout.splitlines())


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of libraries that seem to be installed; a toy runs in the place of PyTorch."""
    import shardctl.live.verify as bridge
    from shardctl.loaders.loader import LOADERS

    found = {"torch": "2.13.0"}
    monkeypatch.setattr(bridge, "installed_version", found.get)
    toy = replace(LOADERS["torch"], calls="tests.live.toy_loaders:InOrder")
    monkeypatch.setitem(LOADERS, "torch", toy)
    return found


@pytest.mark.long
@pytest.mark.usefixtures("installed")
def test_another_loader_is_run_and_compared(shardctl: Shardctl) -> None:
    asked = ("verify", "train[:10]", "-d", "mnist", "--loader", "torch", "--batch", 4)
    ran = shardctl(*asked, "--loader-version", "2.13.0")
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[1:] == [
        "as predicted: 10 of 10 examples, read from index ranges",
        "read by torch 2.13.0",
        "note: the files of mnist:3.0.1 are not on this machine; the loader runs over indices of "
        "the same number instead",
    ]
    # The toy shuffles nothing.
    ran = shardctl(*asked, "--loader-version", "2.13.0", "--shuffle-seed", 1, "-f", "json")
    document = json.loads(ran.stdout)
    assert ran.exit_code == 1
    assert (document["kind"], document["equal"], document["torch"]) == ("verify", False, "2.13.0")
    assert document["first_difference"]["read"] == "index ranges"


def test_a_loader_that_is_not_installed_names_its_extra(
    shardctl: Shardctl, installed: dict[str, str]
) -> None:
    installed.clear()
    ran = shardctl("verify", "train[:10]", "-d", "mnist", "--loader", "torch")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "error: torch is not installed, and verify --loader torch runs it; install it with: "
        "pip install 'shardctl[torch]'\n"
    )
