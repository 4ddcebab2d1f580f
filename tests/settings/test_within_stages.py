"""Settings of a reader within stages, before they are over those of the command."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.errors import UsageError
from shardctl.settings.names import (
    READER_SETTINGS,
    reader_arguments,
    with_known_settings,
)
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.table import SETTING_BY_NAME
from shardctl.stages.stages import Read
from shardctl.stages.text import parse_stages, text_of


def _read(text: str) -> Read:
    pipeline: Any = ReadSettings(stages=text).stages  # type: ignore[arg-type]
    assert isinstance(pipeline.source, Read)
    return pipeline.source


def test_they_are_kept_by_their_own_names_in_the_order_of_the_table() -> None:
    read = _read(
        "read(train, host=1/4, shuffle_reshuffle_each_iteration=False, shuffle-seed=3, "
        "interleave_cycle_length=4, file_order=[b, a])"
    )
    assert read.settings == (
        ("cycle", 4),
        ("shuffle_seed", 3),
        ("reshuffle", False),
        ("file_order", ("b", "a")),
        ("host", "1/4"),
    )
    assert [name for name in SETTING_BY_NAME if name in READER_SETTINGS] == list(READER_SETTINGS)


def test_every_reader_is_looked_at() -> None:
    text = """zip(read(block_length=1), shared('s', read(block_length=2)))
              | concatenate(choose_from_datasets([read(block_length=3)], choices=[0]))"""
    known = with_known_settings(parse_stages(text), ReadSettings)
    assert text_of(known) == text_of(parse_stages(text.replace("block_length", "block")))


def test_none_is_what_tfds_means_by_it() -> None:
    read = _read("read(interleave_cycle_length=None, cpus=7, interleave_block_length=None)")
    assert read.settings == (("cycle", "auto"), ("cpus", 7), ("block", 1))
    assert _read("read(cycle=None)").settings == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("read(shufle_seed=3)", "shufle_seed: no such setting; did you mean shuffle_seed? there "),
        ("read(batch=3)", "batch is no setting of a reader"),
        ("read(global_seed=3)", "global_seed is no setting of a reader"),
        ("read(stages=3)", "stages is no setting of a reader"),
        ("read(seed=3)", "seed: it could be --shuffle-seed, --buffer-seed or --global-seed"),
        ("read(cycle=1, cycle_length=2)", "cycle_length: the same setting as cycle; keep one"),
        ("read(cycle='x')", 'cycle="x": a whole number is needed'),
        ("read(cycle=0)", "cycle=0: a number from 1 to"),
        ("read(cycle=auto)", "--cycle auto needs --cpus N"),
        ("read(host=4/4)", "host"),
        ("read(host=0/2, host_by=examples)", "host_by=examples is shard(N, I) behind the reader"),
    ],
)
def test_what_is_no_setting_of_a_reader_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        ReadSettings(stages=text)  # type: ignore[arg-type]
    assert said in str(caught.value)
    assert str(caught.value).startswith("--stages: read: ")


def test_they_are_arguments_of_settings() -> None:
    assert reader_arguments(Read(settings=(("cycle_length", 3), ("file_order", ("a",))))) == {
        "cycle": 3,
        "file_order": ("a",),
    }
