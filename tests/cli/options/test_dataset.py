"""The dataset options and the project lead to one dataset; a default is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.options.dataset import chosen_dataset, project_here
from shardctl.cli.options.shared import DatasetOptions
from shardctl.readers.project_file import Project
from tests.cli.conftest import Shardctl

LAYOUT = "name: {name}\nsplits: {{train: {{shard_lengths: [3, 4]}}}}\n"


@pytest.fixture(autouse=True)
def layouts(shardctl: Shardctl) -> None:
    """Layouts in the folder that commands run in."""
    for name in ("here", "there"):
        Path(f"{name}.yaml").write_text(LAYOUT.format(name=name))


def test_the_option_wins_over_the_environment_and_that_over_the_project(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project = Project(path=Path("shardctl.yaml").absolute(), dataset=("there.yaml",))
    given = DatasetOptions(dataset=["here.yaml"])
    assert chosen_dataset(DatasetOptions(), project).title == "there"
    monkeypatch.setenv("SHARDCTL_DATASET", "mnist")
    assert chosen_dataset(DatasetOptions(), project).title == "mnist:3.0.1"
    assert chosen_dataset(given, project).title == "here"


def test_a_default_is_said_and_a_fallback_is_not(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    assert chosen_dataset(DatasetOptions(), Project()).title == "imagenet2012:5.1.0"
    assert capsysbinary.readouterr().err == (
        b"no dataset chosen: using the built-in imagenet2012 layout; choose one with --dataset\n"
    )
    assert chosen_dataset(DatasetOptions(), Project(), fallback="here.yaml").title == "here"
    assert capsysbinary.readouterr().err == b""


def test_the_project_is_that_of_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert project_here() == Project()
    Path("shardctl.yaml").write_text("dataset: here.yaml\n")
    Path("inner").mkdir()
    monkeypatch.chdir("inner")
    assert project_here().dataset == ("here.yaml",)
    assert chosen_dataset(DatasetOptions(), project_here()).title == "here"
