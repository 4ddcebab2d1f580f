"""Errors about settings of shardctl.yaml point at the line; others are left as they are."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.core.phrase import Argument, phrase
from shardctl.errors import DatasetError, UnpredictableOrderError, UsageError
from shardctl.readers.project_file import Project, read_project
from shardctl.rendering.text.setting_origins import located

TEXT = "read:\n  shuffle-seed: 1\n  cycle: auto\n  pass: 3\n"


@pytest.fixture
def config(tmp_path: Path) -> Project:
    path = tmp_path / "shardctl.yaml"
    path.write_text(TEXT)
    return read_project(path)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            UsageError(phrase("{cycle=auto} needs {cpus=N}")),
            ":3: read.cycle: auto needs read.cpus: N",
        ),
        (
            UnpredictableOrderError(phrase("{shuffle_seed} and {pass_index!}", pass_index=3)),
            ":2: read.shuffle_seed and read.pass: 3",
        ),
        # A setting that nobody set is no subject, however early it is named.
        (
            UsageError(phrase("without {batch} {pass_index}")),
            ":4: read.pass: without read.batch read.pass",
        ),
        (UsageError(phrase("{cycle} or {to_hosts=M}")), ":3: read.cycle or --to-hosts M"),
        (
            UsageError(phrase("{}", Argument("shuffle-seed", 1, given=True))),
            ":2: read.shuffle-seed: 1",
        ),
    ],
)
def test_what_the_file_states_is_pointed_at(
    config: Project, error: UsageError, message: str
) -> None:
    found = located(error, config, "read")
    assert type(found) is type(error)
    assert str(found) == f"{config.path}{message}"


@pytest.mark.parametrize(
    "error",
    [
        UsageError("plain {cycle}"),
        DatasetError("plain"),
        UsageError(phrase("{batch} alone")),
        UsageError(phrase("{consumed=3} of {cycle=auto}")),  # an option comes first
        UsageError(phrase("{block} and {cycle=auto}")),  # here, too: it was given
    ],
)
def test_other_errors_are_left_as_they_are(config: Project, error: UsageError) -> None:
    assert located(error, config, "read", {"block"}) is error


def test_an_option_takes_the_place_of_the_file(config: Project) -> None:
    error = UsageError(phrase("{cycle=auto} needs {cpus=N}"))
    assert located(error, config, "read", {"cycle"}) is error
    found = located(error, config, "read", {"cpus"})
    assert str(found) == f"{config.path}:3: read.cycle: auto needs --cpus N"


def test_a_line_that_nobody_knows_is_left_out(config: Project) -> None:
    error = UsageError(phrase("{cycle} is odd"))
    found = located(error, replace(config, text=b"read: {}\n"), "read")
    assert str(found) == f"{config.path}: read.cycle is odd"
