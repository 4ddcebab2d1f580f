"""Bars show how far long work is, on a terminal alone, and are gone afterwards."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from shardctl.cli import progress
from shardctl.cli.progress import ProgressBars


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


OnTerminal = Callable[[], Terminal]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(progress, "time", stopped)
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


def test_work_of_less_than_half_a_second_has_no_bar(clock: Clock, on_terminal: OnTerminal) -> None:
    terminal = on_terminal()
    with ProgressBars() as bars:
        bars.show("files", 1, 2)
        clock.now += 0.4
        bars.show("files", 2, 2)
    assert terminal.getvalue() == ""


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


def test_an_interrupt_takes_the_bar_away_too(clock: Clock, on_terminal: OnTerminal) -> None:
    terminal = on_terminal()

    def work() -> None:
        with ProgressBars() as bars:
            clock.now += 1
            bars.show("ids", 1, 4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
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
