"""Errors about settings of shardctl.yaml point at the line; others are left as they are."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.metadata.project_file import NOWHERE, Project, SettingOrigins, located, read_project

TEXT = "read:\n  shuffle-seed: 1\n  cycle: auto\n  pass: 3\n"


@pytest.fixture
def config(tmp_path: Path) -> Project:
    path = tmp_path / "shardctl.yaml"
    path.write_text(TEXT)
    return read_project(path)


@pytest.mark.parametrize(
    ("error", "given", "line"),
    [
        (UsageError("--cycle auto needs --cpus N"), (), 3),
        (UnpredictableOrderError("--shuffle-seed and --pass-index 3"), (), 2),
        # A setting that nobody set is no subject, however early it is named.
        (UsageError("without --batch and --pass-index"), (), 4),
        (UsageError("--cycle or --to-hosts M"), (), 3),
        (UsageError("cycle=0: a number from 1 is needed"), (), 3),
        (UsageError("shuffle-seed: no such setting"), (), 2),
        (UsageError("--cycle auto needs --cpus N"), {"cpus"}, 3),
        # An option takes the place of the file, and what names no setting of it is left as it is.
        (UsageError("--cycle auto needs --cpus N"), {"cycle"}, None),
        (UsageError("--block and --cycle auto"), {"block"}, None),
        (UsageError("--consumed 3 of --cycle auto"), (), None),
        (UsageError("plain cycle"), (), None),
        (DatasetError("plain"), (), None),
        (UsageError("--batch alone"), (), None),
    ],
)
def test_what_the_file_states_is_pointed_at(
    config: Project, error: UsageError, given: Collection[str], line: int | None
) -> None:
    found = located(error, config, "read", given)
    assert type(found) is type(error)
    assert str(found) == (f"{config.path}:{line}: {error}" if line else str(error))


def test_a_line_that_nobody_knows_is_left_out(config: Project) -> None:
    error = UsageError("--cycle is odd")
    found = located(error, replace(config, text=b"read: {}\n"), "read")
    assert str(found) == f"{config.path}: --cycle is odd"


def test_the_first_name_that_has_a_line_is_the_place() -> None:
    origins = SettingOrigins(file="a/shardctl.yaml", lines={"block": 3, "epochs": 9})
    assert origins.place(["cycle", "epochs", "block"]) == ("a/shardctl.yaml", 9)
    assert origins.place(iter(["cycle"])) == (None, None)
    assert NOWHERE.place(["block"]) == (None, None)
