"""What a shardctl.yaml states: settings by their names, lists that are read, paths from here."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.api.settings_file import listed_files, stated_settings
from shardctl.errors import UsageError
from shardctl.metadata.project_file import Project, read_project


def project(text: str, folder: str = ".") -> Project:
    Path(folder).mkdir(exist_ok=True)
    path = Path(folder, "shardctl.yaml")
    path.write_text(text)
    return read_project(path)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_settings_are_arguments_by_any_of_their_names() -> None:
    assert stated_settings(project("read: {shuffle-seed: 3, batch_size: 8}\n")) == {
        "shuffle_seed": 3,
        "batch": 8,
    }
    assert stated_settings(Project()) == {}


def test_a_list_of_files_is_read_beside_the_file() -> None:
    Path("sub").mkdir()
    Path("sub", "order.txt").write_text("# first\nb\n\na\n")
    stated = stated_settings(project("read: {file_order: order.txt}\n", "sub"))
    assert stated == {"file_order": ("b", "a")}
    assert listed_files(Path("stdin"), b"c\n") == ("c",)
    with pytest.raises(UsageError, match="names no files"):
        listed_files(Path("stdin"), b"# nothing\n")


def test_paths_in_stages_lead_from_here() -> None:
    Path("sub").mkdir()
    Path("sub", "toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [3]}}\n")
    stages = "stages: [{read: {spec: train, data: toy.yaml}}, {batch: 2}]\n"
    made = stated_settings(project(f"read:\n  {stages}", "sub"))["stages"]
    assert made.source.data == "sub/toy.yaml"


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(UsageError, match="colour"):
        stated_settings(project("read: {colour: red}\n"))
