"""What importing costs, what is exported, and what lies in the package."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import shardctl

_REPOSITORY = Path(__file__).parents[1]
_HEAVY = {"tensorflow", "tensorflow_datasets", "keras", "numpy", "yaml", "rich", "pydantic"}


def modules_after(program: str, cwd: Path) -> set[str]:
    """Return which of the heavy modules a program has loaded at its end."""
    program = (
        f"import contextlib, sys\nwith contextlib.suppress(SystemExit):\n    {program}\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(cwd)},
        capture_output=True,
        text=True,
        check=True,
    )
    return _HEAVY & set(ran.stderr.splitlines()[-1].split())


_LOADS_NOTHING = [
    ["plan", "train[44%:45%]", "-d", "imagenet2012"],
    ["plan", "train[44%:45%]", "-d", "imagenet2012", "-f", "json"],
    ["plan", "train", "-d", "imagenet2012", "--hosts", "8", "-f", "csv"],
    ["layout", "train", "-d", "mnist", "-f", "json"],
    ["list"],
    ["lint", "train", "-d", "imagenet2012"],
    ["--version"],
    ["plan", "-h"],
    ["-h"],
    ["help"],
    ["help", "resume"],
    ["help", "plan"],
]


@pytest.mark.long
def test_commands_that_need_nothing_load_nothing(tmp_path: Path) -> None:
    """All of them in one process, which tells after which of them something was there."""
    program = f"""
import sys
from shardctl.cli.main import main

for arguments in {_LOADS_NOTHING!r}:
    try:
        main(arguments)
    except SystemExit:
        found = {_HEAVY!r} & {{name.partition(".")[0] for name in sys.modules}}
        assert not found, (arguments, found)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "usage: shardctl" in ran.stdout.lower()


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "allowed"),
    [
        (["plan", "train", "-d", "toy.yaml"], {"yaml"}),
        (["help", "resume"], {"rich"}),
        (["simulate", "-d", "mnist"], {"numpy"}),
        (["locate", "--id", "1", "-d", "mnist"], {"numpy"}),
    ],
)
def test_a_command_loads_what_it_needs(
    arguments: list[str], allowed: set[str], tmp_path: Path
) -> None:
    (tmp_path / "toy.yaml").write_text("splits: {train: {shard_lengths: [3, 4]}}")
    program = f"from shardctl.cli.main import main; main({arguments!r})"
    assert modules_after(program, tmp_path) <= allowed


@pytest.mark.long
def test_what_is_loaded_is_noticed(tmp_path: Path) -> None:
    assert modules_after("import numpy, yaml", tmp_path) == {"numpy", "yaml"}


def test_the_package_loads_nothing_of_weight(tmp_path: Path) -> None:
    assert modules_after("import shardctl; shardctl.read_dataset('mnist')", tmp_path) == set()


def test_every_exported_name_is_documented() -> None:
    for name in shardctl.__all__:
        assert getattr(shardctl, name).__doc__, name
        text = inspect.getdoc(getattr(shardctl, name))
        assert text, name
        assert text.splitlines()[0].endswith((".", ":", "?")), name
        assert not text.startswith(f"{name}("), name  # what a dataclass gets without one


def test_every_error_is_exported_but_those_that_only_a_command_tells_apart() -> None:
    errors = {name for name in vars(shardctl.errors) if name.endswith(("Error", "Warning"))}
    assert errors - set(shardctl.__all__) == {
        *("NotASplitError", "NotThereError", "UnnamedDatasetError")
    }


def test_exports_are_sorted_and_all_that_is_listed() -> None:
    assert sorted(shardctl.__all__) == shardctl.__all__
    assert set(dir(shardctl)) >= set(shardctl.__all__)
    assert getattr(shardctl, "no_such_name", None) is None


def test_the_changelog_has_the_version_or_what_is_not_released() -> None:
    text = (_REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    released = [re.fullmatch(r"\[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)", h) for h in headings[1:]]
    assert all(released)
    assert [match[2] for match in released if match] == sorted(
        (match[2] for match in released if match), reverse=True
    )
    kinds = set(re.findall(r"^### (.*)$", text, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_version_is_one_of_semantic_versioning() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", shardctl.__version__)


def test_data_files_lie_in_the_package() -> None:
    package = resources.files("shardctl")
    assert package.joinpath("py.typed").is_file()
    catalog = package.joinpath("metadata", "catalog", "imagenet2012.json")
    assert json.loads(catalog.read_text("utf-8"))["entries"]
    assert package.joinpath("guide", "resume.md").read_text("utf-8").startswith("# ")


def test_the_top_level_holds_what_a_reader_expects() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=_REPOSITORY, capture_output=True, text=True, check=False
    )
    names = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    shown = {name for name in names if not name.startswith(".")}
    expected = {"CHANGELOG.md", "LICENSE", "README.md", "completions", "pyproject.toml", "shardctl"}
    assert shown <= {*expected, "tests"}


def test_the_slim_install_of_the_guide_names_every_dependency_but_tensorflow() -> None:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split(r"[<>=!~;\[ ]", line)[0] for line in project["dependencies"]}
    guide = (_REPOSITORY / "shardctl" / "guide" / "install.md").read_text("utf-8")
    slim = re.search(r"^pip install (.*) && pip install --no-deps \.$", guide, re.MULTILINE)
    assert slim is not None
    named = {re.split(r"[<>=]", word.strip("'"))[0] for word in slim[1].split()}
    assert named == needed - {"tensorflow"}


_LIBRARIES = {"grain", "torch", "torchdata", "accelerate", "transformers", "datasets", "tensorflow"}


@pytest.mark.long
def test_planning_with_a_loader_imports_no_library(tmp_path: Path) -> None:
    """All of them in one process: each of these lines left none behind."""
    program = f"""
import sys
import shardctl, shardctl.grain, shardctl.torch
from shardctl.loaders.loader import LOADERS

def check(what):
    found = {_LIBRARIES!r} & {{name.partition(".")[0] for name in sys.modules}}
    assert not found, (what, found)

check("import")
for name, loader in LOADERS.items():
    settings = {{"loader": name, "shuffle_seed": 3, "batch": 4}}
    if name == "stateful":
        settings["host"] = "0/2"
    order = shardctl.plan_order("mnist", "train[:100]", settings).order
    order.codes_at([0, 1])
    shardctl.simulate("mnist", "train[:100]", settings)
    shardctl.evaluate("mnist", "test[:99]", {{"loader": name}}, batch=8, hosts=2)
    shardctl.hosts("mnist", "test[:99]", {{"loader": name, "batch": 2}}, hosts=2)
    shardctl.resume_loader("mnist", "train", {{"loader": name, "batch": 2}}, steps=3)
    shardctl.lint("mnist", ["train"], settings)
    shardctl.snapshot("mnist", "train[:100]", settings)
    check(name)
from shardctl.live import key_order, library, process, verify
from shardctl.loaders.loader import library_of
for name in LOADERS:
    library_of(LOADERS[name])
check("bridge")
"""
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(_REPOSITORY), "HOME": str(tmp_path)},
        check=True,
    )


def _required(extras: dict[str, list[str]], name: str) -> set[str]:
    """Return the packages that an extra names, by way of other extras too."""
    found = set()
    for requirement in extras[name]:
        inner = re.fullmatch(r"shardctl\[([\w,]+)\]", requirement)
        if inner is None:
            found.add(re.split(r"[^\w-]", requirement, maxsplit=1)[0])
        else:
            found |= {
                package for part in inner[1].split(",") for package in _required(extras, part)
            }
    return found


def test_the_tests_need_no_library_of_another_loader() -> None:
    project = tomllib.loads((_REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    for name in ("test", "dev"):
        assert _required(extras, name) & _LIBRARIES == set()
    assert _required(extras, "hf") & _LIBRARIES == {"datasets"}
    for loader in ("grain", "torch"):
        assert loader in _required(extras, loader)
