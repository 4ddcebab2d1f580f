"""Commands that answers suggest: each alone on its line, and what bash makes of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from shardctl.cli.app import application
from shardctl.cli.main import COMMANDS
from shardctl.guide import guides
from tests.cases import first
from tests.cli.conftest import Outcome, Shardctl
from tests.record_files import framed

# What bash would take for a command, an option, a variable, a quote or an end of the line; what a
# terminal or a runner of CI would act on.
NAMES = [
    "-rf.yaml",
    "`touch x`  $(touch y)&.yaml",
    'it\'s;"q"!.yaml',
    "\x1b[31m\\é~\x85\u202e.yaml",
    "--help.yaml",
    "a  b.yaml",
    "$(touch x)&.yaml",
    "new\nline\r.yaml",
    "*?{a,b}.yaml",
    "##[error]::x.yaml",
    "long" * 60 + ".yaml",
]
KINDS = (".txt", ".md")
SHOW = 'shown() { printf "%s\\0" "$@"; }; shardctl() { shown "$@"; }; cd() { shown cd "$@"; }\n'


def pasted(line: str) -> list[str]:
    """Return the arguments that a line has once it is pasted into bash; those of `cd` first."""
    ran = subprocess.run(["bash", "-c", SHOW + line], capture_output=True, check=True)
    return os.fsdecode(ran.stdout).split("\0")[:-1]


def commands(ran: Outcome | str) -> list[list[str]]:
    """Return what bash makes of the commands that an answer suggests, each alone on its line."""
    text = ran if isinstance(ran, str) else ran.stdout + ran.stderr
    return [pasted(line) for line in text.splitlines() if re.match(r"  (shardctl|cd) ", line)]


def as_word(name: str) -> str:
    return f"./{name}" if name.startswith("-") else name


@pytest.mark.parametrize("name", first(4, NAMES))
def test_a_suggested_command_can_be_pasted(shardctl: Shardctl, name: str) -> None:
    Path("toy.yaml").write_text("name: toy\nsplits: {train: {shard_lengths: [3, 4]}}\n")
    path, folder = as_word(name), name.removesuffix(".yaml")
    inside, files = as_word(folder), as_word(f"{folder}.")
    for each in ("here", files):
        Path(each).mkdir()
        Path(each, "toy-train.tfrecord-00000-of-00001").write_bytes(framed(b"a"))
    suggested: dict[tuple[str, ...], list[list[str]]] = {
        ("snapshot", "-d", "toy.yaml", "-o", name): [["diff", path]],
        ("diff", path, "--block", "2"): [["diff", path, "--block", "2", "--update"]],
        ("diff", "--each", path, path, "--block", "2"): [
            ["diff", path, "--block", "2", "--update"]
        ],
        ("lint", "-d", "toy.yaml"): [["lint", "--explain", "SC017"]],
        ("resume", "-d", "toy.yaml", "--consumed", "2", "-o", name): [
            ["resume", "--plan", path, "-d", "toy.yaml", "--prove"]
        ],
        ("index", "-o", name, "--name=n", "here"): [
            ["layout", "-d", path],
            ["index", "--check", path],
        ],
        ("demo", "--", folder): [["cd", inside, "simulate", "--take", "8"], ["help", "questions"]],
        ("init", "-d", "toy.yaml", "-o", f"{files}/shardctl.yaml"): [
            ["cd", files, "config"],
            ["lint"],
        ],
        ("index", "--name=-a b", files): [["index", files, "--name", "-a b", "-o", "layout.yaml"]],
    }
    for words, expected in suggested.items():
        assert commands(shardctl(*words)) == expected, words
    shutil.rmtree("here")
    Path("here").mkdir()
    again = ["index", f"{os.getcwd()}/here", "--name", "n", "-o", path]
    assert commands(shardctl("index", f"--check={name}")) == [again]
    assert not Path("x").exists()


def test_a_script_with_an_awkward_name_can_be_pasted(shardctl: Shardctl) -> None:
    for name in ("a b.py", "-rf.py", "it's `x`.py"):
        Path(name).write_text("def make(): pass\n")
        ran = shardctl("inspect", "--", name)
        assert commands(ran) == [["inspect", f"{as_word(name)}:make"]]


def test_a_function_that_is_suggested_needs_no_argument(shardctl: Shardctl) -> None:
    names = ("one(split)", "two(*, split)", "three(split, batch=1)", "four(split=1, *, batch=1)")
    Path("train.py").write_text("\n".join(f"def {name}: pass" for name in names))
    assert commands(shardctl("inspect", "train.py")) == [["inspect", "train.py:four"]]


@pytest.mark.parametrize("name", NAMES)
def test_a_dataset_is_named_as_it_was_typed(shardctl: Shardctl, name: str) -> None:
    Path(name).write_text("name: toy\nsplits: {train: {num_examples: 60, num_shards: 4}}\n")
    loader = ["--loader", "torch", "--loader-version", "2.14.1", "--shuffle-seed", "1"]
    read = ["resume", "--plan", "p.json", "-d", name]
    suggested: dict[tuple[str, ...], list[list[str]]] = {
        ("snapshot", "-d", name, "--data-dir", name, "-o", "o.yaml"): [
            ["diff", "o.yaml", "-d", name, "--data-dir", name]
        ],
        ("resume", "-d", name, "--consumed", "2", *loader, "-o", "p.json"): [
            [*read, "--format", "python"],
            [*read, "--prove"],
        ],
    }
    for words, expected in suggested.items():
        assert commands(shardctl(*words)) == expected, words
    (better,) = commands(shardctl("quality", "-d", name, "--target", "0.9"))
    assert better[:4] == ["quality", "--dataset", name, "--buffer"]
    Path("shardctl.yaml").write_text("read: {deterministic: false}\n")
    assert commands(shardctl("lint", "-d", name))[1:] == [["lint", "--dataset", name, "--fix"]]
    bad = Path(as_word(name.removesuffix("yaml") + "tfrecord"))
    bad.write_bytes(framed(b"a")[:-1])
    keep = ["index", os.path.abspath(bad), "--keep-going", "-o", "layout.yaml"]
    for asked, before, after, typed in [
        (["plan", "--", name], "as in ", "", ["-d", as_word(name)]),
        (["plan", "train", "-d", str(bad)], "; `shardctl ", "` describes the others", keep),
    ]:
        error = shardctl(*asked).stderr.splitlines()[-1]
        assert error.startswith("error: ")
        assert pasted(f"shardctl {error.rpartition(before)[2].removesuffix(after)}") == typed


def test_no_answer_of_a_transcript_has_a_command_to_type_within_a_sentence() -> None:
    """Each command of `next:` and of other hints is a line that the program itself understands."""
    roots = (Path(__file__).parents[1], Path(guides.__file__).parent)
    texts = [path.read_text() for root in roots for path in root.rglob("*") if path.suffix in KINDS]
    hints = {
        line.removeprefix("stderr: ")
        for text in texts
        for line in text.splitlines()
        if re.match(r"(stderr: )?(next\b|  shardctl [a-z])", line)
    }
    alone = sorted(line.strip() for line in hints if line.startswith("  "))
    assert len(alone) > 20
    assert [line for line in hints if re.match(r"next.*(shardctl|tfds|cd ).*[^:]$", line)] == []
    known = application(*COMMANDS).commands
    for command, *words in map(pasted, alone):
        assert known[command].make_context(command, words) is not None
