"""Records of examples, and the line that names the settings that shape an order."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.spec.host import Host
from tests.draw.drawn import simulated, text


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reverse": True}, "files reversed"),
        (
            {"shuffle_seed": 3, "reshuffle": False},
            "files shuffled with seed 3, the same each epoch",
        ),
        (
            {"shuffle_files": True, "global_seed": 3, "deterministic": True},
            "files shuffled, global seed 3",
        ),
        ({"repeat_files": True}, "files repeated"),
        ({"host": Host(index=1, count=2), "host_by": "files"}, "host 1/2 by files"),
        ({"buffer": -2, "buffer_seed": 1}, "shuffle buffer the whole epoch with seed 1"),
        ({"batch": 4, "drop_remainder": True}, "batches of 4, last dropped"),
        ({"pass_index": 2, "loop": "keras-fit"}, "pass 2, Keras fit"),
    ],
)
def test_one_line_names_the_pipeline_in_force(settings: dict[str, Any], words: str) -> None:
    assert text(simulated(**settings)).splitlines()[0].endswith(words)
