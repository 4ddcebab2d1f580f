"""The GitHub action: its steps, run as the runner runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.children import run_command, write_program, write_shardctl
from tests.draw.github_runner import as_github_reads

_REPOSITORY = Path(__file__).parents[2]
_FOLDER = _REPOSITORY / ".github" / "actions" / "order"
_ACTION = yaml.safe_load((_FOLDER / "action.yml").read_text("utf-8"))
_STEPS = {step["name"]: step for step in _ACTION["runs"]["steps"]}
_SPLITS = "splits: {train: {shard_lengths: [30, 40, 50]}}\n"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="bash runs the steps")


class Ran(NamedTuple):
    """What a step did: its exit code, its log, its outputs and its part of the summary."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str


def put_in(text: str, inputs: dict[str, str]) -> str:
    """Return text with the expressions of the action replaced, as the runner does it."""
    known = {f"inputs.{name}": value for name, value in inputs.items()}
    known["github.action_path"] = str(_FOLDER)
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known[found[1]], text)


def run_step(name: str, folder: Path, programs: Path, **given: str) -> Ran:
    """Run a step in a workspace; names of inputs have `_` for `-`."""
    asked = {key.replace("_", "-"): value for key, value in given.items()}
    assert asked.keys() <= _ACTION["inputs"].keys()
    inputs = {key: asked.get(key, one["default"]) for key, one in _ACTION["inputs"].items()}
    step = _STEPS[name]
    script = programs / "step.sh"
    script.write_text(step["run"])
    files = {key: programs / key for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    ran = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
        cwd=folder / put_in(step.get("working-directory", "."), inputs),
        env={
            **os.environ,
            **{key: put_in(value, inputs) for key, value in step["env"].items()},
            **{key: str(file) for key, file in files.items()},
            "PATH": f"{programs}:{os.environ['PATH']}",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(folder),
            "CI": "true",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    written = files["GITHUB_OUTPUT"].read_text().splitlines()
    return Ran(
        code=ran.returncode,
        log=ran.stdout + ran.stderr,
        outputs=dict(line.split("=", 1) for line in written),
        summary=files["GITHUB_STEP_SUMMARY"].read_text(),
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    write_shardctl(tmp_path / "bin" / "shardctl")
    return tmp_path / "bin"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two snapshots."""
    folder = tmp_path_factory.mktemp("pinned")
    (folder / "orders").mkdir()
    (folder / "toy.yaml").write_text(f"name: toy\n{_SPLITS}")
    read_with(folder, cycle=2)
    assert run_command("snapshot", "train", "-o", "order.yaml", folder=folder).code == 0
    shutil.copy(folder / "order.yaml", folder / "orders" / "a b.yaml")
    return folder


@pytest.fixture
def project(tmp_path: Path, pinned: Path) -> Path:
    return Path(shutil.copytree(pinned, tmp_path / "project"))


def read_with(folder: Path, *, cycle: int) -> None:
    settings = f"shuffle_seed: 1, buffer: 40, buffer_seed: 2, block: 4, cycle: {cycle}"
    (folder / "shardctl.yaml").write_text(f"dataset: toy.yaml\nread: {{{settings}}}\n")


def said_to_github(log: str) -> list[tuple[str, dict[str, str], str]]:
    return [as_github_reads(line) for line in log.splitlines() if line.startswith("::")]


@pytest.mark.long
def test_the_same_order_passes(project: Path, programs: Path) -> None:
    ran = run_step("Compare and lint", project, programs)
    assert (ran.code, ran.outputs, said_to_github(ran.log)) == (0, {"changed": "false"}, [])
    assert "### shardctl diff\n\n    order.yaml matches the current order" in ran.summary
    assert "### shardctl lint\n\n" in ran.summary


@pytest.mark.long
def test_another_order_fails_with_annotations_and_a_summary(project: Path, programs: Path) -> None:
    read_with(project, cycle=3)
    ran = run_step("Compare and lint", project, programs, snapshots="order.yaml\norders/*.yaml\n")
    assert (ran.code, ran.outputs) == (1, {"changed": "true"})
    told = said_to_github(ran.log)
    assert [level for level, _, _ in told] == ["error", "error"]
    assert all(where["file"] == "shardctl.yaml" for _, where, _ in told)
    assert "cycle: 2 became 3" in told[0][2]
    assert "    order.yaml and the current order first differ at position" in ran.summary
    assert "    orders/a b.yaml and the current order first differ" in ran.summary


@pytest.mark.slow
def test_what_lint_finds_fails_without_a_changed_order(project: Path, programs: Path) -> None:
    (project / "shardctl.yaml").write_text("dataset: toy.yaml\n")
    ran = run_step("Compare and lint", project, programs, snapshots="")
    assert (ran.code, ran.outputs) == (1, {"changed": "false"})
    assert said_to_github(ran.log)[0][1]["title"] == "SC017"
    assert "### shardctl diff" not in ran.summary
    assert run_step("Compare and lint", project, programs, snapshots="", lint="false").code == 0


@pytest.mark.slow
def test_a_snapshot_that_is_missing_is_trouble(project: Path, programs: Path) -> None:
    read_with(project, cycle=3)
    before = (project / "order.yaml").read_bytes()
    missing = ["nothing.yaml", "none/*.yaml", "--update"]  # not an option here
    asked = f"order.yaml {' '.join(missing)}"
    ran = run_step("Compare and lint", project, programs, snapshots=asked, lint="false")
    assert (ran.code, ran.outputs) == (2, {"changed": "false"})
    assert [f"{name} was not checked" in ran.log for name in missing] == [True, True, True]
    assert (project / "order.yaml").read_bytes() == before


@pytest.mark.slow
def test_it_works_in_another_folder(project: Path, programs: Path) -> None:
    asked = {"working_directory": "project", "lint": ""}
    assert run_step("Compare and lint", project.parent, programs, **asked).code == 0


@pytest.mark.slow
def test_no_input_is_run(project: Path, programs: Path) -> None:
    hostile = '$(touch${IFS}acted) `touch acted` "; touch acted; " a;touch acted ${{ x }}'
    ran = run_step("Compare and lint", project, programs, snapshots=hostile, lint=hostile)
    assert ran.code == 2
    write_program(programs / "python", "exit 0")
    assert run_step("Install shardctl", project, programs, extras=hostile).code == 0
    assert not [*project.rglob("acted")]


@pytest.mark.parametrize("step", [step for step in _STEPS.values() if "run" in step])
def test_inputs_reach_scripts_by_the_environment_alone(step: dict[str, Any]) -> None:
    assert "${{" not in step["run"]
    assert step["shell"] == "bash"


def test_it_installs_the_shardctl_of_its_repository(project: Path, programs: Path) -> None:
    write_program(programs / "python", 'printf "%s\\n" "$*"')
    (alone,) = run_step("Install shardctl", project, programs).log.splitlines()
    assert alone == f"-m pip install -q {_FOLDER}/../../.."
    (full,) = run_step("Install shardctl", project, programs, extras="s3,http").log.splitlines()
    assert full == f"-m pip install -q {_FOLDER}/../../..[s3,http]"
