"""The README is short, begins with the set-up, and names every command and every guide."""

from __future__ import annotations

import re
import subprocess
import tomllib

from shardctl.cli.main import COMMANDS
from shardctl.guide.guides import guide_questions
from tests.sessions import README, REPOSITORY, blocks

TEXT = README.read_text("utf-8")


def test_it_is_short() -> None:
    assert len(TEXT.encode()) < 12_000


def test_the_set_up_commands_come_first() -> None:
    install, test = [block.text for block in blocks(README) if block.kind == "sh"][:2]
    assert TEXT.index(install) < 300
    assert install.count("\n") == test.count("\n") == 1
    assert install.startswith("python3.11 -m venv .venv && ")
    assert install.endswith("shardctl plan 'train[44%:45%]' -d imagenet2012\n")
    assert ".venv/bin/pip install '.[test]' && .venv/bin/python -m pytest\n" in test


def test_the_set_up_commands_are_well_formed() -> None:
    """A shell takes them, and installs parts that the package has."""
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for command in [block.text for block in blocks(README) if block.kind == "sh"]:
        ran = subprocess.run(
            ["bash", "-n", "-c", command], capture_output=True, text=True, check=False
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        for name in re.findall(r"pip install '?\.\[([\w,]+)\]", command):
            assert set(name.split(",")) <= set(extras["optional-dependencies"])


def test_a_slim_install_brings_no_tensorflow_and_the_tests_do() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert not [one for one in project["dependencies"] if "tensorflow" in one]
    assert {"tensorflow>=2.16", "tensorflow-datasets>=4.9.4"} == {*extras["tfds"]}
    assert any("tfds" in one for one in extras["test-tensorflow"])
    assert any("test-tensorflow" in one for one in extras["test"])


def test_every_command_is_named() -> None:
    assert [name for name in COMMANDS if f"`shardctl {name}" not in TEXT] == []


def test_the_sessions_are_plan_simulate_and_resume() -> None:
    sessions = [block.text for block in blocks(README) if block.kind == "console"]
    assert [text.split()[2] for text in sessions] == ["plan", "simulate", "resume"]


def test_it_lists_every_guide_with_its_question() -> None:
    rows = re.findall(r"^\| \[`([a-z-]+)`\]\(shardctl/guide/\1\.md\) \| (.*) \|$", TEXT, re.M)
    assert len(rows) > 10
    assert dict(rows) == guide_questions()


def test_every_link_into_the_repository_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", re.sub(r"\n", " ", TEXT))
    assert "shardctl/README.md" in links
    assert [link for link in links if not (REPOSITORY / link).is_file()] == []
