"""Completion scripts where the wheel puts them: shells find them without a line in any rc file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.cli.completion.terminal import terminal

_REPOSITORY = Path(__file__).parents[3]
_BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder into which shardctl was installed as `pip install --user` does, in .local."""
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))
    shared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["shared-data"]
    for source, installed in shared.items():
        file = tmp_path / ".local" / installed
        file.parent.mkdir(parents=True)
        shutil.copy(_REPOSITORY / source, file)
    program = tmp_path / ".local" / "bin" / "shardctl"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m shardctl "$@"\n')
    program.chmod(0o755)
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    path = f"{home}/.local/bin:{os.environ['PATH']}"
    return {**kept, "HOME": str(home), "PATH": path, "PYTHONPATH": str(_REPOSITORY)}


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


@pytest.mark.long
def test_bash_completion_finds_the_script(home: Path) -> None:
    needs("bash")
    if not _BASH_COMPLETION.exists():
        pytest.skip("bash-completion is not installed")
    setup = f"source {_BASH_COMPLETION}"  # which /etc/bash.bashrc or /etc/profile.d does
    with terminal("bash", folder=home, environment=environment(home), setup=setup) as bash:
        assert bash.after_tab("shardctl pla") == "shardctl plan "
        assert bash.after_tab("shardctl plan -d mnist 'tr") == "shardctl plan -d mnist 'train' "


@pytest.mark.long
def test_zsh_finds_the_script(home: Path) -> None:
    """Where it looks without a line is /usr/local/share, which no test writes into."""
    needs("zsh")
    setup = f"fpath=({home}/.local/share/zsh/site-functions $fpath); autoload -U compinit; compinit"
    with terminal("zsh", folder=home, environment=environment(home), setup=f"{setup} -u") as zsh:
        assert zsh.after_tab("shardctl pla") == "shardctl plan "
        assert zsh.after_tab("shardctl plan -d mnist tr") == "shardctl plan -d mnist train "
        # The alias of the script is known from the first TAB on.
        zsh.run("shardctl plan train[40:]+test -d mnist >plan.txt")
    assert "train[40:]+test in mnist" in (home / "plan.txt").read_text("utf-8")


@pytest.mark.long
def test_fish_finds_the_script(home: Path) -> None:
    needs("fish")
    ran = subprocess.run(
        ["fish", "-c", "complete -C 'shardctl plan -d mnist tr'"],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.partition("\t")[0] for line in ran.stdout.splitlines()] == ["train"]
