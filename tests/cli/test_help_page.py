"""Help pages fit the screen there is, list what the command takes, and show examples that run."""

from __future__ import annotations

import re
import shlex
import shutil
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from shardctl.cli.app import application
from shardctl.cli.help_page import help_page
from shardctl.cli.main import COMMANDS
from tests.children import run_on_a_terminal
from tests.cli.conftest import Shardctl
from tests.tfds_datasets import write_dataset

PAGES = ((), *((name,) for name in COMMANDS))
_ANSI = re.compile("\x1b\\[[0-9;]*m")


def examples_of(command: str) -> list[str]:
    """Return the examples of a command, or of `-h` alone, without the words above them."""
    group = application(*((command,) if command else COMMANDS))
    root = group.make_context("shardctl", [], resilient_parsing=True)
    one = group.commands.get(command, group)
    ctx = one.make_context(command, [], root, resilient_parsing=True) if command else root
    page = help_page(one, ctx)
    assert not any("shardctl plan" in text for text in page.paragraphs)
    words, examples = page.examples[::2], page.examples[1::2]
    assert all(line.startswith("# ") for line in words)
    return list(examples)


@pytest.mark.parametrize("words", PAGES, ids=lambda words: "".join(words) or "all")
def test_no_option_has_two_defaults(words: tuple[str, ...], shardctl: Shardctl) -> None:
    page = shardctl(*words, "--help").stdout
    assert not re.search(r"\[default: [^]]*\]\s+\[default", page)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("words", PAGES, ids=lambda words: "".join(words) or "all")
def test_a_pipe_gets_plain_text_of_its_width(
    words: tuple[str, ...], width: int, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    ran = shardctl(*words, "-h")
    assert (ran.exit_code, ran.stderr) == (0, "")
    lines = ran.stdout.splitlines()
    assert ran.stdout.isascii()
    assert max(map(len, lines)) <= width
    assert not any(line != line.rstrip() for line in lines)
    if width == 120 and words:
        assert max(map(len, lines)) > 80 or len(lines) < 40
    if width >= 80:  # what options mean begins in one column
        starts = {
            match.end()
            for line in lines
            if (match := re.match(r"  -\S+( \S+)*  +", line)) and not line[2:].startswith("- ")
        }
        assert len(starts) == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "environment", "boxes", "color"),
    [
        (40, {}, False, True),
        (80, {}, True, True),
        (120, {}, True, True),
        (200, {}, True, True),
        (80, {"NO_COLOR": "1"}, True, False),
        (80, {"TERM": "dumb"}, False, False),
        (80, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}, False, True),
    ],
)
@pytest.mark.parametrize("words", [(), ("resume",)])
def test_a_terminal_gets_what_it_can_show(
    words: tuple[str, ...],
    columns: int,
    environment: dict[str, Any],
    boxes: bool,
    color: bool,
) -> None:
    shown, said = run_on_a_terminal(*words, "-h", columns=columns, **environment)
    assert said == ""
    assert ("\x1b" in shown) == color
    assert ("╭─" in shown) == boxes
    lines = _ANSI.sub("", shown).splitlines()
    assert max(map(len, lines)) <= min(columns, 120)
    boxed = {len(line) for line in lines if line.startswith(("╭", "│", "╰"))}
    assert boxed == ({min(columns, 120)} if boxes else set())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("help"), splits={"train": [30, 20], "test": [3]})


# Of examples that find something: what they find.
FINDS = {
    "lint": "SC0",
    "shardctl diff order.yaml --cycle 8": "expected",
    "shardctl diff before.json after.json": "",
    "shardctl hosts --hosts 16 --host-by files --check -d imagenet2012": "",
}


_REAL = ("inspect", "verify")  # run TensorFlow
_MEASURED = ("quality", "report")  # a second for all examples of ImageNet
_HOME = "tensorflow_datasets"


@pytest.mark.parametrize(
    "command",
    [
        "",
        *(name for name in COMMANDS if name not in _REAL),
        *(pytest.param(name, marks=pytest.mark.tensorflow) for name in _REAL),
    ],
)
def test_the_examples_run(command: str, shardctl: Shardctl, built: Path) -> None:
    """In the folders and with the files that they name, each example answers."""
    home = Path.cwd().parent / "home"
    if command == "verify":
        shutil.copytree(built, home / _HOME / "mnist" / "3.0.1")
    shutil.copytree(built.parent, home / "data" / "toy")
    if command in _REAL:
        Path("train.py").write_text(f"""
import tensorflow_datasets as tfds

def make_dataset(split="train", seed=3):
    builder = tfds.builder_from_directory({str(built)!r})
    return builder.as_dataset(split=split).shuffle(10, seed=seed)
""")
    if command == "diff":
        for name in ("order.yaml", "train.order.yaml", "eval.order.yaml"):
            shardctl("snapshot", "train", "-d", "imagenet2012", "-o", name)
        shardctl("plan", "train[:10]", "-d", "mnist", "-f", "json", "-o", "before.json")
        shardctl("plan", "train[:20]", "-d", "mnist", "-f", "json", "-o", "after.json")
    if command == "report":
        for name, block in (("before.yaml", 2), ("after.yaml", 3)):
            shardctl("snapshot", "train", "-d", "imagenet2012", "--block", block, "-o", name)
    examples = examples_of(command)
    assert 2 <= len(examples) <= 3
    for example in examples:
        asked = example.replace("~/", f"{home}/")
        if command in _MEASURED:
            asked = asked.replace("imagenet2012", "mnist")
        program, *patterns = shlex.split(asked)
        words = [word for pattern in patterns for word in sorted(glob(pattern)) or [pattern]]
        assert (program, words[0]) == ("shardctl", command or words[0])
        ran = shardctl(*words)
        assert "error" not in ran.stderr, example
        output = words[words.index("-o") + 1] if "-o" in words else None
        assert ran.stdout or Path(output or "shardctl.yaml").stat().st_size, example
        assert ran.exit_code == 0 or example in FINDS or command in FINDS, example
