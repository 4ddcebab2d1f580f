"""Settings as code make the settings that they were."""

from __future__ import annotations

from typing import Any

import pytest

import shardctl
from shardctl.code.source import settings_code
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages


@pytest.mark.parametrize(
    "settings",
    [
        ReadSettings(),
        ReadSettings(cycle="auto", cpus=4, shuffle_seed=-(2**70), reshuffle=False),
        ReadSettings(file_order=("it's", 'a"b'), host=Host(index=1, count=2), host_by="files"),
        ReadSettings(
            stages=parse_stages("cache | shuffle(3, seed=1) | batch(2)"), loop="keras-fit"
        ),
    ],
)
def test_it_makes_the_settings(settings: ReadSettings) -> None:
    names: dict[str, Any] = {"shardctl": shardctl}
    exec("\n".join(settings_code(settings)), names)
    assert names["settings"] == settings
