"""`shardctl verify`, from the command line to what it writes; the real thing runs in it."""

from __future__ import annotations

import csv
import io
import json
import os
import shlex
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

from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.saved.snapshot import checksum
from shardctl.saved.snapshot_file import WORDS
from tests.children import first_line, running_command, start
from tests.cli.conftest import Outcome, Shardctl
from tests.golden import assert_answers
from tests.record_files import framed, header
from tests.tfds_datasets import build_dataset

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [5, 0, 3, 6]}, test: {shard_lengths: [2]}}\n"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("verify")
    return build_dataset(root, splits={"train": [5, 0, 3, 6], "test": [2]})


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "copy"))


def hide(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    hidden: Any = None
    for name in [name for name in sys.modules if name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, hidden)


def refused(ran: Outcome, error: str) -> None:
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert error in ran.stderr


def rows_of(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


def test_an_order_that_is_read_as_predicted(
    tf: Any, tfds: Any, shardctl: Shardctl, built: Path
) -> None:
    ran = shardctl("verify", "-d", built, "--cycle", 2, "--epochs", 2)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == [
        "train of toy:1.0.0: cycle 2, block 16, 2 epochs",
        "as predicted: 28 of 28 examples, read from files",
        f"read by TFDS {tfds.__version__} and TensorFlow {tf.__version__}",
        "3 files hold what the metadata says",
    ]
    words = ("verify", "train+test", "-d", built, "--shuffle-seed", 4)
    document = json.loads(shardctl(*words, "-f", "json").stdout)
    assert document["pipeline"]["shuffle_seed"] == 4
    assert document["checked"] == [{"start": 0, "stop": 16, "read": "files", "host": None}]
    assert (document["num_checked"], document["equal"], document["num_files"]) == (16, True, 4)
    assert yaml.safe_load(shardctl(*words, "-f", "yaml").stdout) == document


def test_files_that_are_not_as_the_metadata_says(shardctl: Shardctl, copy: Path) -> None:
    file = copy / "toy-train.tfrecord-00002-of-00004"
    file.write_bytes(file.read_bytes()[:-3])
    ran = shardctl("verify", "-d", copy, "--cycle", 1)
    assert (ran.exit_code, ran.stderr) == (1, "")
    _, headline, _, expected, found, says, _, files, _, row = ran.stdout.splitlines()
    assert headline == "differs at position 7, read from files"
    assert expected.split() == ["expected", "7", f"{file.name}__2"]
    assert found.split() == ["found", "(end)"]
    assert says.startswith("TensorFlow says: truncated record")
    assert files == "1 of 3 files not as the metadata says:"
    assert row.split()[:4] == [file.name, "3", "2", "record"]
    ran = shardctl("verify", "-d", copy, "--cycle", 1, "-f", "csv", "-o", "out.csv")
    assert (ran.exit_code, ran.stdout) == (1, "")
    names = ("kind", "where", "expected", "found")
    assert [tuple(row[name] for name in names) for row in rows_of("out.csv")] == [
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
        # What is left of the epoch in which the plan begins.
        assert "as predicted: 9 of 28 examples, read from files" in ran.stdout
    else:
        document = json.loads(ran.stdout)
        assert (document["plan"], document["checked"][0]["start"]) == ("p.yaml", 5)
        assert (document["num_checked"], document["equal"], document["read"]) == (23, True, "files")
    ran = shardctl("verify", "--plan", "p.yaml", "--cycle", 3)
    refused(ran, "--cycle with --plan: the plan file holds the whole pipeline\n")


def test_what_cannot_be_verified_is_one_line(
    shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, "tensorflow")  # these are refused before it is loaded
    Path("toy.yaml").write_text(LAYOUT)

    def answer(words: str) -> str:
        ran = shardctl("verify", "-d", "toy.yaml", *shlex.split(words))
        refused(ran, "")
        return ran.stderr

    assert_answers(Path(__file__).parent / "golden" / "refused.txt", answer)


@pytest.mark.parametrize("module", ["tensorflow", "tensorflow_datasets"])
def test_what_is_missing_is_named_with_the_way_to_install_it(
    shardctl: Shardctl, built: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, module)
    refused(shardctl("verify", "-d", built), " -m pip install ")


def test_a_tensorflow_that_nobody_has_compared_is_warned_of_once(
    tf: Any, shardctl: Shardctl, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tf, "__version__", "2.99.0")
    monkeypatch.setattr("shardctl.tfds.imports._seen", set())
    assert shardctl("simulate", "-d", built).stderr == ""  # it does not read with TensorFlow
    ran = shardctl("verify", "-d", built)
    assert ran.exit_code == 0
    assert ran.stderr.startswith("warning: TensorFlow 2.99.0 is newer than any whose orders were ")
    assert ran.stderr.count("\n") == 1
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
    assert note.decode().strip() == "settings of ../shardctl.yaml; shardctl config lists them"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Versions of libraries that seem to be installed; a toy runs in the place of PyTorch."""
    from shardctl.loaders.loader import LOADERS

    found = {"torch": "2.13.0"}
    monkeypatch.setattr("shardctl.metadata.loader_versions.installed_version", found.get)
    toy = replace(LOADERS["torch"], calls="tests.live.toy_loaders:InOrder")
    monkeypatch.setitem(LOADERS, "torch", toy)
    return found


@pytest.mark.long
def test_another_loader_is_run_and_compared(shardctl: Shardctl, installed: dict[str, str]) -> None:
    asked = ("verify", "train[:10]", "-d", "mnist", "--loader", "torch", "--batch", 4)
    ran = shardctl(*asked, "--loader-version", "2.13.0")
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[1:] == [
        "as predicted: 10 of 10 examples, read from index ranges",
        "read by torch 2.13.0",
        "note: PyTorch's DataLoader runs over indices of the same number, not the files",
    ]
    # The toy shuffles nothing.
    ran = shardctl(*asked, "--loader-version", "2.13.0", "--shuffle-seed", 1, "-f", "json")
    document = json.loads(ran.stdout)
    assert (ran.exit_code, document["equal"], document["torch"]) == (1, False, "2.13.0")
    assert document["first_difference"]["read"] == "index ranges"
    installed.clear()
    refused(shardctl(*asked), "error: torch is not installed, and verify --loader torch runs it; ")


# The files alone: TensorFlow stays out.


def test_every_damaged_file_is_named(shardctl: Shardctl, copy: Path) -> None:
    first, _, third, last = sorted(copy.glob("toy-train*"))
    first.write_bytes(framed(b"abc") + header(2**40) + b"abc")
    third.unlink()
    os.mkfifo(third)
    data = bytearray(last.read_bytes())
    data[-1] ^= 1
    last.write_bytes(data)
    (copy / "toy-test.tfrecord-00001-of-00001").touch()
    ran = shardctl("verify", "--files", "-d", copy, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    document = json.loads(ran.stdout)
    size = len(data) // 6
    assert [(f["kind"], f["record"], f["byte"]) for f in document["files"]] == [
        ("too-long", 1, 19),
        ("not-a-file", None, None),
        ("data", 5, 5 * size),
        ("extra", None, None),
    ]
    ran = shardctl("verify", "--files", "-d", copy, "-f", "csv", "-o", "found.csv")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert [row["kind"] for row in rows_of("found.csv")] == [f["kind"] for f in document["files"]]
    ran = shardctl("verify", "test", "--files", "-d", copy)
    assert (ran.exit_code, "1 problem:" in ran.stdout) == (1, True)


def test_damaged_files_without_metadata_are_named(shardctl: Shardctl, tmp_path: Path) -> None:
    """A length, the data of another, and the end of a third are broken, and a fourth is missing."""
    bare = tmp_path / "bare"
    bare.mkdir()
    for shard in range(5):
        data = bytearray(framed(b"abc") * 4)
        if shard in (1, 2):
            data[{1: 2, 2: 13}[shard]] ^= 1
        (bare / f"data-{shard:05d}-of-00005.tfrecord").write_bytes(data[: -1 if shard == 4 else 99])
    ran = shardctl("verify", "--files", "-d", bare, "-f", "json")
    assert (ran.exit_code, ran.stderr) == (1, "")
    found = {file["filename"][5:10]: file["kind"] for file in json.loads(ran.stdout)["files"]}
    assert found == {"00001": "header", "00002": "data", "00004": "cut"}
    for shard, code, said in (
        (0, 0, "every file holds what was counted"),
        (1, 1, "1 problem:"),
        (4, 1, ": cut off: "),
    ):
        file = bare / f"data-{shard:05d}-of-00005.tfrecord"
        ran = shardctl("verify", "--files", "-d", file)
        assert (ran.exit_code, ran.stderr, said in ran.stdout) == (code, "", True)
        assert "missing" not in ran.stdout
    refused(shardctl("verify", "--files", file), f"as in -d {file}")
    (bare / "data-00003-of-00005.tfrecord").unlink()
    ran = shardctl("verify", "--files", "-d", bare)
    assert ran.exit_code == 1
    assert "train: shard 3 of 5 is missing" in ran.stdout
    assert "4 problems:" in ran.stdout


def test_a_split_of_which_no_file_is_whole_is_not_passed_over(
    shardctl: Shardctl, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for split, fault in (("train", 0), ("val", 1)):
        data = bytearray(framed(b"abc") * 4)
        data[2] ^= fault
        (bare / f"toy-{split}-00000-of-00001.tfrecord").write_bytes(data)
    for splits in ([], ["val"]):
        ran = shardctl("verify", *splits, "--files", "-d", bare, "-f", "json")
        assert (ran.exit_code, ran.stderr) == (1, "")
        (file,) = json.loads(ran.stdout)["files"]
        assert (file["filename"], file["kind"]) == ("toy-val-00000-of-00001.tfrecord", "header")
    assert shardctl("verify", "train", "--files", "-d", bare).exit_code == 0


def bytes_of_records(folder: Path, num_files: int, num_records: int) -> Path:
    """Return a layout of links to one file of records of a byte."""
    file = folder / f"l-train.tfrecord-00000-of-{num_files:05d}"
    file.write_bytes(framed(b"a") * num_records)
    for shard in range(1, num_files):
        os.link(file, folder / f"l-train.tfrecord-{shard:05d}-of-{num_files:05d}")
    split = {"num_examples": num_files * num_records, "num_shards": num_files}
    layout = folder / "l.json"
    layout.write_text(json.dumps({"name": "l", "data_dir": ".", "splits": {"train": split}}))
    return layout


@pytest.mark.long
def test_an_interrupt_ends_the_reading_of_files_soon(tmp_path: Path) -> None:
    layout = bytes_of_records(tmp_path, 400, 1_000_000)  # which takes a minute to read
    with running_command("verify", "--files", "-d", layout, folder=tmp_path) as running:
        time.sleep(0.1)
        running.process.send_signal(signal.SIGINT)
        assert running.process.wait(timeout=10) == 130
        assert (running.stdout.read(), running.stderr.read()) == (b"", b"")


# `verify order.yaml`: the order of a snapshot, read by the real TensorFlow.


PIPELINE = ("--shuffle-seed", 3, "--buffer", 5, "--buffer-seed", 1, "--epochs", 2)


@pytest.fixture
def pinned(shardctl: Shardctl, built: Path) -> list[Any]:
    ran = shardctl("snapshot", "-d", built, *PIPELINE, "-o", "order.yaml")
    assert ran.exit_code == 0
    return ["verify", "order.yaml", "-d", built]


def sealed(change: dict[str, Any]) -> None:
    """Write the snapshot again with other values, and a checksum that fits."""
    document = yaml.safe_load(Path("order.yaml").read_text())
    for key, value in change.items():
        document[key] = {**document[key], **value} if isinstance(value, dict) else value
    for part in (document["tree"], *document["layout"]["splits"]):
        for words in WORDS:
            if words in part and part[words] != "even":
                part[words] = str(part[words]).split()
    document["checksum"] = checksum(document)
    Path("order.yaml").write_text(json.dumps(document))


def test_the_real_order_is_that_of_the_snapshot(
    tf: Any, tfds: Any, shardctl: Shardctl, pinned: list[Any]
) -> None:
    ran = shardctl(*pinned)
    assert (ran.exit_code, ran.stderr) == (0, "")
    _, order, read, written, files = ran.stdout.splitlines()
    assert order == "as order.yaml: 28 of 28 examples, read from files"
    assert read == f"read by TFDS {tfds.__version__} and TensorFlow {tf.__version__}"
    assert written.startswith(f"order.yaml was written for TensorFlow {ORDER_RULES.tensorflow}")
    assert files == "3 files hold what the metadata says"
    document = json.loads(shardctl(*pinned, "-f", "json").stdout)
    assert (document["equal"], document["snapshot"]) == (True, "order.yaml")
    assert document["written_with"]["tensorflow"] == ORDER_RULES.tensorflow


def test_a_hash_that_was_edited_is_a_difference(
    tf: Any, tfds: Any, shardctl: Shardctl, pinned: list[Any]
) -> None:
    leaf = "0" * 32
    sealed({"tree": {"digests": leaf}, "order": leaf})
    ran = shardctl(*pinned)
    assert ran.exit_code == 1
    assert "differs from order.yaml somewhere in positions 0 to 27" in ran.stdout
    first = json.loads(shardctl(*pinned, "-f", "json").stdout)["first_difference"]
    assert (first["position"], first["stop"], first["expected"]) == (0, 28, None)


def test_another_tensorflow_reads_another_order(
    tf: Any, tfds: Any, shardctl: Shardctl, pinned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = json.loads(shardctl("simulate", *PIPELINE, "-d", pinned[-1], "-f", "json").stdout)
    shuffle = tf.data.Dataset.shuffle

    def other(dataset: Any, buffer: int, seed: int, **more: Any) -> Any:
        return shuffle(dataset, buffer, seed=seed + 1, **more)

    monkeypatch.setattr(tf.data.Dataset, "shuffle", other)
    ran = shardctl(*pinned, "-f", "json")
    assert ran.exit_code == 1
    first = json.loads(ran.stdout)["first_difference"]
    assert first["expected"] == before["ids"][first["position"]] != first["found"]


def test_another_layout_than_the_snapshot_has(
    tf: Any, tfds: Any, shardctl: Shardctl, pinned: list[Any], tmp_path: Path
) -> None:
    other = build_dataset(tmp_path / "other", splits={"train": [5, 1, 3, 6], "test": [2]})
    ran = shardctl(*pinned[:3], other)
    assert ran.exit_code == 1
    assert "differs from order.yaml at position" in ran.stdout
    assert "changed since the snapshot: train: " in ran.stdout


def test_a_difference_beyond_what_was_read(tf: Any, shardctl: Shardctl) -> None:
    for last in (6, 7):
        layout = f"name: toy\nsplits: {{train: {{shard_lengths: [5, {last}, 3]}}}}\n"
        Path("toy.yaml").write_text(layout)
        shardctl("snapshot", "-d", "toy.yaml", "--cycle", 1, "-o", f"{last}.yaml")
    ran = shardctl("verify", "6.yaml", "--take", 4)
    assert ran.exit_code == 1
    assert "position 14, which was not read; --take 15 reads it" in ran.stdout
    assert "differs from 6.yaml at position 14" in shardctl("verify", "6.yaml").stdout


def test_what_verify_refuses_of_a_snapshot(shardctl: Shardctl, pinned: list[Any]) -> None:
    refused(shardctl(*pinned, "--cycle", 2), "a snapshot has its settings")
    refused(shardctl("verify", "none.yaml"), "none.yaml")
    plan = shardctl("plan", "train", "-d", pinned[-1], "-f", "json").stdout
    Path("plan.json").write_text(plan)
    refused(shardctl("verify", "plan.json"), "'plan.json' is a plan; ")


def test_what_is_neither_predicted_nor_known_is_not_called_equal(
    tf: Any, tfds: Any, shardctl: Shardctl, pinned: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hash that was edited, and a TensorFlow that reads another order than is predicted."""
    leaf = "0" * 32
    sealed({"tree": {"digests": leaf}, "order": leaf})
    shuffle = tf.data.Dataset.shuffle

    def other(dataset: Any, buffer: int, seed: int, **more: Any) -> Any:
        return shuffle(dataset, buffer, seed=seed + 1, **more)

    monkeypatch.setattr(tf.data.Dataset, "shuffle", other)
    ran = shardctl(*pinned)
    assert ran.exit_code == 1
    assert "as order.yaml: 0 of 28 examples" in ran.stdout
    assert "whether that is the order of the snapshot is unknown" in ran.stdout
