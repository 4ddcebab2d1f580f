"""How long is waited, as variables say."""

from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.stores.failures import limits


def test_a_dead_place_is_given_up_within_about_a_minute() -> None:
    usual = limits()
    assert usual.patience + usual.timeout <= 60
    assert usual.connect_timeout <= 10


def test_variables_say_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_TIMEOUT", "2.5")
    monkeypatch.setenv("SHARDCTL_REMOTE_PATIENCE", " 300 ")
    monkeypatch.setenv("SHARDCTL_REMOTE_REQUESTS", "64")
    found = limits()
    assert (found.timeout, found.patience, found.requests) == (2.5, 300, 64)
    assert found.seconds_for(20_000) == 3.5


@pytest.mark.parametrize("text", ["x", "0", "-1", "nan", "inf", "1e9"])
def test_what_is_no_number_of_seconds_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARDCTL_REMOTE_TIMEOUT", text)
    with pytest.raises(UsageError, match=r"SHARDCTL_REMOTE_TIMEOUT must be a number from 0\.01"):
        limits()
