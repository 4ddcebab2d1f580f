"""Readers with settings of their own, within stages."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import settings_of_read
from shardctl.spec.host import Host
from shardctl.stages.stages import Pipeline, Read
from shardctl.stages.text import parse_stages


def _read(text: str) -> Read:
    source = parse_stages(text).source
    assert isinstance(source, Read)
    return source


@pytest.mark.parametrize(
    ("settings", "own", "of_reader"),
    [
        ({"cycle": 4}, "read", {"cycle": 4}),
        ({"cycle": 4}, "read(cycle=2)", {"cycle": 2}),
        ({"cycle": "auto", "cpus": 4}, "read(cycle=2)", {"cycle": 2}),
        ({"cycle": "auto", "cpus": 4}, "read(block=2)", {"cycle": "auto", "cpus": 4, "block": 2}),
        ({"reverse": True}, "read(file_order=[a])", {"file_order": ("a",)}),
        ({"file_order": ("a",)}, "read(reverse=True)", {"reverse": True}),
        ({"file_order": ("a",)}, "read(reverse=False)", {"file_order": ("a",)}),
        ({"shuffle_files": False}, "read(shuffle_seed=3)", {"shuffle_seed": 3}),
        ({"block": 3}, "read(shuffle_files=False)", {"block": 3, "shuffle_files": False}),
        ({"host": Host(index=0, count=2)}, "read(host=1/3)", {"host": Host(index=1, count=3)}),
        ({"global_seed": 5, "pass_index": 2, "loop": "keras-fit"}, "read",
         {"global_seed": 5, "pass_index": 2, "loop": "keras-fit"}),
    ],
)  # fmt: skip
def test_its_own_settings_are_over_those_of_the_command(
    settings: dict[str, Any], own: str, of_reader: dict[str, Any]
) -> None:
    given = ReadSettings(stages=Pipeline(source=_read(own)), **settings)
    assert settings_of_read(given, _read(own)) == ReadSettings(**of_reader)
