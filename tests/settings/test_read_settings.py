"""Read settings: values that make no sense, and orders that TensorFlow leaves open."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.settings.read_settings import (
    ReadSettings,
    as_settings,
    refuse_loader,
    with_stand_in_seeds,
)
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages
from tests.golden import assert_answers
from tests.strategies import error_line


def said(question: str) -> str:
    """Return settings, why their order is open or refused, and what is assumed of them."""
    settings = as_settings(ast.literal_eval(question))
    lines = [repr(settings)]
    for name, ordered in (("open", False), ("of an ordered dataset", True)):
        error = error_line(lambda of=ordered: settings.check_predictable(ordered=of))  # type: ignore[misc]
        lines += [] if error is None else [f"{name}: {error}"]
    fixed, assumed = with_stand_in_seeds(settings)
    assert fixed == replace(settings, **assumed)
    assert with_stand_in_seeds(fixed) == (fixed, {})
    if assumed:
        fixed.check_predictable(ordered=False)
        lines.append(f"assumed: {assumed}")
    return "\n".join(lines)


def test_which_settings_are_taken_open_refused_and_assumed() -> None:
    assert_answers(Path(__file__).parent / "golden" / "settings.txt", said)


def test_an_ordered_dataset_is_read_file_by_file() -> None:
    for settings in (ReadSettings(), ReadSettings(cycle=1), ReadSettings(reverse=True)):
        settings.check_predictable(ordered=True)
        assert settings.cycle_length(ordered=True) == 1
    assert ReadSettings().cycle_length(ordered=False) == 16


@pytest.mark.parametrize(("cpus", "cycle"), [(1, 1), (3, 1), (4, 2), (8, 3), (48, 16)])
def test_auto_is_a_third_of_the_cpus_rounded_up(cpus: int, cycle: int) -> None:
    assert ReadSettings(cycle="auto", cpus=cpus).cycle_length(ordered=False) == cycle


def test_auto_is_what_tensorflow_takes_on_this_machine() -> None:
    import os

    import tensorflow as tf

    files = tf.data.Dataset.range(60).interleave(
        lambda file: tf.data.Dataset.range(file * 100, file * 100 + 50),
        cycle_length=None,
        block_length=1,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=True,
    )
    first = [int(x) for x in files.take(60)]
    cycle = next(i for i, x in enumerate(first) if x % 100)
    cpus = len(os.sched_getaffinity(0))
    assert cycle == ReadSettings(cycle="auto", cpus=cpus).cycle_length(ordered=False)


def test_its_repr_is_what_makes_it_again_without_what_is_left_as_it_is() -> None:
    host = Host(index=1, count=3)
    settings = ReadSettings(cycle=4, shuffle_seed=0, host=host, drop_remainder=True, batch=8)
    assert eval(repr(settings)) == settings
    assert repr(ReadSettings()) == "ReadSettings()"
    assert repr(ReadSettings(file_order=("a", "b"))) == "ReadSettings(file_order=('a', 'b'))"
    many = ReadSettings(file_order=tuple(map(str, range(100_000))))
    assert repr(many) == "ReadSettings(file_order=<888,890 characters>)"
    staged = ReadSettings(cycle=4, stages=parse_stages("cache | shuffle(9, seed=3) | batch(4)"))
    assert repr(staged) == "ReadSettings(cycle=4, stages='cache | shuffle(9, seed=3) | batch(4)')"
    assert eval(repr(staged)) == staged
    long = ReadSettings(stages=parse_stages(" | ".join(["map"] * 300)))
    assert repr(long) == "ReadSettings(stages=<1,799 characters>)"


def test_settings_of_the_reader_go_with_stages() -> None:
    reader: dict[str, Any] = {"cycle": "auto", "cpus": 7, "block": 2, "shuffle_seed": 1}
    reader |= {"reshuffle": False, "deterministic": True, "global_seed": 3, "repeat_files": True}
    reader |= {"reverse": True, "host": Host(index=0, count=2), "pass_index": 1, "epochs": 1}
    stages = parse_stages("repeat(2)")
    settings = ReadSettings(**reader, loop="keras-fit", stages=stages)
    assert settings.stages == stages
    assert as_settings({"stages": "repeat(2)"}) == as_settings({"stages": [{"repeat": 2}]})


@pytest.mark.parametrize("loader", LOADERS)
def test_what_is_of_tfds_alone_is_refused_to_others_by_name(loader: str) -> None:
    refuse_loader(ReadSettings(), "anything", "nothing")
    with pytest.raises(UsageError, match=f"^--loader {loader}: it is of TFDS.*; do that$"):
        refuse_loader(as_settings({"loader": loader}), "it", "do that")
    given = {"loader": "torch", "batch": 2}
    for asked in ({"target": 0.5}, {"memory": "1MiB"}):
        with pytest.raises(UsageError, match=r"^--loader torch: .*DataLoader reads here; "):
            shardctl.quality("mnist", "test", given, **asked)
