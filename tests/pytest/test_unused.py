"""Which snapshots are called unused: those of which the tests that ran are enough to say so."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shardctl.pytest.checks import summary


def report(folder: Path, stem: str, used: list[str], **other: Any) -> Any:
    values = {"folder": str(folder), "stem": stem, "used": used, "written": [], "narrowed": False}
    outcome = other.pop("outcome", "passed")
    return SimpleNamespace(outcome=outcome, order_snapshots=values | other)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three snapshots, of two tests."""
    for name in ("test_a.yaml", "test_a.evaluation.yaml", "test_b.yaml"):
        tmp_path.joinpath(name).write_text("")
    return tmp_path


CASES: list[tuple[dict[str, Any], bool, list[str]]] = [
    ({}, True, ["test_a.evaluation.yaml", "test_b.yaml"]),
    ({"narrowed": True}, True, ["test_a.evaluation.yaml"]),
    ({}, False, ["test_a.evaluation.yaml"]),
    ({"outcome": "failed"}, True, ["test_b.yaml"]),
    ({"outcome": "skipped", "narrowed": True}, True, []),
]


@pytest.mark.parametrize(("how", "ended", "unused"), CASES)
def test_unused(folder: Path, how: dict[str, Any], ended: bool, unused: list[str]) -> None:
    lines = list(
        summary([report(folder, "test_a", ["test_a.yaml"], **how)], here=folder, ended=ended)
    )
    assert [line.strip() for line in lines[1:]] == unused


def test_what_was_written_is_said_first(folder: Path) -> None:
    used = ["test_a.yaml", "test_a.evaluation.yaml"]
    both = [
        report(folder, "test_a", used, written=used[1:]),
        report(folder, "test_b", ["test_b.yaml"]),
    ]
    assert list(summary(both, here=folder.parent, ended=True)) == [
        "1 order snapshot written:",
        f"  {folder.name}/test_a.evaluation.yaml",
    ]
