"""Where settings and files are, for people and for GitHub."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.cli.options.shared import path_from_repository, setting_origins
from shardctl.metadata.project_file import Project, read_project


def test_a_path_is_named_from_its_repository_else_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "repository" / "a b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repository")
    assert path_from_repository(inner / "shardctl.yaml") == "a b/shardctl.yaml"
    monkeypatch.chdir(inner)
    assert path_from_repository(inner / "shardctl.yaml") == "shardctl.yaml"
    (tmp_path / ".git").mkdir()
    assert path_from_repository(inner / "shardctl.yaml") == "repository/a b/shardctl.yaml"


def test_a_path_that_cannot_be_looked_up_is_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "x" * 300 + "/order.yaml"
    assert path_from_repository(Path(long)) == long
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert path_from_repository(Path("order.yaml")) == "order.yaml"


def test_only_what_the_file_decides_has_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    path = tmp_path / "sub" / "shardctl.yaml"
    path.write_text("read:\n  block: 2\n  shuffle-seed: 1\ndataset: mnist\n")
    project = read_project(path)
    monkeypatch.chdir(tmp_path / "sub")
    for here, file in ((True, "shardctl.yaml"), (False, "sub/shardctl.yaml")):
        origins = setting_origins(project, lambda name: name != "block", from_here=here)
        assert (origins.file, origins.lines) == (file, {"shuffle_seed": 3, "dataset": 4})
    assert setting_origins(Project(), lambda name: True, from_here=True).lines == {}
