"""Stages as the settings that say the same, beside TensorFlow; and readers within stages."""

from __future__ import annotations

import ast
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.settings.names import READER_SETTINGS, reader_arguments
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.settings.short_form import settings_of_read, short_form, stages_of
from shardctl.settings.table import SETTING_BY_NAME
from shardctl.spec.host import Host
from shardctl.stages import stages as tf
from shardctl.stages.part import Stage
from shardctl.stages.text import parse_stages, text_of
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.golden import assert_answers
from tests.order.order_cases import Case, elements, instructions
from tests.pipelines.real_pipelines import epochs_of_fit, real_dataset

LENGTHS = (3, 0, 5, 4, 1, 6)
NUM_PASSES = 3
GOLDEN = Path(__file__).parent / "golden"
BUFFER = {"buffer": 9, "buffer_seed": 7}
EXAMPLES = {"host": Host(index=1, count=4), "host_by": "examples"}


def _settings(text: str, **more: Any) -> ReadSettings:
    return ReadSettings(stages=parse_stages(text), **more)


# Random chains behind a reader, most of them near the one that settings can say.


def _reader(rng: random.Random) -> ReadSettings:
    settings: dict[str, Any] = {"cycle": rng.randrange(1, 5), "block": rng.randrange(1, 4)}
    if rng.random() < 0.6:
        settings["shuffle_seed"] = rng.randrange(9)
        settings["reshuffle"] = rng.choice([None, True, False])
    if rng.random() < 0.3:
        settings["global_seed"] = rng.randrange(9)
    return ReadSettings(**settings)


def _chain(rng: random.Random, *, seeded: bool) -> tf.Pipeline:
    """Return shard, shuffle, repeat and batch with something in between, or nearly so.

    seeded: whether every shuffle has a seed of its own.
    """
    count = rng.randrange(1, 4)
    kinds: list[tuple[Stage, float]] = [
        (tf.Shard(num_shards=count, index=rng.randrange(count)), 0.3),
        (
            tf.Shuffle(
                buffer=rng.choice([1, 2, 5, 30, -2]),
                seed=rng.randrange(9) if seeded or rng.random() < 0.7 else None,
                reshuffle=rng.choice([None, None, True, False]),
            ),
            0.8,
        ),
        (tf.Repeat(count=rng.choice([1, 2, 3])), 0.7),
        (tf.Batch(size=rng.randrange(1, 6), drop_remainder=rng.random() < 0.3), 0.5),
        (tf.Map(), 0.0),
    ]
    between = parse_stages(
        "map | map(calls=2) | map(calls=auto) | map(deterministic=True) | prefetch | prefetch(0) | "
        "with_options | with_options(deterministic=True) | with_options(fusion=True) | "
        "with_options(fusion=False) | with_options(optimizations=True) | "
        "with_options(optimizations=False) | with_options(warm_start=True) | cache | take(-1) | "
        "skip(0) | repeat(1) | shard(1, 0) | take(7) | skip(2) | batch(2, drop_remainder=True) | "
        "unbatch"
    ).stages
    stages: list[Stage] = []
    noise = rng.choice([0.0, 0.1, 0.3])
    for stage, rate in kinds:
        while rng.random() < noise:
            stages.append(rng.choice(between))
        stages += [stage] * (rng.random() < rate)
    if rng.random() < 0.15 and len(stages) > 1:
        at = rng.randrange(len(stages) - 1)
        stages[at], stages[at + 1] = stages[at + 1], stages[at]
    return tf.Pipeline(stages=tuple(stages))


def _is_possible(pipeline: tf.Pipeline) -> bool:
    """Return whether TensorFlow can build it: only batches are taken apart."""
    depth, depths = 0, [0]
    for stage in pipeline.stages:
        depth += isinstance(stage, tf.Batch) - isinstance(stage, tf.Unbatch)
        depths.append(depth)
    return set(depths) <= {0, 1}


def _lowered(rng: random.Random) -> tuple[ReadSettings, tf.Pipeline, ReadSettings] | None:
    """Return a reader, a chain behind it and the settings that both come to, if to any."""
    reader = _reader(rng)
    pipeline = _chain(rng, seeded=reader.global_seed is None)
    lowered = short_form(replace(reader, stages=pipeline)) if _is_possible(pipeline) else None
    found = lowered is not None and lowered.stages is None
    return (reader, pipeline, lowered) if found and lowered is not None else None


def _case(settings: ReadSettings) -> Case:
    return Case(lengths=LENGTHS, slices=((0, sum(LENGTHS)),), settings=settings)


def _real(settings: ReadSettings, pipeline: tf.Pipeline) -> Any:
    """Return the pipeline by TensorFlow, over ranges in place of files."""
    from tensorflow import constant, data, int64, random

    random.set_seed(settings.global_seed)
    pieces = constant(instructions(_case(settings)), int64)
    files = data.Dataset.from_tensor_slices((pieces[:, 0], pieces[:, 1]))
    if settings.shuffles_files:
        anew = {"reshuffle_each_iteration": settings.reshuffle}
        files = files.shuffle(len(pieces), seed=settings.shuffle_seed, **anew)
    read = files.interleave(
        lambda start, count: data.Dataset.range(start, start + count),
        cycle_length=settings.cycle_length(ordered=False),
        block_length=settings.block,
        num_parallel_calls=data.AUTOTUNE,
        deterministic=True,
    ).apply(data.experimental.assert_cardinality(sum(LENGTHS)))
    return real_dataset(pipeline, lambda _: read)


def _ids(settings: ReadSettings, index: int) -> list[int]:
    order = _case(settings).order(index)
    ids: list[int] = order.read(0, order.num_examples).tolist()
    return ids


def _check_passes(rng: random.Random) -> int:
    found = _lowered(rng)
    if found is None:
        return 0
    reader, pipeline, lowered = found
    dataset = _real(reader, pipeline)
    for index in range(NUM_PASSES):
        assert elements(dataset) == _ids(lowered, index), (reader, text_of(pipeline), index)
    assert short_form(replace(reader, stages=stages_of(lowered))) == lowered
    return 1


def test_settings_of_stages_have_the_order_of_the_stages() -> None:
    num = sum(_check_passes(random.Random(seed)) for seed in range(30))
    add_cases(num)
    assert num >= 10


@pytest.mark.fuzz
def test_settings_of_stages_have_the_order_of_many_stages() -> None:
    rng = random_of_a_fuzz_run()
    add_cases(sum(_check_passes(rng) for _ in range(FUZZ)))


def _check_fit(rng: random.Random) -> int:
    found = _lowered(rng)
    if found is None or found[2].batch is None:  # Keras trains on batches
        return 0
    reader, pipeline, lowered = found
    fit = replace(lowered, loop="keras-fit")
    try:
        predicted = [_ids(fit, index) for index in range(NUM_PASSES)]
    except UnpredictableOrderError:  # a repeat over the shuffle of the files
        return 0
    seen = epochs_of_fit(_real(reader, pipeline), ("batch", "example", False), NUM_PASSES)
    assert seen == predicted, (reader, text_of(pipeline))
    return 1


@pytest.mark.filterwarnings("ignore:Your input ran out of data")
def test_settings_of_stages_have_the_order_of_the_stages_in_keras() -> None:
    num = sum(_check_fit(random.Random(seed)) for seed in range(16))
    add_cases(num)
    assert num >= 2


def test_which_chains_settings_say() -> None:
    assert_answers(GOLDEN / "short_form.txt", lambda text: short_form(_settings(text)))


def test_what_the_settings_of_the_reader_keep() -> None:
    anew = _settings("cache | repeat(2)", shuffle_seed=1)  # files that are shuffled anew
    shared = _settings("shard(4, 1)", host=Host(index=0, count=2))  # two ways to share
    endless = _settings("shuffle(9, seed=7)", repeat_files=True)
    plain = ReadSettings(buffer=9, epochs=2, cycle=3)
    for settings in (anew, shared, endless, plain):
        assert short_form(settings) is settings
    alike = short_form(replace(anew, reshuffle=False))
    assert alike == ReadSettings(shuffle_seed=1, reshuffle=False, epochs=2)
    alone = short_form(replace(shared, stages=parse_stages("shard(1, 0)")))
    assert alone == ReadSettings(host=Host(index=0, count=2))
    assert text_of(stages_of(ReadSettings(repeat_files=True, epochs=3, batch=2))) == "batch(2)"
    with_stages = ReadSettings(cycle=3, stages=stages_of(plain))
    assert short_form(with_stages) == plain
    assert stages_of(with_stages) is with_stages.stages


# Readers with settings of their own.


def _of_reader(question: str) -> str:
    settings = as_settings(ast.literal_eval(question))
    assert settings.stages is not None
    text, source = text_of(settings.stages), settings.stages.source
    if not isinstance(source, tf.Read):
        return text
    return f"{text}\n{settings_of_read(settings, source)}"


def test_settings_of_a_reader_are_over_those_of_the_command() -> None:
    assert_answers(GOLDEN / "readers.txt", _of_reader)
    assert [name for name in SETTING_BY_NAME if name in READER_SETTINGS] == list(READER_SETTINGS)
    read = tf.Read(settings=(("cycle_length", 3), ("file_order", ("a",))))
    assert reader_arguments(read) == {"cycle": 3, "file_order": ("a",)}
