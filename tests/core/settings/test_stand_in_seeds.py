"""Seeds assumed where none is named: only those that an order needs, and told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.stand_in_seeds import with_stand_in_seeds


@pytest.mark.parametrize(
    ("given", "assumed"),
    [
        pytest.param({}, {}, id="nothing is shuffled"),
        pytest.param({"shuffle_files": True}, {"shuffle_seed": 1}, id="files"),
        pytest.param({"buffer": 9}, {"buffer_seed": 2}, id="a buffer"),
        pytest.param({"shuffle_seed": 7, "buffer": 9}, {"buffer_seed": 2}, id="one of two"),
        pytest.param({"shuffle_seed": 7, "buffer": 9, "buffer_seed": 8}, {}, id="all are named"),
        pytest.param({"buffer": 9, "global_seed": 3}, {}, id="a global seed gives the buffer one"),
        # Without a seed of its own TFDS shuffles files and reads them as they come.
        pytest.param(
            {"shuffle_files": True, "global_seed": 3},
            {"deterministic": True},
            id="a global seed gives the files one, not their order",
        ),
        pytest.param(
            {"shuffle_files": True, "global_seed": 3, "deterministic": True}, {}, id="in order"
        ),
        pytest.param({"deterministic": False}, {"deterministic": True}, id="as they come"),
    ],
)
def test_what_is_left_open_is_assumed(given: dict[str, Any], assumed: dict[str, Any]) -> None:
    settings = ReadSettings(**given)
    fixed, told = with_stand_in_seeds(settings)
    assert told == assumed
    assert fixed == replace(settings, **assumed)
    fixed.check_predictable(ordered=False)
    assert with_stand_in_seeds(fixed) == (fixed, {})
