"""Errors about settings of shardctl.yaml point at the line; others are left as they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.metadata.project_file import NOWHERE, Project, SettingOrigins, located, read_project
from tests.golden import assert_evaluated

TEXT = "read:\n  shuffle-seed: 1\n  cycle: auto\n  pass: 3\n"


@pytest.fixture
def config(tmp_path: Path) -> Project:
    path = tmp_path / "shardctl.yaml"
    path.write_text(TEXT)
    return read_project(path)


def test_what_the_file_states_is_pointed_at(config: Project) -> None:
    def at(error: UsageError, given: Collection[str]) -> str:
        found = located(error, config, "read", given)
        assert type(found) is type(error)
        return str(found).replace(str(config.path), "FILE")

    assert_evaluated(globals(), "pointed_at", at, DatasetError, UnpredictableOrderError)


def test_a_line_that_nobody_knows_is_left_out(config: Project) -> None:
    error = UsageError("--cycle is odd")
    found = located(error, replace(config, text=b"read: {}\n"), "read")
    assert str(found) == f"{config.path}: --cycle is odd"


def test_the_first_name_that_has_a_line_is_the_place() -> None:
    origins = SettingOrigins(file="a/shardctl.yaml", lines={"block": 3, "epochs": 9})
    assert origins.place(["cycle", "epochs", "block"]) == ("a/shardctl.yaml", 9)
    assert origins.place(iter(["cycle"])) == (None, None)
    assert NOWHERE.place(["block"]) == (None, None)
