"""Stages as the settings that say the same, beside TensorFlow; and readers within stages."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.settings.names import READER_SETTINGS, reader_arguments
from shardctl.settings.read_settings import ReadSettings
from shardctl.settings.short_form import settings_of_read, short_form, stages_of
from shardctl.settings.table import SETTING_BY_NAME
from shardctl.spec.host import Host
from shardctl.stages import stages as ast
from shardctl.stages.part import Stage
from shardctl.stages.text import parse_stages, text_of
from tests.cases import FUZZ, add_cases, random_of_a_fuzz_run
from tests.order.order_cases import Case, elements, tensorflow_dataset
from tests.pipelines.real_pipelines import epochs_of_fit, real_dataset

LENGTHS = (3, 0, 5, 4, 1, 6)
NUM_PASSES = 3
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


def _chain(rng: random.Random, *, seeded: bool) -> ast.Pipeline:
    """Return shard, shuffle, repeat and batch with something in between, or nearly so.

    seeded: whether every shuffle has a seed of its own.
    """
    count = rng.randrange(1, 4)
    kinds: list[tuple[Stage, float]] = [
        (ast.Shard(num_shards=count, index=rng.randrange(count)), 0.3),
        (
            ast.Shuffle(
                buffer=rng.choice([1, 2, 5, 30, -2]),
                seed=rng.randrange(9) if seeded or rng.random() < 0.7 else None,
                reshuffle=rng.choice([None, None, True, False]),
            ),
            0.8,
        ),
        (ast.Repeat(count=rng.choice([1, 2, 3])), 0.7),
        (ast.Batch(size=rng.randrange(1, 6), drop_remainder=rng.random() < 0.3), 0.5),
        (ast.Map(), 0.0),
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
    return ast.Pipeline(stages=tuple(stages))


def _is_possible(pipeline: ast.Pipeline) -> bool:
    """Return whether TensorFlow can build it: only batches are taken apart."""
    depth, depths = 0, [0]
    for stage in pipeline.stages:
        depth += isinstance(stage, ast.Batch) - isinstance(stage, ast.Unbatch)
        depths.append(depth)
    return set(depths) <= {0, 1}


def _lowered(rng: random.Random) -> tuple[ReadSettings, ast.Pipeline, ReadSettings] | None:
    """Return a reader, a chain behind it and the settings that both come to, if to any."""
    reader = _reader(rng)
    pipeline = _chain(rng, seeded=reader.global_seed is None)
    lowered = short_form(replace(reader, stages=pipeline)) if _is_possible(pipeline) else None
    found = lowered is not None and lowered.stages is None
    return (reader, pipeline, lowered) if found and lowered is not None else None


def _case(settings: ReadSettings) -> Case:
    return Case(lengths=LENGTHS, slices=((0, sum(LENGTHS)),), settings=settings)


def _real(settings: ReadSettings, pipeline: ast.Pipeline) -> Any:
    import tensorflow as tf

    return real_dataset(pipeline, lambda read: tensorflow_dataset(tf, _case(settings)))


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


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("shuffle(9, seed=7) | repeat(3) | batch(4)", BUFFER | {"epochs": 3, "batch": 4}),
        ("map | prefetch | shuffle(9, seed=7) | repeat(3)", BUFFER | {"epochs": 3}),
        ("shuffle(9, seed=7) | map | batch(4) | map(calls=auto)", BUFFER | {"batch": 4}),
        ("shuffle(9, seed=7) | map | repeat(1) | batch(4)", BUFFER | {"batch": 4}),
        ("shuffle(9, seed=7) | take(-1) | skip(0) | repeat(1) | repeat(2)", BUFFER | {"epochs": 2}),
        ("shard(4, 1) | map | shuffle(9, seed=7)", BUFFER | EXAMPLES),
        ("shard(4, 1)", EXAMPLES),
        (
            "cache | shuffle(9, seed=7, reshuffle=False) | batch(2, drop_remainder=True)",
            BUFFER | {"buffer_reshuffle": False, "batch": 2, "drop_remainder": True},
        ),
        ("cache | map | repeat(3) | cache | map", {"epochs": 3}),
        ("with_options(deterministic=True) | repeat(3)", {"epochs": 3}),
        ("shuffle(9, seed=7) | batch(4) | with_options(fusion=False)", BUFFER | {"batch": 4}),
        ("take(-1) | skip(0) | repeat(1) | shard(1, 0) | prefetch(0) | map", {}),
        ("shard(1, 0) | with_options(optimizations=False)", {}),  # even where it is kept
        ("read(shuffle_seed=5, cycle=2) | repeat(2)", {"shuffle_seed": 5, "cycle": 2, "epochs": 2}),
    ],
)
def test_chains_that_settings_say(text: str, settings: dict[str, Any]) -> None:
    assert short_form(_settings(text)) == ReadSettings(**settings)


@pytest.mark.parametrize(
    "text",
    [
        "repeat(3) | shuffle(9, seed=7)",
        "shuffle(9, seed=7) | map | repeat(3)",
        "shuffle(9, seed=7) | prefetch | repeat(3)",
        "shuffle(9, seed=7) | with_options | repeat(3)",
        "shuffle(9, seed=7) | cache | repeat(3)",
        "shuffle(9, seed=7) | cache",
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
        "range(3)",
    ],
)
def test_chains_that_settings_do_not_say(text: str) -> None:
    settings = _settings(text)
    assert short_form(settings) is settings


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


def _read(text: str) -> ast.Read:
    source = parse_stages(text).source
    assert isinstance(source, ast.Read)
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
        ({"global_seed": 5, "pass_index": 2}, "read", {"global_seed": 5, "pass_index": 2}),
        ({"loop": "keras-fit"}, "read(cycle=2)", {"loop": "keras-fit", "cycle": 2}),
    ],
)
def test_settings_of_a_reader_are_over_those_of_the_command(
    settings: dict[str, Any], own: str, of_reader: dict[str, Any]
) -> None:
    given = ReadSettings(stages=ast.Pipeline(source=_read(own)), **settings)
    assert settings_of_read(given, _read(own)) == ReadSettings(**of_reader)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            "read(train, host=1/4, shuffle_reshuffle_each_iteration=False, shuffle-seed=3, "
            "interleave_cycle_length=4, file_order=[b, a])",
            "read(train, cycle=4, shuffle_seed=3, reshuffle=False, file_order=['b', 'a'], "
            "host='1/4')",
        ),
        (
            "read(interleave_cycle_length=None, cpus=7, interleave_block_length=None)",
            "read(cycle=auto, cpus=7, block=1)",
        ),
        ("read(cycle=None)", "read"),
        (
            "zip(read(block_length=1), shared('s', read(block_length=2))) | "
            "concatenate(choose_from_datasets([read(block_length=3)], choices=[0]))",
            "zip(read(block=1), shared('s', pipeline=read(block=2))) | "
            "concatenate(choose_from_datasets([read(block=3)], choices=values([0])))",
        ),
    ],
)
def test_settings_of_a_reader_are_kept_by_their_own_names(given: str, kept: str) -> None:
    stages = _settings(given).stages
    assert stages is not None
    assert text_of(stages) == kept
    assert [name for name in SETTING_BY_NAME if name in READER_SETTINGS] == list(READER_SETTINGS)
    read = ast.Read(settings=(("cycle_length", 3), ("file_order", ("a",))))
    assert reader_arguments(read) == {"cycle": 3, "file_order": ("a",)}


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
        _settings(text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("--stages: read: ")
