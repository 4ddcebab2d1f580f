"""The order of today beside snapshots: datasets are read once, files written where they differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions
from shardctl.cli.options.today import Today
from shardctl.metadata.layouts import read_layout_file
from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import read_comparable
from shardctl.verbs.diff.command import Today
from tests.cli.conftest import Shardctl


def layout(name: str, lengths: list[int]) -> None:
    Path(f"{name}.yaml").write_text(
        f"name: {name}\nsplits: {{train: {{shard_lengths: {lengths}}}}}\n"
    )


def pinned(path: str) -> Snapshot:
    found = read_comparable(Path(path))
    assert isinstance(found, Snapshot)
    return found


def today(**settings: Any) -> Today:
    return Today(
        DatasetOptions(),
        OrderOptions(**settings),
        None,
        command=lambda path: f"accept {path}",
        from_here=True,
    )


@pytest.fixture
def reads(shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Three snapshots of two datasets; what is returned lists the layout files that are read."""
    layout("one", [3, 4])
    layout("two", [5, 6])
    for name, ref in (("a", "one"), ("b", "two"), ("c", "one")):
        shardctl("snapshot", "-d", f"{ref}.yaml", "-o", f"{name}.order.yaml")
    seen: list[Path] = []

    def counting(path: Path, **options: Any) -> Any:
        seen.append(path)
        return read_layout_file(path, **options)

    monkeypatch.setattr("shardctl.metadata.layouts.read_layout_file", counting)
    return seen


def test_each_finds_its_dataset_which_is_read_once(reads: list[Path]) -> None:
    now = today()
    for name in "abc":
        path = f"{name}.order.yaml"
        assert now.beside(pinned(path), path).diff.equal
    assert [path.name for path in reads] == ["one.yaml", "two.yaml"]


def test_a_dataset_that_is_chosen_is_that_of_all(reads: list[Path]) -> None:
    Path("shardctl.yaml").write_text("\ndataset: one.yaml\n")
    now = today()
    found = [now.beside(pinned(path), path) for path in ("b.order.yaml", "a.order.yaml")]
    assert [one.diff.equal for one in found] == [False, True]
    assert [path.name for path in reads] == ["one.yaml"]
    assert found[0].hints.origins.place(["dataset"]) == ("shardctl.yaml", 2)
    assert found[0].hints.update == "accept b.order.yaml"


def test_lines_are_those_of_settings_that_are_taken_from_the_file(reads: list[Path]) -> None:
    Path("shardctl.yaml").write_text("read:\n  block: 2\n  cycle: 3\n  file_order: x.txt\n")
    Path("x.txt").write_text("one-train.tfrecord-00001-of-00002\n")
    now = today(block=5, reverse=True)
    lines = now.beside(pinned("a.order.yaml"), "a.order.yaml").hints.origins.lines
    assert lines == {"cycle": 3}


def test_an_update_writes_what_differs(reads: list[Path]) -> None:
    before = Path("a.order.yaml").read_bytes()
    today().beside(pinned("a.order.yaml"), "a.order.yaml").update()
    assert Path("a.order.yaml").read_bytes() == before
    today(block=2).beside(pinned("a.order.yaml"), "a.order.yaml").update()
    now = pinned("a.order.yaml")
    assert (now.pipeline["block"], now.refs) == (2, ("one.yaml",))


@pytest.mark.parametrize(
    ("beside", "warned"),
    [
        ("read: {cycle: 2}\n", True),
        ("read: {cycle: 16}\n", False),  # as the file has it
        ("dataset: ../two.yaml\n", True),
        ("dataset: ../one.yaml\n", False),
        ("read: {cycle: nonsense}\n", False),
    ],
)
def test_a_shardctl_yaml_beside_the_file_that_is_not_read_is_said(
    beside: str, warned: bool, shardctl: Shardctl
) -> None:
    layout("one", [3, 4])
    layout("two", [5, 6])
    Path("job").mkdir()
    path = "job/a.order.yaml"
    shardctl("snapshot", "-d", "one.yaml", "-o", path)
    assert today().beside(pinned(path), path).warnings == ()
    Path("job/shardctl.yaml").write_text(beside)
    warnings = today().beside(pinned(path), path).warnings
    assert warnings == warned * (
        "job/shardctl.yaml is not read here, since settings come from the folder in which a "
        "command runs; run it in job to compare with what that file says",
    )
