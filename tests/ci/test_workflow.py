"""The workflow and the action: what their schemas, and careful readers, want of them."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from shardctl.base.tfds_rules import LINES

_REPOSITORY = Path(__file__).parents[2]
_GITHUB = _REPOSITORY / ".github"
_FILES = {
    "workflows": _GITHUB / "workflows" / "ci.yml",
    "actions": _GITHUB / "actions" / "order" / "action.yml",
}
_WORKFLOW = yaml.safe_load(_FILES["workflows"].read_text("utf-8"))


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec("check_jsonschema") is None, reason="needs check-jsonschema"
)
@pytest.mark.parametrize("kind", _FILES)
def test_they_are_what_the_schema_says(kind: str) -> None:
    schema = f"vendor.github-{kind}"
    ran = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, _FILES[kind]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "ok -- validation done")


@pytest.mark.parametrize("kind", _FILES)
def test_actions_of_others_are_pinned_to_a_commit(kind: str) -> None:
    used = re.findall(r"uses: (\S+)(.*)", _FILES[kind].read_text("utf-8"))
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_the_workflow_may_read_and_ends() -> None:
    assert _WORKFLOW["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 45 for job in _WORKFLOW["jobs"].values())
    steps = [step for job in _WORKFLOW["jobs"].values() for step in job["steps"]]
    assert not [step for step in steps if "${{" in step.get("run", "")]


def test_it_runs_every_python_that_is_claimed() -> None:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    named = "Programming Language :: Python :: "
    claimed = [one.removeprefix(named) for one in project["classifiers"] if one.startswith(named)]
    assert _WORKFLOW["jobs"]["check"]["strategy"]["matrix"]["python"] == claimed


def test_it_tries_lines_of_tensorflow_that_are_known() -> None:
    matrix = _WORKFLOW["jobs"]["tensorflow"]["strategy"]["matrix"]
    known = [line.name for line in LINES]
    assert matrix["line"] == [known[0], known[-2]]  # all other jobs have the last
