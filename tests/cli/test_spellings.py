"""One fault, told alike by Python, the command line and shardctl.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl as api
from shardctl.errors import ShardctlError
from shardctl.settings.table import SETTINGS
from tests.cli.conftest import Shardctl

LAYOUT = "name: toy\nsplits: {train: {shard_lengths: [4, 0, 5]}}\n"


def test_every_least_value_is_enforced_alike(shardctl: Shardctl) -> None:
    Path("toy.yaml").write_text(LAYOUT)
    bounded = [(s, s.kind.least) for s in SETTINGS if s.kind.least is not None]
    assert len(bounded) > 5
    for setting, least in bounded:
        low = least - 1
        with pytest.raises(ShardctlError, match=f"^{setting.field}={low}: a number "):
            api.ReadSettings(**dict[str, Any]({setting.field: low}))
        ran = shardctl("simulate", "-d", "toy.yaml", setting.option, low)
        assert ran.stderr.startswith(f"error: {setting.option} '{low}': a ")
        Path("shardctl.yaml").write_text(f"read:\n\n  {setting.name}: {low}\n")
        ran = shardctl("simulate", "-d", "toy.yaml")
        assert f"shardctl.yaml:3: {setting.field}={low}: a number " in ran.stderr
        Path("shardctl.yaml").unlink()
