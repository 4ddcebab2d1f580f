"""The commands that errors name: they install into this Python, and what the extras ask for."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from shardctl.base import install
from shardctl.base.install import REQUIREMENTS, to_install

_PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


def test_the_versions_are_those_of_the_extras() -> None:
    extras = _PROJECT["optional-dependencies"].values()
    assert {*REQUIREMENTS.values()} <= {one.split(";")[0] for extra in extras for one in extra}


def test_no_command_names_shardctl_itself() -> None:
    package = Path(install.__file__).parents[1]
    for file in (*package.rglob("*.py"), *package.rglob("*.md")):
        found = re.findall(r"pip install [^\n`]*\bshardctl\b[^\n`]*", file.read_text("utf-8"))
        # From a clone, a wheel file or a URL, never by a name that an index would have to know.
        assert [one for one in found if "://" not in one and ".whl" not in one] == [], file


def test_the_command_is_of_the_python_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shlex.split(to_install("pyarrow")) == [
        *(sys.executable, "-m", "pip", "install", "pyarrow>=15")
    ]
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert to_install("keras") == "python -m pip install keras"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert to_install("keras") == f"uv pip install --python {shlex.quote(sys.executable)} keras"
