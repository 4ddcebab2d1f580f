"""Two pipelines side by side, given as files and as values; files that cannot be are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.errors import ShardctlError
from shardctl.saved.plan_file import plan_yaml
from shardctl.saved.snapshot_file import snapshot_json, snapshot_yaml
from shardctl.verbs.report.question import NotShown

TOY = "name: toy\nsplits: {train: {shard_lengths: [6, 6, 6, 6]}, test: {shard_lengths: [5]}}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("sub", "toy.yaml").write_text(TOY)
    Path("sub", "a.yaml").write_text("dataset: toy.yaml\nread: {block: 2}\n")
    Path("b.yaml").write_text("dataset: sub/toy.yaml\nread:\n  block: 3\n")
    taken = shardctl.snapshot("sub/toy.yaml", "train", {"block": 2})
    Path("order.yaml").write_text("".join(snapshot_yaml(taken.snapshot)))
    return tmp_path


def test_settings_files_read_datasets_relative_to_themselves(folder: Path) -> None:
    found = shardctl.compare_reports("sub/a.yaml", folder / "b.yaml")
    assert (found.a.label, found.a.spec, found.a.head.title) == ("sub/a.yaml", "train", "toy")
    assert not isinstance(found.diff, NotShown)
    assert found.diff.first is not None
    # Of four files of 6 in blocks of 2: 0 1 6 7 .., in blocks of 3: 0 1 2 6 ..
    assert (found.diff.first.position, found.diff.first.expected, found.diff.first.actual) == (
        2,
        6,
        2,
    )


def test_a_snapshot_in_json_or_yaml_needs_no_dataset(folder: Path) -> None:
    kept = shardctl.read_snapshot("order.yaml")
    Path("order.json").write_text("".join(snapshot_json(kept)))
    Path("line.json").write_text(json.dumps(json.loads(Path("order.json").read_text())))
    Path("sub", "toy.yaml").unlink()
    for other in ("order.json", "line.json"):
        found = shardctl.compare_reports("order.yaml", other)
        assert found.equal
        assert found.a.is_snapshot
        assert found.b.is_snapshot
        assert not isinstance(found.b.quality, NotShown)


def test_values_are_taken_as_well(folder: Path) -> None:
    kept = shardctl.read_snapshot("order.yaml")
    taken = shardctl.snapshot("sub/toy.yaml", "train", {"block": 2})
    pinned = shardctl.PinnedOrder(snapshot=kept, label="before")
    made = shardctl.report("sub/toy.yaml", "train", {"block": 3})
    assert shardctl.compare_reports(kept, taken).equal
    assert shardctl.compare_reports(pinned, "sub/a.yaml").a.label == "before"
    found = shardctl.compare_reports(taken, made)
    assert repr(found) == "<ReportComparison a, b: they part>"
    assert found.to_html().startswith("<!DOCTYPE html>")
    assert "<iframe" in found._repr_html_()


def test_a_dataset_and_a_spec_go_over_settings_files(folder: Path) -> None:
    found = shardctl.compare_reports(
        "sub/a.yaml", "b.yaml", dataset="mnist", spec="test", evaluated="train", hosts=2
    )
    for side in found.sides:
        assert (side.head.title, side.spec) == ("mnist:3.0.1", "test")
        assert not isinstance(side.evaluation, NotShown)
        assert side.evaluation.total == 60_000
    with pytest.raises(shardctl.UsageError, match="--dataset and --spec are about settings files"):
        shardctl.compare_reports(
            "order.yaml", shardctl.read_snapshot("order.yaml"), dataset="mnist"
        )


def test_settings_without_a_dataset_read_that_of_the_snapshot_beside_them(folder: Path) -> None:
    taken = shardctl.snapshot("mnist", "test", {"block": 2})
    Path("bare.yaml").write_text("read: {block: 2}\n")
    found = shardctl.compare_reports(taken, "bare.yaml")
    assert (found.b.head.title, found.b.spec) == ("mnist:3.0.1", "test")
    assert found.equal


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "bad.yaml is empty; it should hold a snapshot or settings"),
        ("dataset: [", "bad.yaml"),
        ("dataset: nowhere/at.yaml\n", "bad.yaml: no file or folder 'nowhere/at.yaml'"),
        ("colour: red\n", "bad.yaml:1: unknown key 'colour'"),
        ("dataset: mnist\nread:\n  cycle: 0\n", "bad.yaml:3: cycle=0: a number from 1"),
        ("dataset: mnist\nread:\n  colour: 0\n", "bad.yaml:3: colour: no such setting"),
        ("dataset: mnist\nread:\n  cpus: 3\n", "bad.yaml:3: --cpus"),
        ("kind: layout\n", "bad.yaml: kind 'layout' is not compared"),
        ("format_version: 1\n", "bad.yaml: no kind"),
        ("format_version: 1\nkind: snapshot\nspec: tr", "bad.yaml: "),
        ("<<<<<<< a\nkind: snapshot\n", "bad.yaml holds the marks of a merge conflict"),
    ],
)
def test_a_file_that_is_broken_is_named_with_the_rule(folder: Path, text: str, words: str) -> None:
    Path("bad.yaml").write_text(text)
    for files in (("bad.yaml", "b.yaml"), ("b.yaml", "bad.yaml")):
        with pytest.raises(ShardctlError) as caught:
            shardctl.compare_reports(*files)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_dataset_that_refuses_the_settings_is_named_with_the_line(folder: Path) -> None:
    Path("sorted.yaml").write_text(TOY + "ordered: true\n")
    Path("c.yaml").write_text("dataset: sorted.yaml\nread:\n  cycle: 4\n")
    with pytest.raises(ShardctlError, match=r"^c.yaml:3: .*--cycle 4"):
        shardctl.compare_reports("b.yaml", "c.yaml")
    with pytest.raises(ShardctlError, match=r"^c.yaml: .*'val'"):
        shardctl.compare_reports("order.yaml", "c.yaml", spec="val")


def test_plans_are_refused_by_name(folder: Path) -> None:
    plan = shardctl.resume("sub/toy.yaml", "train", {"block": 2}, consumed=3)
    Path("plan.yaml").write_text("".join(plan_yaml(plan)))
    with pytest.raises(shardctl.UsageError, match=r"'plan\.yaml' is a plan to resume; snapshots"):
        shardctl.compare_reports("order.yaml", "plan.yaml")


@pytest.mark.parametrize("other", ["order.yaml", "sub/../order.yaml", "link.yaml"])
def test_one_file_is_refused(folder: Path, other: str) -> None:
    os.symlink("order.yaml", "link.yaml")
    with pytest.raises(shardctl.UsageError, match="are one file"):
        shardctl.compare_reports("order.yaml", other)


@pytest.mark.parametrize("given", [3, None, ["order.yaml"], {}])
def test_what_is_no_side_is_refused(folder: Path, given: Any) -> None:
    with pytest.raises(shardctl.UsageError, match="b"):
        shardctl.compare_reports("order.yaml", given)
