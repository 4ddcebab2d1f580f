"""Every setting in force, with the option or the line of shardctl.yaml that says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions
from shardctl.metadata.dataset_names import catalog_dataset
from shardctl.metadata.project_file import find_project
from shardctl.verbs.config.answer import Origin
from shardctl.verbs.config.command import all_in_force
from shardctl.verbs.lint.command import LintOptions


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file of settings in the working folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shardctl.yaml"
    path.write_text("dataset: mnist\nread:\n  cycle: 2\nlint:\n  hosts: 3\n  take: 9\n")
    return str(path)


def test_options_go_over_the_file_and_each_says_so(file: str) -> None:
    project = find_project(Path.cwd())
    reading = OrderOptions(block=4, shuffle_files=False)
    found = all_in_force(
        project,
        DatasetOptions(),
        reading,
        reading.resolved(project),
        LintOptions(num_hosts=8, evaluated=["test"], autocache=False),
        catalog_dataset("mnist"),
    )
    said = {item.name: (item.value, item.origin) for item in found}
    assert len(said) == len(found)

    def line(number: int) -> Origin:
        return Origin(source="file", file=file, line=number)

    def option(name: str) -> Origin:
        return Origin(source="option", by=name)

    assert said["dataset"] == ("mnist", line(1))
    assert said["read.cycle"] == (2, line(3))
    assert said["read.block"] == (4, option("--block"))
    assert said["read.shuffle_files"] == (False, option("--no-shuffle-files"))
    assert said["lint.hosts"] == (8, option("--hosts"))
    assert said["lint.take"] == (9, line(6))
    assert said["lint.eval"] == (["test"], option("--eval"))
    assert said["lint.autocache"] == (False, option("--no-autocache"))
    assert said["lint.fail_on"] == ("notice", Origin())
