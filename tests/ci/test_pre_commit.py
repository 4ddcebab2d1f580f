"""The hooks for pre-commit, run by pre-commit from a clone."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.children import run_command, write_shardctl

_REPOSITORY = Path(__file__).parents[2]
_SETTINGS = "shuffle_seed: 1, buffer: 40, buffer_seed: 2, block: 4"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("pre_commit") is None or shutil.which("git") is None,
        reason="pre-commit is not installed",
    ),
]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an order that is pinned, whose hooks are cloned from another one."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    programs = tmp_path / "bin"
    programs.mkdir()
    write_shardctl(programs / "shardctl")
    (tmp_path / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    hooks = tmp_path / "shardctl"
    hooks.mkdir()
    shutil.copy(_REPOSITORY / ".pre-commit-hooks.yaml", hooks)
    revision = committed(hooks)

    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "toy.yaml").write_text("splits: {train: {shard_lengths: [30, 40, 50]}}\n")
    (folder / "notes.txt").write_text("")
    read_with(folder, cycle=2)
    assert run_command("snapshot", "train", "-o", "order.yaml", folder=folder).code == 0
    (folder / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: file://{hooks}\n  rev: {revision}\n"
        "  hooks:\n  - id: shardctl-diff\n  - id: shardctl-lint\n"
    )
    committed(folder)
    return folder


def git(folder: Path, *arguments: str) -> str:
    ran = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


def committed(folder: Path) -> str:
    """Commit all files of a new repository, and return the commit."""
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "All of it")
    return git(folder, "rev-parse", "HEAD")


def read_with(folder: Path, *, cycle: int) -> None:
    text = f"dataset: toy.yaml\nread: {{{_SETTINGS}, cycle: {cycle}}}\n"
    (folder / "shardctl.yaml").write_text(text)


def pre_commit(folder: Path) -> tuple[int, str]:
    """Run the hooks on what is staged; return the exit code and what people see."""
    git(folder, "add", ".")
    ran = subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--color", "never"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return ran.returncode, ran.stdout


def status(said: str) -> dict[str, str]:
    """Return what became of each hook, by the first words of its name."""
    found = (line.split(".", 1) for line in said.splitlines() if "..." in line)
    return {name: rest.strip(".") for name, rest in found}


_DIFF = "the order of every snapshot is still the same"
_LINT = "the settings of the pipeline are sound"


def test_a_changed_order_stops_the_commit_and_says_why(project: Path) -> None:
    read_with(project, cycle=3)
    code, said = pre_commit(project)
    assert (code, status(said)) == (1, {_DIFF: "Failed", _LINT: "Passed"})
    assert re.search(
        r"^order\.yaml and the current order first differ at position \d+ of 120$", said, re.M
    )
    assert "because:\n  cycle: 2 became 3 (shardctl.yaml:2)\n" in said
    assert "\n  shardctl diff order.yaml --update\n" in said

    # As it says: the order is accepted, in the commit that changes it.
    run_command("diff", "--each", "order.yaml", "--update", folder=project)
    assert pre_commit(project)[0] == 0


def test_findings_of_lint_stop_the_commit(project: Path) -> None:
    (project / "shardctl.yaml").write_text("dataset: toy.yaml\n")
    code, said = pre_commit(project)
    assert code == 1
    assert status(said)[_LINT] == "Failed"
    assert "SC017 warning: training examples that nothing shuffles" in said


def test_hooks_run_for_the_files_that_decide_about_orders(project: Path) -> None:
    (project / "notes.txt").write_text("another line\n")
    code, said = pre_commit(project)
    assert code == 0
    assert set(status(said).values()) == {"(no files to check)Skipped"}
    (project / "toy.yaml").write_text("splits: {train: {shard_lengths: [30, 40, 51]}}\n")
    code, said = pre_commit(project)
    assert (code, status(said)) == (1, {_DIFF: "Failed", _LINT: "Passed"})
    assert "51" in said
