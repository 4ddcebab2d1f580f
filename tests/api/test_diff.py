"""Snapshots, plans and settings files compared: as files, as values, with the order now."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.files.documents import to_yaml
from shardctl.saved.plan_file import plan_document
from shardctl.saved.snapshot_file import snapshot_json, snapshot_yaml
from shardctl.verbs.report.answer import NotShown

TOY = "name: toy\nsplits: {train: {shard_lengths: [6, 6, 6, 6]}, test: {shard_lengths: [5]}}\n"
OTHER = TOY.replace("[6, 6", "[5, 7")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("toy.yaml").write_text(TOY)
    Path("sub", "toy.yaml").write_text(TOY)
    Path("sub", "s.yaml").write_text("dataset: toy.yaml\nread: {block: 2}\n")
    Path("t.yaml").write_text("dataset: sub/toy.yaml\nread:\n  block: 3\n")
    for name, block in (("a", 2), ("b", 3)):
        taken = shardctl.snapshot("toy.yaml", "train", {"block": block}).snapshot
        Path(f"{name}.yaml").write_text("".join(snapshot_yaml(replace(taken, refs=("toy.yaml",)))))
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


def test_a_file_and_the_values_it_holds_are_the_same() -> None:
    taken = shardctl.snapshot("toy.yaml", "train", {"block": 2})
    sides: list[Any] = ["a.yaml", shardctl.read_snapshot("a.yaml"), taken, taken.snapshot]
    for one in sides:
        for other in sides:
            assert shardctl.diff(one, other).equal
        assert not shardctl.diff(one, "b.yaml").equal


def test_one_snapshot_is_compared_with_the_order_as_it_is_now(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shardctl.diff("a.yaml").equal
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "toy.yaml").write_text(OTHER)
    monkeypatch.chdir("elsewhere")  # the file says where its dataset is, from its own folder
    assert shardctl.diff(folder / "a.yaml").equal
    assert shardctl.diff(shardctl.read_snapshot("../a.yaml")).equal
    monkeypatch.chdir(folder)
    Path("toy.yaml").write_text(OTHER)
    changed = shardctl.diff("a.yaml")
    assert not changed.equal
    assert [cause.kind for cause in changed.causes] == ["shards"]  # type: ignore[union-attr]
    os.remove("toy.yaml")
    for given in ("a.yaml", shardctl.read_snapshot("a.yaml")):
        with pytest.raises(shardctl.DatasetError, match="say where the dataset is with --dataset"):
            shardctl.diff(given)


def test_what_is_said_of_the_order_now_counts() -> None:
    Path("other.yaml").write_text(OTHER)
    assert not shardctl.diff("a.yaml", dataset="other.yaml").equal
    assert not shardctl.diff("a.yaml", settings={"block": 3}).equal
    assert not shardctl.diff("a.yaml", spec="train[1:]").equal
    assert shardctl.diff("b.yaml", settings={"block": 3}, spec="train", dataset="toy.yaml").equal
    several: list[dict[str, Any]] = [{"dataset": "mnist"}, {"spec": "train"}, {"settings": {}}]
    for about in several:
        with pytest.raises(shardctl.UsageError, match="leave them out, or actual"):
            shardctl.diff("a.yaml", "b.yaml", **about)


def test_plans_are_compared() -> None:
    resumed, later = (shardctl.resume("toy.yaml", consumed=consumed) for consumed in (5, 6))
    Path("p5.yaml").write_text("".join(to_yaml(plan_document(resumed))))
    assert shardctl.diff("p5.yaml", resumed).equal
    assert shardctl.diff("p5.yaml", shardctl.read_plan("p5.yaml")).equal
    assert not shardctl.diff("p5.yaml", later).equal
    plans = [shardctl.plan("mnist", spec, hosts=2) for spec in ("train", "train", "train[1:]")]
    assert shardctl.diff(*plans[:2]).equal
    found = shardctl.diff(*plans[1:])
    assert isinstance(found, shardctl.PlansDiff)
    assert found.first is not None
    assert (found.equal, found.first.position) == (False, 0)


def test_two_kinds_and_a_plan_alone_are_refused() -> None:
    plan = shardctl.plan("mnist")
    with pytest.raises(shardctl.UsageError, match=r"'a.yaml' is a snapshot and 'actual' a plan"):
        shardctl.diff("a.yaml", plan)
    with pytest.raises(shardctl.UsageError, match="expected is a plan; give actual"):
        shardctl.diff(plan)
    with pytest.raises(shardctl.UsageError, match=r"^expected=3: the path of a snapshot"):
        shardctl.diff(3)  # type: ignore[arg-type]


# Two pipelines side by side.


def test_settings_files_read_datasets_relative_to_themselves(folder: Path) -> None:
    found = shardctl.compare_reports("sub/s.yaml", folder / "t.yaml")
    assert (found.a.label, found.a.spec, found.a.head.title) == ("sub/s.yaml", "train", "toy")
    assert not isinstance(found.diff, NotShown)
    assert found.diff.first is not None
    # Of four files of 6 in blocks of 2: 0 1 6 7 .., in blocks of 3: 0 1 2 6 ..
    first = found.diff.first
    assert (first.position, first.expected, first.actual) == (2, 6, 2)


def test_a_snapshot_in_json_or_yaml_needs_no_dataset() -> None:
    kept = shardctl.read_snapshot("a.yaml")
    Path("order.json").write_text("".join(snapshot_json(kept)))
    Path("line.json").write_text(json.dumps(json.loads(Path("order.json").read_text())))
    Path("toy.yaml").unlink()
    for other in ("order.json", "line.json"):
        found = shardctl.compare_reports("a.yaml", other)
        assert found.equal
        assert found.a.is_snapshot
        assert found.b.is_snapshot
        assert not isinstance(found.b.quality, NotShown)


def test_values_are_taken_as_well() -> None:
    kept = shardctl.read_snapshot("a.yaml")
    taken = shardctl.snapshot("sub/toy.yaml", "train", {"block": 2})
    pinned = shardctl.PinnedOrder(snapshot=kept, label="before")
    made = shardctl.report("sub/toy.yaml", "train", {"block": 3})
    assert shardctl.compare_reports(kept, taken).equal
    assert shardctl.compare_reports(pinned, "sub/s.yaml").a.label == "before"
    found = shardctl.compare_reports(taken, made)
    assert repr(found) == "<ReportComparison a, b: they differ>"
    assert found.to_html().startswith("<!DOCTYPE html>")
    assert "<iframe" in found._repr_html_()


def test_a_dataset_and_a_spec_go_over_settings_files() -> None:
    found = shardctl.compare_reports("sub/s.yaml", "t.yaml", dataset="mnist", spec="test")
    for side in found.sides:
        assert (side.head.title, side.spec) == ("mnist:3.0.1", "test")
    with pytest.raises(shardctl.UsageError, match="--dataset and --spec are about settings files"):
        shardctl.compare_reports("a.yaml", shardctl.read_snapshot("a.yaml"), dataset="mnist")


def test_settings_without_a_dataset_read_that_of_the_snapshot_beside_them() -> None:
    taken = shardctl.snapshot("mnist", "test", {"block": 2})
    Path("bare.yaml").write_text("read: {block: 2}\n")
    found = shardctl.compare_reports(taken, "bare.yaml")
    assert (found.b.head.title, found.b.spec) == ("mnist:3.0.1", "test")
    assert found.equal


def test_plans_are_refused_by_name() -> None:
    plan = shardctl.resume("sub/toy.yaml", "train", {"block": 2}, consumed=3)
    Path("plan.yaml").write_text("".join(to_yaml(plan_document(plan))))
    with pytest.raises(shardctl.UsageError, match=r"'plan\.yaml' is a plan to resume; snapshots"):
        shardctl.compare_reports("a.yaml", "plan.yaml")


@pytest.mark.parametrize(
    "left", ["# cut off\n", "{}", "null", "dataset:\n", "? kind\n: snapshot\n"]
)
def test_what_is_left_of_a_snapshot_is_no_settings_file(left: str) -> None:
    """Beside a snapshot, whose dataset settings without one would read."""
    Path("cut.yaml").write_text(left)
    for compare in (shardctl.diff, shardctl.compare_reports):
        with pytest.raises(shardctl.DatasetError, match=r"^cut\.yaml: "):
            compare("cut.yaml", "a.yaml")


@pytest.mark.parametrize("given", [3, None, ["a.yaml"], {}])
def test_what_is_no_side_is_refused(given: Any) -> None:
    with pytest.raises(shardctl.UsageError, match="b"):
        shardctl.compare_reports("a.yaml", given)
