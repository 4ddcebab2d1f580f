"""What kept clients depend on."""

from __future__ import annotations

import pytest

from shardctl.stores.failures import surroundings


def test_a_login_by_a_variable_and_a_fork_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = surroundings("AWS_")
    assert surroundings("AWS_") == before
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert surroundings("AWS_") != before
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert surroundings("AWS_") != before
