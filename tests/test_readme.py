"""What the README shows is what happens, command by command, in one folder from top to end.

A line `...` stands for any number of lines. A YAML block that begins with a comment `# name.yaml`
is the file of that name.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shardctl.cli.main import COMMANDS, main

README = Path(__file__).parents[1] / "README.md"
_BLOCK = re.compile(r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

# The dataset of the section on evaluation: one example more than eight hosts take in a step.
_FILES = {"odd.yaml": "splits:\n  test: {num_examples: 4097, num_shards: 8}\n"}


def blocks(*kinds: str) -> list[tuple[str, str]]:
    """Return the kind and the text of each block of some kinds."""
    found = (match.group("kind", "text") for match in _BLOCK.finditer(README.read_text("utf-8")))
    return [(kind, text) for kind, text in found if kind in kinds]


def dialogue(text: str) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with what it answers."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, answer = part.partition("\n")
        yield command, answer


def said(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what a command says on stdout and stderr, as it is seen on a screen."""
    words = shlex.split(command)
    assert words[0] == "shardctl"
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    with pytest.raises(SystemExit):
        main(words[1:])
    return raw.getvalue().decode()


def matches(answer: str, shown: str) -> bool:
    """Return whether an answer is what is shown, where a line `...` stands for any lines.

    >>> matches("a\\nb\\nc\\n", "a\\n...\\nc\\n"), matches("a\\nb\\n", "a\\n")
    (True, False)
    """
    pattern = "".join(
        r"(?:.*\n)*" if line == "...\n" else re.escape(line) for line in shown.splitlines(True)
    )
    return re.fullmatch(pattern, answer) is not None


@pytest.mark.tensorflow
def test_every_command_answers_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, text in _FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    different = []
    for kind, text in blocks("yaml", "console"):
        file = re.match(r"# (\S+\.yaml)\n", text)
        if kind == "yaml" and file is not None:
            Path(file[1]).write_text(text, encoding="utf-8")
        for command, shown in dialogue(text) if kind == "console" else ():
            with monkeypatch.context() as patch:
                answer = said(command, patch)
            if not matches(answer, shown):
                different.append(f"$ {command}\n{answer}")
    assert not different, "\n".join(["the README shows another answer than:", *different])


def test_every_python_example_is_true() -> None:
    examples = [text for _, text in blocks("python") if ">>>" in text]
    assert examples
    for text in examples:
        test = doctest.DocTestParser().get_doctest(text, {}, "README", str(README), 0)
        assert doctest.DocTestRunner().run(test).failed == 0


def test_the_set_up_commands_come_first() -> None:
    (_, install), (_, test) = blocks("sh")[:2]
    assert README.read_text("utf-8").index(install) < 300
    assert install.count("\n") == test.count("\n") == 1
    assert install.startswith("python3.11 -m venv .venv && ")
    assert install.endswith("shardctl plan 'train[44%:45%]' -d imagenet2012\n")
    assert ".venv/bin/pip install '.[test]' && .venv/bin/python -m pytest\n" in test


def test_every_command_is_named() -> None:
    text = README.read_text("utf-8")
    assert [name for name in COMMANDS if f"`shardctl {name}" not in text] == []
