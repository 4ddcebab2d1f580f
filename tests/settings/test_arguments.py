"""A mapping of settings as arguments; what it refuses is in test_document.py too."""

from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.settings.names import no_such_setting, settings_from_document
from shardctl.stages.text import parse_stages


def test_names_may_be_written_as_options_are() -> None:
    document = {"shuffle-seed": 3, "buffer-reshuffle": False, "buffer": 2, "pass": 1}
    assert settings_from_document(document) == {
        "shuffle_seed": 3,
        "buffer_reshuffle": False,
        "buffer": 2,
        "pass_index": 1,
    }


def test_nothing_is_left_out_and_the_rest_is_of_its_kind() -> None:
    stages = [{"shuffle": {"buffer": 9, "seed": 3}}]
    assert settings_from_document({"cycle": None, "batch_size": None, "stages": stages}) == {
        "stages": parse_stages("shuffle(9, seed=3)")
    }
    with pytest.raises(UsageError, match=r"^stages=\['cache', 3\]: stage 2: a stage is needed"):
        settings_from_document({"stages": ["cache", 3]})


def test_a_name_that_is_none_is_told_what_is_near() -> None:
    error = no_such_setting("cycel", ["block", "cycle"], ["interleave"])
    assert str(error) == "cycel: no such setting; did you mean cycle? there are: block, cycle"
