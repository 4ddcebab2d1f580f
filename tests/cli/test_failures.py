"""Whatever goes wrong is one line that says what to do, and an exit code."""

from __future__ import annotations

import pytest

from shardctl.cli.failures import report
from shardctl.errors import (
    DatasetError,
    MissingDependencyError,
    UnpredictableOrderError,
    UsageError,
)

COMMANDS = ("layout", "plan")


def said(error: BaseException, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert report(error, arguments, COMMANDS) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err.removesuffix("\n")


@pytest.mark.parametrize(
    "kind", [DatasetError, MissingDependencyError, UnpredictableOrderError, UsageError]
)
def test_an_error_of_ours_is_its_own_line(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(kind("no split\n'x'"), capsys) == "error: no split 'x'"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "a b"), "'a b': Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (MemoryError(), "out of memory; ask for less, or write to a file with --output"),
        (RecursionError(), "the input is nested too deeply"),
        (
            KeyError("x\x1b"),
            "internal error: KeyError: 'x\\x1b'; SHARDCTL_TRACEBACK=1 shows where; please report "
            "it",
        ),
        (
            AssertionError(),
            "internal error: AssertionError; SHARDCTL_TRACEBACK=1 shows where; please report it",
        ),
    ],
)
def test_any_other_error_is_named(
    error: Exception, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said(error, capsys) == f"error: {line}"
