"""Whether stdout and stderr are coloured: the option, the environment, the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from shardctl.cli import output as color
from shardctl.cli.main import main
from tests.children import run_on_a_terminal
from tests.cli.conftest import Outcome, Shardctl, Terminal
from tests.golden import assert_evaluated

LAYOUT = "name: toy\nversion: 1.0.0\nsplits:\n  train: {shard_lengths: [3, 2]}\n"
BOLD_TITLE = "\x1b[1mtrain in toy:1.0.0\x1b[0m\n"
RED_ERROR = "\x1b[1;91merror:\x1b[0m "


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The environment of a terminal that shows colour; no option is chosen."""
    monkeypatch.setenv("TERM", "xterm")
    yield monkeypatch
    color.choose([])


def test_the_environment_decides_where_no_option_does(env: pytest.MonkeyPatch) -> None:
    def decided(said: dict[str, str]) -> dict[str, bool]:
        with env.context() as patch:
            for name, value in said.items():
                patch.setenv(name, value)
            found = []
            for when in ("auto", "always", "never"):
                color.choose(["plan", "--color", when])
                found.append((color.is_colored(Terminal()), color.is_colored(StringIO())))
            assert found[1:] == [(True, True), (False, False)]
            color.choose([])
            assert (color.is_colored(Terminal()), color.is_colored(StringIO())) == found[0]
            return dict(zip(("terminal", "pipe"), found[0], strict=True))

    assert_evaluated(globals(), "colors", decided)
    assert not color.is_colored(None)


def test_the_option_is_heeded_wherever_it_stands(env: pytest.MonkeyPatch) -> None:
    def heeded(words: list[str]) -> bool:
        color.choose(words)
        return color.is_colored(StringIO())

    assert_evaluated(globals(), "heeded", heeded)


def test_a_pipe_is_coloured_where_that_is_asked_for_and_a_file_never(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    ran = shardctl("plan", "train", "-d", "toy.yaml", "--color=always")
    assert ran.stdout.startswith(BOLD_TITLE)
    ran = shardctl("plan", "train", "-d", "toy.yaml", "--color", "always", "-o", "plan")
    assert (ran.exit_code, "\x1b" in Path("plan").read_text()) == (0, False)
    assert "\x1b" not in shardctl("plan", "train", "-d", "toy.yaml").stdout
    assert not color.is_colored(StringIO())  # a choice ends with its command


@pytest.mark.parametrize("line", ["plan --bogus", "bogus", "plan x -d no.yaml"])
def test_errors_heed_it_even_where_options_are_refused(shardctl: Shardctl, line: str) -> None:
    plain = shardctl(*line.split()).stderr
    assert plain.startswith("error: ")
    assert shardctl(*line.split(), "--color", "always").stderr == plain.replace(
        "error: ", RED_ERROR, 1
    )
    said = "error: --color 'nevr': choose from never, auto, always\n"
    assert shardctl("help", "--color", "nevr") == Outcome(exit_code=2, stdout="", stderr=said)


@pytest.mark.parametrize(
    ("said", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_on_a_real_terminal(tmp_path: Path, said: dict[str, Any], colored: bool) -> None:
    (tmp_path / "toy.yaml").write_text(LAYOUT)
    shown, _ = run_on_a_terminal("plan", "train", "-d", str(tmp_path / "toy.yaml"), **said)
    assert shown.startswith(BOLD_TITLE if colored else "train in toy:1.0.0\n")
    assert ("\x1b" in shown) == colored


def test_stdout_and_stderr_are_decided_each_for_itself(
    env: pytest.MonkeyPatch, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "toy.yaml").write_text(LAYOUT)
    terminal = Terminal()
    env.setattr("sys.stderr", terminal)
    with pytest.raises(SystemExit):
        main(["plan", "train[:0shard]", "-d", str(tmp_path / "toy.yaml")])
    assert terminal.getvalue().startswith("\x1b[1;95mwarning:\x1b[0m ")
    written = capsysbinary.readouterr().out
    assert written.startswith(b"train[:0shard] in toy:1.0.0\n")
    assert b"\x1b" not in written
