"""A part of a report, or the reason why it is not there."""

from __future__ import annotations

import pytest

from shardctl.base.phrase import phrase
from shardctl.errors import UsageError
from shardctl.verbs.report.shown import NotShown, shown, shown_of


def _refuse() -> int:
    raise UsageError(phrase("{cycle=auto} needs {cpus=N}"))


def test_a_reason_is_what_the_error_says() -> None:
    found = shown(_refuse)
    assert isinstance(found, NotShown)
    assert found.reason == "--cycle auto needs --cpus N"


def test_what_is_made_of_a_part_is_missing_with_it() -> None:
    assert shown_of(shown(lambda: 3), lambda part: part + 1) == 4
    missing = NotShown(reason="no")
    assert shown_of(missing, lambda part: part + 1) is missing
    assert isinstance(shown_of(3, lambda part: _refuse() + part), NotShown)


def test_a_fault_of_ours_is_no_reason() -> None:
    with pytest.raises(ZeroDivisionError):
        shown(lambda: 1 // 0)
