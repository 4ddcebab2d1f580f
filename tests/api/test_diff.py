"""Snapshots and plans compared as files, as values, and with the order as it is now."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl import ReadSettings
from shardctl.cli.main import main
from shardctl.saved.snapshot_file import snapshot_yaml
from shardctl.verbs.diff.answer import diff as compare

TOY = "name: toy\nsplits: {train: {shard_lengths: [6, 6, 6, 6]}}\n"


def run(*arguments: str) -> None:
    """Run a command in the working folder."""
    with contextlib.suppress(SystemExit):
        main(list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.yaml").write_text(TOY, "utf-8")
    run("snapshot", "train", "-d", "toy.yaml", "-o", "a.yaml", "--block", "2")
    run("snapshot", "train", "-d", "toy.yaml", "-o", "b.yaml", "--block", "3")
    return tmp_path


def test_files_are_compared_as_the_command_does(folder: Path) -> None:
    found = shardctl.diff("a.yaml", folder / "b.yaml")
    assert isinstance(found, shardctl.Diff)
    assert not found.equal
    # Of four files of 6 in blocks of 2: 0 1 6 7 .., in blocks of 3: 0 1 2 6 ..
    assert found.first is not None
    assert (found.first.position, found.first.expected, found.first.actual) == (2, 6, 2)
    assert [cause.name for cause in found.causes] == ["block"]
    assert shardctl.diff("a.yaml", "a.yaml").equal
    assert (found.expected.label, found.actual.label) == ("a.yaml", str(folder / "b.yaml"))


def test_a_file_and_the_values_it_holds_are_the_same(folder: Path) -> None:
    taken = shardctl.snapshot("toy.yaml", "train", ReadSettings(block=2))
    sides: list[Any] = ["a.yaml", shardctl.read_snapshot("a.yaml"), taken, taken.snapshot]
    for one in sides:
        for other in sides:
            assert shardctl.diff(one, other).equal
        assert not shardctl.diff(one, "b.yaml").equal


def test_one_snapshot_is_compared_with_the_order_as_it_is_now(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shardctl.diff("a.yaml").equal
    monkeypatch.chdir("/")  # the file says where its dataset is, from its own folder
    assert shardctl.diff(folder / "a.yaml").equal
    monkeypatch.chdir(folder)
    (folder / "toy.yaml").write_text(TOY.replace("[6, 6", "[5, 7"), "utf-8")
    changed = shardctl.diff("a.yaml")
    assert not changed.equal
    assert [cause.kind for cause in changed.causes] == ["shards"]  # type: ignore[union-attr]
    os.remove("toy.yaml")
    with pytest.raises(shardctl.DatasetError, match="say where the dataset is with --dataset REF"):
        shardctl.diff("a.yaml")


def test_a_snapshot_that_was_read_finds_its_dataset_and_no_other_of_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = folder / "elsewhere"
    here.mkdir()
    (here / "toy.yaml").write_text(TOY.replace("[6, 6", "[5, 7"), "utf-8")
    monkeypatch.chdir(here)
    assert shardctl.diff(shardctl.read_snapshot("../a.yaml")).equal
    os.remove("../toy.yaml")
    with pytest.raises(shardctl.DatasetError, match="say where the dataset is with --dataset REF"):
        shardctl.diff(shardctl.read_snapshot("../a.yaml"))


def test_what_is_said_of_the_order_now_counts(folder: Path) -> None:
    (folder / "other.yaml").write_text(TOY.replace("[6, 6", "[5, 7"), "utf-8")
    assert not shardctl.diff("a.yaml", dataset="other.yaml").equal
    assert not shardctl.diff("a.yaml", settings={"block": 3}).equal
    assert not shardctl.diff("a.yaml", spec="train[1:]").equal
    assert shardctl.diff("b.yaml", settings={"block": 3}, spec="train", dataset="toy.yaml").equal
    several: list[dict[str, Any]] = [{"dataset": "mnist"}, {"spec": "train"}, {"settings": {}}]
    for about in several:
        with pytest.raises(shardctl.UsageError, match="leave them out, or actual"):
            shardctl.diff("a.yaml", "b.yaml", **about)


def test_plans_are_compared(folder: Path) -> None:
    run("resume", "train", "-d", "toy.yaml", "--consumed", "5", "-o", "p5.yaml")
    run("plan", "train[:9]", "-d", "toy.yaml", "-f", "json", "-o", "plans.json")
    resumed = shardctl.resume("toy.yaml", consumed=5)
    assert shardctl.diff("p5.yaml", resumed).equal
    assert shardctl.diff("p5.yaml", shardctl.read_plan("p5.yaml")).equal
    other = shardctl.diff("p5.yaml", shardctl.resume("toy.yaml", consumed=6))
    assert isinstance(other, shardctl.PlansDiff)
    assert not other.equal


def test_plans_of_a_spec_are_compared() -> None:
    plans = [shardctl.plan("mnist", spec, hosts=2) for spec in ("train", "train", "train[1:]")]
    assert shardctl.diff(*plans[:2]).equal
    found = shardctl.diff(*plans[1:])
    assert isinstance(found, shardctl.PlansDiff)
    assert found.first is not None
    assert found.first.position == 0


def test_two_kinds_and_a_plan_alone_are_refused(folder: Path) -> None:
    plan = shardctl.plan("mnist")
    with pytest.raises(shardctl.UsageError, match=r"'a.yaml' is a snapshot and 'actual' a plan"):
        shardctl.diff("a.yaml", plan)
    with pytest.raises(shardctl.UsageError, match="expected is a plan; give actual"):
        shardctl.diff(plan)
    with pytest.raises(shardctl.UsageError, match=r"^expected=3: the path of a snapshot"):
        shardctl.diff(3)  # type: ignore[arg-type]


def test_a_file_that_was_written_of_a_value_is_compared(folder: Path) -> None:
    taken = shardctl.snapshot("mnist", "test")
    Path("mnist.yaml").write_text("".join(snapshot_yaml(taken.snapshot)), "utf-8")
    assert shardctl.diff("mnist.yaml").equal
    pinned = shardctl.PinnedOrder(snapshot=taken.snapshot, label="then", live=taken.live)
    assert shardctl.diff("mnist.yaml", pinned) is not None
    assert compare(pinned, pinned).equal
