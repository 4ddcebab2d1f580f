"""Where what can be made again is kept."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shardctl.metadata.index.count import cache_folder


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"SHARDCTL_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/shardctl"),
        ({}, "/home/me/.cache/shardctl"),
    ],
)
def test_the_environment_says_where_it_is(
    env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", "/home/me")
    assert cache_folder(env) == Path(folder)
