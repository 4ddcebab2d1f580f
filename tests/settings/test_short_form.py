"""Stages as the settings that say the same: in real TensorFlow, over passes and epochs of Keras."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import short_form, stages_of
from shardctl.spec.host import Host
from shardctl.stages.stages import Pipeline, Shard, WithOptions
from shardctl.stages.text import parse_stages, text_of
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.order.order_cases import Case, elements, tensorflow_dataset
from tests.pipelines.real_pipelines import epochs_of_fit, real_dataset
from tests.settings.random_chains import (
    LENGTHS,
    is_possible,
    random_chain,
    reader_settings,
)

NUM_PASSES = 3
SHUFFLED = {"buffer": 9, "buffer_seed": 7}


def _case(settings: ReadSettings) -> Case:
    return Case(lengths=LENGTHS, slices=((0, sum(LENGTHS)),), settings=settings)


def _real(settings: ReadSettings, pipeline: Pipeline) -> Any:
    """Return the dataset of TensorFlow: stages behind the reader that settings say."""
    import tensorflow as tf

    return real_dataset(pipeline, lambda read: tensorflow_dataset(tf, _case(settings)))


def _lowered(rng: random.Random) -> tuple[ReadSettings, Pipeline, ReadSettings] | None:
    """Return a reader, a chain behind it and the settings that both come to, if to any."""
    reader = reader_settings(rng)
    seeded = reader.global_seed is None
    pipeline = random_chain(rng, seeded=seeded)
    if not is_possible(pipeline):
        return None
    lowered = short_form(replace(reader, stages=pipeline))
    return None if lowered.stages is not None else (reader, pipeline, lowered)


def _check_passes(rng: random.Random) -> int:
    found = _lowered(rng)
    if found is None:
        return 0
    reader, pipeline, lowered = found
    dataset = _real(reader, pipeline)
    for index in range(NUM_PASSES):
        order = _case(lowered).order(index)
        predicted = order.read(0, order.num_examples).tolist()
        assert elements(dataset) == predicted, (reader, text_of(pipeline), index)
    again = stages_of(lowered)
    assert short_form(replace(reader, stages=again)) == lowered
    return 1


def test_settings_of_stages_have_the_order_of_the_stages() -> None:
    num = sum(_check_passes(random.Random(seed)) for seed in range(30))
    add_cases(num)
    assert num >= 15


@pytest.mark.fuzz
def test_settings_of_stages_have_the_order_of_many_stages() -> None:
    rng = random_of_a_fuzz_run()
    for _ in range(FUZZ):
        add_cases(_check_passes(rng))


def _check_fit(rng: random.Random) -> int:
    found = _lowered(rng)
    if found is None or found[2].batch is None:  # Keras trains on batches
        return 0
    reader, pipeline, lowered = found
    predicted = []
    for index in range(NUM_PASSES):
        try:
            order = _case(replace(lowered, loop="keras-fit")).order(index)
            predicted.append(order.read(0, order.num_examples).tolist())
        except UnpredictableOrderError:  # a repeat over the shuffle of the files
            return 0
    seen = epochs_of_fit(_real(reader, pipeline), ("batch", "example", False), NUM_PASSES)
    assert seen == predicted, (reader, text_of(pipeline))
    return 1


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_settings_of_stages_have_the_order_of_the_stages_in_keras() -> None:
    num = sum(_check_fit(random.Random(seed)) for seed in range(16))
    add_cases(num)
    assert num >= 3


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("shuffle(9, seed=7) | repeat(3) | batch(4)", SHUFFLED | {"epochs": 3, "batch": 4}),
        ("map | prefetch | shuffle(9, seed=7) | repeat(3)", SHUFFLED | {"epochs": 3}),
        (
            "shuffle(9, seed=7) | map | batch(4) | map(calls=auto) | prefetch",
            SHUFFLED | {"batch": 4},
        ),
        ("shuffle(9, seed=7) | map | repeat(1) | batch(4)", SHUFFLED | {"batch": 4}),
        (
            "shuffle(9, seed=7) | take(-1) | skip(0) | repeat(1) | repeat(2)",
            SHUFFLED | {"epochs": 2},
        ),
        (
            "shard(4, 1) | map | shuffle(9, seed=7)",
            {"host": Host(index=1, count=4), "host_by": "examples", **SHUFFLED},
        ),
        ("shard(4, 1)", {"host": Host(index=1, count=4), "host_by": "examples"}),
        (
            "cache | shuffle(9, seed=7, reshuffle=False) | batch(2, drop_remainder=True)",
            SHUFFLED | {"buffer_reshuffle": False, "batch": 2, "drop_remainder": True},
        ),
        ("map | repeat(3)", {"epochs": 3}),
        ("with_options(deterministic=True) | repeat(3)", {"epochs": 3}),
        ("shuffle(9, seed=7) | batch(4) | with_options(fusion=False)", SHUFFLED | {"batch": 4}),
        ("map", {}),
        ("read(shuffle_seed=5, cycle=2) | repeat(2)", {"shuffle_seed": 5, "cycle": 2, "epochs": 2}),
    ],
)
def test_chains_that_settings_say(text: str, settings: dict[str, Any]) -> None:
    assert short_form(ReadSettings(stages=parse_stages(text))) == ReadSettings(**settings)


@pytest.mark.parametrize(
    "text",
    [
        "repeat(3) | shuffle(9, seed=7)",
        "shuffle(9, seed=7) | map | repeat(3)",
        "shuffle(9, seed=7) | prefetch | repeat(3)",
        "shuffle(9, seed=7) | with_options | repeat(3)",
        "shuffle(9, seed=7) | cache | repeat(3)",
        "shuffle(9, seed=7) | batch(4) | repeat(3)",
        "shuffle(9, seed=7) | repeat",
        "repeat",
        "shuffle(9, seed=7) | repeat(2) | repeat(3)",
        "shuffle(9, seed=7) | shuffle(9, seed=8)",
        "shuffle(9, seed=(7, 8))",
        "shuffle(9, seed=7) | repeat(3) | with_options(fusion=False)",
        "shuffle(9, seed=7) | repeat(3) | with_options(optimizations=False)",
        "shuffle(9, seed=7) | take(-1) | with_options(optimizations=False) | repeat(2)",
        "repeat(1) | with_options(optimizations=False)",
        "with_options(deterministic=False)",
        "with_options(warm_start=True)",
        "map(deterministic=False)",
        "map(calls=4, deterministic=False)",
        "batch(4) | shuffle(9, seed=7)",
        "batch(4) | batch(4)",
        "batch(4) | unbatch",
        "shuffle(9, seed=7) | shard(4, 1)",
        "shard(4, 1) | shard(2, 1)",
        "take(5)",
        "skip(5)",
        "skip(-1)",
        "unbatch",
        "filter",
        "filter(kept='seen.txt')",
        "concatenate(test)",
        "flat_map",
        "cache('file')",
        "train | repeat(3)",
        "read(data=mnist) | repeat(3)",
        "zip(train)",
    ],
)
def test_chains_that_settings_do_not_say(text: str) -> None:
    settings = ReadSettings(stages=parse_stages(text))
    assert short_form(settings) is settings


def test_a_cache_of_files_that_are_shuffled_anew_is_kept() -> None:
    settings = ReadSettings(shuffle_seed=1, stages=parse_stages("cache | repeat(2)"))
    assert short_form(settings) is settings
    alike = replace(settings, reshuffle=False)
    assert short_form(alike) == ReadSettings(shuffle_seed=1, reshuffle=False, epochs=2)


def test_two_ways_to_share_examples_are_kept() -> None:
    stages = parse_stages("shard(4, 1)")
    settings = ReadSettings(host=Host(index=0, count=2), stages=stages)
    assert short_form(settings) is settings
    assert short_form(replace(settings, stages=parse_stages("shard(1, 0)"))) == ReadSettings(
        host=Host(index=0, count=2)
    )


def test_files_that_repeat_without_end_are_kept() -> None:
    settings = ReadSettings(repeat_files=True, stages=parse_stages("shuffle(9, seed=7)"))
    assert short_form(settings) is settings
    assert text_of(stages_of(ReadSettings(repeat_files=True, epochs=3, batch=2))) == "batch(2)"


def test_settings_without_stages_stay_as_they_are() -> None:
    settings = ReadSettings(buffer=9, epochs=2, cycle=3)
    assert short_form(settings) is settings
    with_stages = ReadSettings(cycle=3, stages=stages_of(settings))
    assert short_form(with_stages) == settings
    assert stages_of(with_stages) is with_stages.stages


def test_a_shard_among_one_is_no_host_even_where_nothing_is_optimised() -> None:
    alone = (Shard(num_shards=1, index=0), WithOptions(optimizations=False))
    assert short_form(ReadSettings(stages=Pipeline(stages=alone))) == ReadSettings()
