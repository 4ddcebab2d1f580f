"""What pip is told for a line of TensorFlow: in messages, in constraints files and in the guide."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import shardctl
from shardctl.base.tfds_rules import (
    LINES,
    TFDS,
    TensorflowLine,
    install_command,
    is_newer_than_known,
    line_of,
    requirement_beside,
)

CONSTRAINTS = Path(__file__).parents[1] / "versions"
GUIDE = Path(shardctl.__file__).parent / "guide" / "install.md"

lines = pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)


@lines
def test_the_constraints_file_says_the_same_with_its_reasons(line: TensorflowLine) -> None:
    text = (CONSTRAINTS / f"tensorflow-{line.name}.txt").read_text("utf-8")
    stated = re.findall(r"^([^#\s]\S*)  # \w.*$", text, re.MULTILINE)
    assert stated == [f"tensorflow=={line.name}.*", TFDS, *line.besides]
    assert len(text.splitlines()) == len(stated)  # with nothing else, and no line without a reason


def test_every_constraints_file_is_of_a_line() -> None:
    names = {path.name for path in CONSTRAINTS.glob("*.txt")}
    assert names == {f"tensorflow-{line.name}.txt" for line in LINES}


@lines
def test_the_guide_shows_the_same_command(line: TensorflowLine) -> None:
    row = re.search(rf"^\| {re.escape(line.name)} \|.*$", GUIDE.read_text("utf-8"), re.MULTILINE)
    assert row is not None
    assert f"`{install_command(line.name)}`" in row[0]
    assert f"| {', '.join(line.pythons)} |" in row[0]


def test_lines_are_in_order_and_the_last_is_the_newest_known() -> None:
    numbers = [tuple(map(int, line.name.split("."))) for line in LINES]
    assert numbers == sorted(set(numbers))
    newest = numbers[-1]
    assert not is_newer_than_known(LINES[-1].name + ".99")
    assert is_newer_than_known(f"{newest[0]}.{newest[1] + 1}.0rc1")
    assert is_newer_than_known(f"{newest[0] + 1}.0")
    assert not is_newer_than_known("1.99")


def test_what_is_no_version_is_of_no_line() -> None:
    assert line_of("") is None
    assert not is_newer_than_known("nightly")
    assert requirement_beside("nightly", "pyarrow") is None
    assert install_command("nightly") == "pip install -U tensorflow tensorflow-datasets"
