"""Read settings: values that make no sense, and orders that TensorFlow leaves open."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import shardctl
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.loaders.loader import LOADERS
from shardctl.settings.read_settings import (
    ReadSettings,
    as_settings,
    refuse_loader,
    with_stand_in_seeds,
)
from shardctl.spec.host import Host
from shardctl.stages.text import parse_stages


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cycle": 0}, "cycle=0: a number from 1"),
        ({"cycle": 2**63}, "cycle=.*: a number from 1 to 9223372036854775807"),
        ({"block": 0}, "block=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"batch": -3}, "batch=-3"),
        ({"pass_index": -1}, "pass_index=-1: a number from 0"),
        ({"cpus": 0, "cycle": "auto"}, "cpus=0"),
        ({"buffer": 0}, "buffer=0: a number of examples from 1 to .* or -2 for the whole"),
        ({"buffer": -1}, "buffer=-1"),
        ({"buffer": 2**63}, "buffer=9223372036854775808"),
        ({"host_by": "shards"}, 'host_by="shards": choose from even, files, examples'),
        ({"loop": "jax"}, 'loop="jax": choose from python, keras-fit'),
        ({"cycle": "auto"}, "--cycle auto needs --cpus N"),
        ({"cpus": 8}, "cpus is read with --cycle auto only"),
        ({"reverse": True, "file_order": ("a",)}, "two orders of the files; choose one"),
        ({"drop_remainder": True}, "--drop-remainder needs --batch N"),
        ({"buffer_seed": 1}, "need --buffer N"),
        ({"buffer_reshuffle": False}, "need --buffer N"),
    ],
)
def test_values_outside_their_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ReadSettings(**settings)


@pytest.mark.parametrize(
    ("settings", "reason", "way_out"),
    [
        ({"shuffle_files": True}, "another order in each run", "--shuffle-seed N"),
        ({"buffer": 5}, "another order in each run", "--buffer-seed N"),
        (
            {"shuffle_files": True, "global_seed": 1},
            *("so the order of the examples depends on timing", "--shuffle-seed N, or --determin"),
        ),
        ({"deterministic": False}, "as their decoding ends", "leave it out"),
        ({"deterministic": False, "shuffle_seed": 3}, "another order each run", "leave it out"),
        (
            {"repeat_files": True, "pass_index": 1, "shuffle_seed": 3},
            *("where it was cut leaves the file order to timing", "build the dataset anew"),
        ),
    ],
)
def test_what_tensorflow_leaves_open_is_refused_with_the_way_out(
    settings: dict[str, Any], reason: str, way_out: str
) -> None:
    with pytest.raises(UnpredictableOrderError) as error:
        ReadSettings(**settings).check_predictable(ordered=False)
    assert reason in str(error.value)
    assert way_out in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"shuffle_files": True, "shuffle_seed": 1},
        {"shuffle_files": True, "global_seed": 1, "deterministic": True},
        {"shuffle_files": False, "shuffle_seed": 1},
        {"buffer": 5, "global_seed": 1},
        {"buffer": 5, "buffer_seed": 0},
        {"repeat_files": True, "epochs": 3},
        {"deterministic": True},
    ],
)
def test_what_tensorflow_fixes_is_not_refused(settings: dict[str, Any]) -> None:
    ReadSettings(**settings).check_predictable(ordered=False)


def test_a_buffer_as_large_as_an_endless_stream_is_refused() -> None:
    with pytest.raises(UsageError, match="the buffer never fills; give --buffer N"):
        ReadSettings(buffer=-2, buffer_seed=1, repeat_files=True).check_predictable(ordered=False)


@pytest.mark.parametrize(
    "settings",
    [
        {"shuffle_seed": 1},
        {"cycle": 16},
        {"cycle": "auto", "cpus": 2},  # a cycle of 1, but no 1 for TFDS
    ],
)
def test_the_guard_of_ordered_datasets(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="TFDS refuses --shuffle-files and any --cycle but 1, bec"):
        ReadSettings(**settings).check_predictable(ordered=True)


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


@pytest.mark.parametrize(
    ("given", "assumed"),
    [
        ({}, {}),
        ({"shuffle_files": True}, {"shuffle_seed": 1}),
        ({"buffer": 9}, {"buffer_seed": 2}),
        ({"shuffle_seed": 7, "buffer": 9}, {"buffer_seed": 2}),
        ({"shuffle_seed": 7, "buffer": 9, "buffer_seed": 8}, {}),
        ({"buffer": 9, "global_seed": 3}, {}),
        # Without a seed of its own TFDS shuffles files and reads them as they come.
        ({"shuffle_files": True, "global_seed": 3}, {"deterministic": True}),
        ({"shuffle_files": True, "global_seed": 3, "deterministic": True}, {}),
        ({"deterministic": False}, {"deterministic": True}),
    ],
)
def test_what_is_left_open_is_assumed(given: dict[str, Any], assumed: dict[str, Any]) -> None:
    settings = ReadSettings(**given)
    fixed, told = with_stand_in_seeds(settings)
    assert told == assumed
    assert fixed == replace(settings, **assumed)
    fixed.check_predictable(ordered=False)
    assert with_stand_in_seeds(fixed) == (fixed, {})


def test_its_repr_is_what_makes_it_again_without_what_is_left_as_it_is() -> None:
    host = Host(index=1, count=3)
    settings = ReadSettings(cycle=4, shuffle_seed=0, host=host, drop_remainder=True, batch=8)
    assert eval(repr(settings)) == settings
    assert repr(ReadSettings()) == "ReadSettings()"
    assert repr(ReadSettings(file_order=("a", "b"))) == "ReadSettings(file_order=('a', 'b'))"
    many = ReadSettings(file_order=tuple(map(str, range(100_000))))
    assert repr(many) == "ReadSettings(file_order=<100,000 files>)"
    staged = ReadSettings(cycle=4, stages=parse_stages("cache | shuffle(9, seed=3) | batch(4)"))
    assert repr(staged) == "ReadSettings(cycle=4, stages='cache | shuffle(9, seed=3) | batch(4)')"
    assert eval(repr(staged)) == staged
    long = ReadSettings(stages=parse_stages(" | ".join(["map"] * 300)))
    assert repr(long) == "ReadSettings(stages=<1,797 characters>)"


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"buffer": 9}, "so --buffer 9 has no place beside it; write shuffle(N) there"),
        ({"buffer": 9, "buffer_seed": 1}, "so --buffer 9 has no place beside it"),
        ({"epochs": 2}, "so --epochs 2 has no place beside it; write repeat(N) there"),
        ({"batch": 4}, "so --batch 4 has no place beside it; write batch(N) there"),
        ({"batch": 4, "drop_remainder": True}, "so --batch 4 has no place beside it"),
        (
            {"host": Host(index=0, count=2), "host_by": "examples"},
            "so --host-by examples has no place beside it; write shard(N, I) there",
        ),
    ],
)
def test_what_stages_say_is_not_said_beside_them(beside: dict[str, Any], said: str) -> None:
    for text in ("shuffle(9, seed=3) | batch(4)", "read", "train"):
        with pytest.raises(UsageError) as caught:
            ReadSettings(stages=parse_stages(text), **beside)
        assert str(caught.value).startswith(f"--stages says all that is behind the reader, {said}")


def test_settings_of_the_reader_go_with_stages() -> None:
    reader: dict[str, Any] = {"cycle": "auto", "cpus": 7, "block": 2, "shuffle_seed": 1}
    reader |= {"reshuffle": False, "deterministic": True, "global_seed": 3, "repeat_files": True}
    reader |= {"reverse": True, "host": Host(index=0, count=2), "pass_index": 1, "epochs": 1}
    stages = parse_stages("repeat(2)")
    settings = ReadSettings(**reader, loop="keras-fit", stages=stages)
    assert settings.stages == stages
    assert as_settings({"stages": "repeat(2)"}) == as_settings({"stages": [{"repeat": 2}]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workers": 2}, "--workers 2 is read with --loader "),
        ({"shuffle": True}, "such a switch is read with --loader torch"),
        ({"shuffle": False}, "--no-shuffle: it could be --shuffle-files or --buffer; say which"),
        ({"loader": "torch", "cycle": 8}, "--cycle 8 means nothing to PyTorch's DataLoader; it "),
        (
            {"loader": "torch", "stages": "repeat(2)"},
            "--stages repeat(2) means nothing to PyTorch's DataLoader; it ",
        ),
        ({"loader": "torch", "file_order": ("b",)}, "--file-order means nothing to PyTorch's Data"),
        ({"loader": "torch", "loop": "keras-fit"}, "--loop keras-fit means nothing to PyTorch's"),
        ({"loader": "torhc"}, 'loader="torhc": choose from torch, '),
        ({"loader": "torch", "loader_version": "newest"}, "a version is numbers with dots"),
    ],
)
def test_a_setting_that_the_loader_does_not_read_is_refused_by_name(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        as_settings(given)
    assert said in str(caught.value)


@pytest.mark.parametrize("loader", LOADERS)
def test_what_is_of_tfds_alone_is_refused_to_others_by_name(loader: str) -> None:
    refuse_loader(ReadSettings(), "anything", "nothing")
    with pytest.raises(UsageError, match=f"^--loader {loader}: it is of TFDS.*; do that$"):
        refuse_loader(as_settings({"loader": loader}), "it", "do that")
    given = {"loader": "torch", "batch": 2}
    for asked in ({"target": 0.5}, {"memory": "1MiB"}):
        with pytest.raises(UsageError, match=r"^--loader torch: .*DataLoader reads here; "):
            shardctl.quality("mnist", "test", given, **asked)
