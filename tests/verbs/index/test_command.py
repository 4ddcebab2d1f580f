"""`shardctl index`, from the command line to what it writes."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Shardctl
from tests.golden import assert_answers
from tests.record_files import framed


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    for split, lengths in (("train", (3, 4, 5)), ("test", (2,))):
        for shard, length in enumerate(lengths):
            name = f"toy-{split}.tfrecord-{shard:05}-of-{len(lengths):05}"
            (folder / name).write_bytes(framed(*[b"x"] * length))
            os.utime(folder / name, (1, 1))
    return folder


def cut(data: Path, name: str) -> None:
    (file,) = data.glob(name)
    file.write_bytes(file.read_bytes()[:-1])


def test_a_layout_that_every_command_takes(shardctl: Shardctl, data: Path) -> None:
    layout = data.parent / "layout.yaml"
    ran = shardctl("index", data, "-o", layout)
    assert (ran.exit_code, ran.stdout) == (0, "")
    assert ran.stderr.startswith(
        f"wrote {layout}: 14 examples in 4 files of 2 splits\n4 files read"
    )
    document = yaml.safe_load(layout.read_text())
    assert document["dataset"]["data_dir"] == "data"
    assert [split["shard_lengths"] for split in document["splits"]] == [[3, 4, 5], [2]]
    plan = shardctl("plan", "train[3:5]", "-d", layout, "-f", "json")
    (instruction,) = json.loads(plan.stdout)["plans"][0]["file_instructions"]
    assert instruction["filename"] == "toy-train.tfrecord-00001-of-00003"
    assert shardctl("verify", "--files", "-d", layout).exit_code == 0
    before = layout.read_bytes()
    ran = shardctl("index", data, "-o", layout)
    assert "no file read, counts of 4 files are from the cache" in ran.stderr
    assert layout.read_bytes() == before


def test_a_broken_file_is_named_and_nothing_is_written(shardctl: Shardctl, data: Path) -> None:
    cut(data, "*train*-00001-*")
    cut(data, "*train*-00002-*")
    layout = data.parent / "layout.yaml"
    layout.write_text("before")
    for more in (["-o", layout], [], ["-f", "json"]):
        ran = shardctl("index", data, *more)
        assert (ran.exit_code, ran.stdout) == (1, "")
        line, way_out = ran.stderr.splitlines()
        assert "--keep-going" in way_out
        assert line.startswith("error: 'toy-train.tfrecord-00001-of-00003': record 3 at byte ")
    assert layout.read_text() == "before"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems know no such names")
def test_a_name_that_is_no_text_is_written_as_json_alone(shardctl: Shardctl, data: Path) -> None:
    odd = data / os.fsdecode(b"odd-\xff.tfrecord")
    odd.write_bytes(framed(b"record"))
    layout = data.parent / "layout.yaml"
    ran = shardctl("index", odd, "-o", layout)
    assert (ran.exit_code, layout.exists()) == (2, False)
    assert "is no UTF-8, so that YAML cannot say it" in ran.stderr
    layout = layout.with_suffix(".json")
    assert shardctl("index", odd, "-o", layout).exit_code == 0
    assert shardctl("index", "--check", layout).exit_code == 0


def test_keep_going_writes_what_is_whole_and_exits_with_1(shardctl: Shardctl, data: Path) -> None:
    cut(data, "*train*-00001-*")
    cut(data, "*test*")
    layout = data.parent / "layout.yaml"
    ran = shardctl("index", data, "--keep-going", "-o", layout)
    assert ran.exit_code == 1
    assert [line.split(": ")[0] for line in ran.stderr.splitlines()[:2]] == ["error"] * 2
    document = yaml.safe_load(layout.read_text())
    assert [split["shard_lengths"] for split in document["splits"]] == [[3, 5]]
    assert [(one["path"], one["byte"]) for one in document["broken"]] == [
        ("toy-train.tfrecord-00001-of-00003", 51),
        ("toy-test.tfrecord-00000-of-00001", 17),
    ]
    ran = shardctl("index", data, "--keep-going")
    assert ran.exit_code == 1
    assert "2 problems:" in ran.stdout


def test_what_a_layout_leaves_out_is_said_wherever_it_is_read(
    shardctl: Shardctl, data: Path
) -> None:
    layout = data.parent / "layout.yaml"
    cut(data, "toy-train*00001-of*")
    (data / "toy-train.tfrecord-00000-of-00003").unlink()
    shardctl("index", data, "-o", layout, "--keep-going")
    ran = shardctl("plan", "train", "-d", layout)
    assert ran.exit_code == 0
    assert ran.stderr.splitlines() == [
        "warning: train: shard 0 of 3 is missing (toy-train.tfrecord-*-of-*)",
        "warning: 1 broken file left out: 'toy-train.tfrecord-00001-of-00003'",
    ]
    whole = shardctl("plan", "test", "-d", data / "toy-test.tfrecord-00000-of-00001")
    assert (whole.exit_code, whole.stderr) == (0, "")


def test_splits_by_hand(shardctl: Shardctl, data: Path) -> None:
    arguments = ["--split", "a=*train*", "--split", "b=*test*", "--name", "mine"]
    ran = shardctl("index", data, *arguments, "-f", "json")
    assert ran.stderr == ""
    document = json.loads(ran.stdout)
    assert document["dataset"]["name"] == "mine"
    assert [split["name"] for split in document["splits"]] == ["a", "b"]


def test_what_changed_since(shardctl: Shardctl, data: Path) -> None:
    layout = data.parent / "layout.yaml"
    shardctl("index", data, "-o", layout)
    ran = shardctl("index", "--check", layout)
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert ran.stdout.splitlines()[1] == f"4 files, unchanged since {layout}"
    (data / "toy-test.tfrecord-00000-of-00001").unlink()
    ran = shardctl("index", "--check", layout, data, "-f", "json")
    assert ran.exit_code == 1
    (change,) = json.loads(ran.stdout)["changes"]
    assert (change["kind"], change["path"]) == ("vanished", "toy-test.tfrecord-00000-of-00001")


def test_the_layout_that_is_checked_is_not_replaced(shardctl: Shardctl, data: Path) -> None:
    layout = data.parent / "layout.yaml"
    shardctl("index", data, "-o", layout)
    before = layout.read_bytes()
    ran = shardctl("index", "--check", layout, "-o", layout)
    assert (ran.exit_code, layout.read_bytes()) == (2, before)
    assert "is the layout that is checked" in ran.stderr


def test_what_cannot_be_is_refused(
    shardctl: Shardctl, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data.parent)

    def answer(words: str) -> str:
        ran = shardctl("index", *shlex.split(words))
        assert (ran.exit_code, ran.stderr.count("\n")) == (2, 1)
        return ran.stderr.replace(str(data.parent), "/here")

    assert_answers(Path(__file__).parent / "golden" / "refused.txt", answer)
