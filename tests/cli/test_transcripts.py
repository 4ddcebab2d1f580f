"""Transcripts of the command line: commands, and to the letter what they answer.

A file in transcripts/ is a row of sections, each run in the same folder after the one before:

    = a remark; what follows begins in an empty folder
    # a remark
    @ file.yaml
    the text of that file, which the section writes (a folder/ is made; of a .tfrecord the records)
    $ NAME=value shardctl plan train        a command, perhaps with environment variables
    what is on stdout
    stderr: a line on stderr
    exit: 2                                 where it is not 0
    $ cat file                              what a file holds
    $ ls                                    the names in the folder, in order
    $ cd folder                             the commands after it run there
    $ tab shardctl pla|                     what bash is offered at the end of that line

A line of an answer or a file that begins like these has a backslash before it.
`[..]` stands for any characters of a line; the folder itself is /here, the home folder /home.
SHARDCTL_GOLDEN=write writes what the commands answer now; read the difference before you commit it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Shardctl
from tests.golden import assert_golden
from tests.record_files import framed

_FOLDER = Path(__file__).parent / "transcripts"
_BACKSLASH = re.compile(r"^\\(?=[=#@$] )", re.MULTILINE)
_HEADS = ("= ", "# ", "@ ", "$ ")


@dataclass(frozen=True, kw_only=True)
class Section:
    """A remark, a file or a command, with the lines below it."""

    line: int
    head: str
    body: str


def sections(text: str) -> Iterator[Section]:
    """Yield the sections of a transcript."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith(_HEADS)]
    for start, stop in zip(starts, [*starts[1:], len(lines)], strict=True):
        body = "".join(lines[start + 1 : stop])
        yield Section(line=start + 1, head=lines[start].rstrip("\n"), body=body)


def matches(answer: str, expected: str) -> bool:
    """Return whether an answer is what is expected, where `[..]` stands for any characters.

    A line of `[..]` alone stands for any lines.

    >>> matches("a 17 c\\n", "a [..] c\\n"), matches("a b\\n", "a\\n")
    (True, False)
    """
    pattern = ".*".join(re.escape(piece) for piece in expected.split("[..]"))
    pattern = re.sub(r"^\.\*\\?\n", r"(?:.*\\n)*", pattern, flags=re.MULTILINE)
    return re.fullmatch(pattern, answer) is not None


def answer(command: str, root: str, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a command answers, in the form of a transcript."""
    line = command.removeprefix("tab ").removesuffix("|")
    words = ["tab"] if command.startswith("tab ") else shlex.split(command)
    if words[0] == "cat":
        return Path(words[1]).read_text("utf-8")
    if words[0] == "ls":
        return "".join(f"{name}\n" for name in sorted(os.listdir()))
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    with monkeypatch.context() as patch:
        if words[0] == "tab":
            patch.setenv("_SHARDCTL_COMPLETE", "complete_bash")
            patch.setenv("_TYPER_COMPLETE_ARGS", line)
            words = ["shardctl"]
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        assert words[0] == "shardctl"
        ran = shardctl(*words[1:])
    said = ran.stdout + "".join(f"stderr: {line}\n" for line in ran.stderr.splitlines())
    if ran.exit_code:
        said += f"exit: {ran.exit_code}\n"
    return said.replace(root, "/here").replace(os.environ["HOME"], "/home")


@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_commands_answer_as_written_down(
    path: Path, shardctl: Shardctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered, root = [], Path.cwd()
    for section in sections(path.read_text("utf-8")):
        kind, rest, body = section.head[0], section.head[2:], section.body
        if kind == "=":
            monkeypatch.chdir(root.parent)
            shutil.rmtree(root)
            root.mkdir()
            os.chdir(root)
        elif kind == "@":
            Path(rest).parent.mkdir(parents=True, exist_ok=True)
            if rest.endswith("/"):
                Path(rest).mkdir()
            elif rest.endswith(".tfrecord"):
                Path(rest).write_bytes(framed(*body.encode().splitlines()))
            else:
                Path(rest).write_text(_BACKSLASH.sub("", body), encoding="utf-8")
        elif kind == "$":
            said = answer(rest, str(root), shardctl, monkeypatch)
            assert said.count("stderr: error: ") == 1 or not said.endswith("exit: 2\n")
            said = re.sub(r"^(?=[=#@$] )", r"\\", said, flags=re.MULTILINE)
            body = body if matches(said, body) else said
        answered.append(f"{section.head}\n{body}")
    assert any(one.startswith("$ ") for one in answered)
    assert_golden(path, "".join(answered))
