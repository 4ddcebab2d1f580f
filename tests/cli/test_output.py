"""Answers reach stdout or a file, whole or not at all, and messages stderr."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from shardctl.cli import output
from shardctl.cli.output import ProgressBars, exact_lines, say, screen, write
from shardctl.draw.tables import Screen
from shardctl.errors import UsageError
from tests.cli.conftest import Terminal


def test_what_was_written_is_seen_while_more_takes_long(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with open(1, "w", closefd=False) as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)

        def chunks() -> Iterator[str]:
            time.sleep(2 * output._UNSEEN)
            yield "first\n"
            assert capfdbinary.readouterr().out == b"first\n"
            yield "second\n"

        write(chunks(), None)
    assert capfdbinary.readouterr().out == b"second\n"


def test_text_that_is_not_unicode_is_escaped_and_messages_are_no_commands_to_runners_of_ci(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    write(["a\udcffb"], None)
    say("a\udcffb ::c")
    say("::add-mask::a ##[error]b")
    out, error = capfdbinary.readouterr()
    assert (out, error) == (b"a\\udcffb", b"a\\udcffb ::c\n\\x3a:add-mask::a \\x23#[error]b\n")


def test_without_stderr_messages_are_no_error_and_without_stdout_answers_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("nobody hears this")
    monkeypatch.setattr(sys, "stdout", None)
    assert screen(None) == Screen()
    with pytest.raises(UsageError, match="cannot write to stdout: it is closed"):
        write(["x"], None)


def test_a_terminal_has_its_width_and_colour_and_shows_a_part_of_long_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert screen(None) == Screen()
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    assert screen(None) == screen("-") == Screen(width=60, color=True, abridged=True)
    assert screen("out.txt") == Screen()


Clock = SimpleNamespace
OnTerminal = Callable[[], Terminal]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    # It stands still until a test says so.
    stopped: SimpleNamespace = Clock(
        now=100.0, monotonic=lambda: stopped.now
    )  # until a test says so
    monkeypatch.setattr(output, "time", stopped)
    return stopped


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> OnTerminal:
    """A function that makes stderr a terminal; pytest would undo what a fixture does itself."""

    def replace() -> Terminal:
        stderr = Terminal()
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        return stderr

    return replace


def test_longer_work_has_a_bar_for_each_thing_counted(
    clock: Clock, on_terminal: OnTerminal
) -> None:
    terminal = on_terminal()
    with ProgressBars() as bars:
        clock.now += 0.6
        bars.show("examples", 1, 4)
        bars.show("files", 1, 2)
        bars.show("examples", 3, 4)
        assert bars._progress is not None
        shown = [(task.description, task.completed, task.total) for task in bars._progress.tasks]
    assert shown == [("examples", 3, 4), ("files", 1, 2)]
    assert "examples" in terminal.getvalue()
    assert is_gone(terminal)


def test_work_of_nobody_knows_how_much_shows_how_much_is_done(
    clock: Clock, on_terminal: OnTerminal
) -> None:
    terminal = on_terminal()
    with ProgressBars() as bars:
        clock.now += 0.6
        bars.show("files found", 1000, 0)
        bars.show("files found", 2000, 0)
        assert bars._progress is not None
        (task,) = bars._progress.tasks
        assert (task.description, task.total) == ("files found: 2,000", None)
        bars.show("files", 1, 2)
        (task,) = bars._progress.tasks
        assert (task.description, task.completed, task.total) == ("files", 1, 2)
    assert is_gone(terminal)


def test_an_interrupt_takes_the_bar_away_too(clock: Clock, on_terminal: OnTerminal) -> None:
    terminal = on_terminal()
    with pytest.raises(KeyboardInterrupt), ProgressBars() as bars:  # noqa: PT012
        clock.now += 1
        bars.show("ids", 1, 4)
        raise KeyboardInterrupt
    assert is_gone(terminal)


def is_gone(terminal: Terminal) -> bool:
    """Whether the last line of a bar was erased and the cursor shown again."""
    seen = terminal.getvalue()
    return seen.endswith("\x1b[2K") and seen.rindex("\x1b[?25h") > seen.rindex("\x1b[?25l")


@pytest.mark.parametrize("stderr", [io.StringIO(), None])
def test_without_a_terminal_there_is_none(
    stderr: io.StringIO | None, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    with ProgressBars() as bars:
        clock.now += 9
        bars.show("ids", 1, 4)
    assert bars._progress is None
    assert stderr is None or stderr.getvalue() == ""


def test_lines_of_data_pass_as_they_are_or_are_refused() -> None:
    assert list(exact_lines(["a::b\n", "train:1\n"])) == ["a::b\n", "train:1\n"]
    lines = exact_lines(["a\n", "b\n::error::c\n"])
    assert next(lines) == "a\n"
    with pytest.raises(UsageError, match="line '::error::c' is a command to runners of CI"):
        next(lines)
