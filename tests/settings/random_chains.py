"""Random chains behind a reader, most of them near the one that settings can say."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from shardctl.settings.read_settings import ReadSettings
from shardctl.stages.part import Stage
from shardctl.stages.stages import (
    Batch,
    Cache,
    Map,
    Pipeline,
    Prefetch,
    Repeat,
    Shard,
    Shuffle,
    Skip,
    Take,
    Unbatch,
    WithOptions,
)

LENGTHS = (3, 0, 5, 4, 1, 6)


def reader_settings(rng: random.Random) -> ReadSettings:
    """Settings of a reader of a few files, with nothing behind it."""
    settings: dict[str, Any] = {"cycle": rng.randrange(1, 5), "block": rng.randrange(1, 4)}
    if rng.random() < 0.6:
        settings["shuffle_seed"] = rng.randrange(9)
        settings["reshuffle"] = rng.choice([None, True, False])
    if rng.random() < 0.3:
        settings["global_seed"] = rng.randrange(9)
    return ReadSettings(**settings)


def random_chain(rng: random.Random, *, seeded: bool) -> Pipeline:
    """Return shard, shuffle, repeat and batch with something in between, or nearly so.

    seeded: whether every shuffle has a seed of its own.
    """
    stages: list[Stage] = []
    noise = rng.choice([0.0, 0.1, 0.3])
    for kind, rate in (("shard", 0.3), ("shuffle", 0.8), ("repeat", 0.7), ("batch", 0.5)):
        while rng.random() < noise:
            stages.append(_noise(rng))
        if rng.random() < rate:
            stages.append(_stage(rng, kind, seeded))
    while rng.random() < noise:
        stages.append(_noise(rng))
    if rng.random() < 0.15 and len(stages) > 1:
        at = rng.randrange(len(stages) - 1)
        stages[at], stages[at + 1] = stages[at + 1], stages[at]
    return Pipeline(stages=tuple(stages))


def _stage(rng: random.Random, kind: str, seeded: bool) -> Stage:
    makers: dict[str, Callable[[], Stage]] = {
        "shard": lambda: _shard(rng),
        "shuffle": lambda: Shuffle(
            buffer=rng.choice([1, 2, 5, 30, -2]),
            seed=rng.randrange(9) if seeded or rng.random() < 0.7 else None,
            reshuffle=rng.choice([None, None, True, False]),
        ),
        "repeat": lambda: Repeat(count=rng.choice([1, 2, 3])),
        "batch": lambda: Batch(size=rng.randrange(1, 6), drop_remainder=rng.random() < 0.3),
    }
    return makers[kind]()


def _shard(rng: random.Random) -> Shard:
    count = rng.randrange(1, 4)
    return Shard(num_shards=count, index=rng.randrange(count))


def _noise(rng: random.Random) -> Stage:
    stages: list[Stage] = [
        Map(calls=rng.choice([None, 2, "auto"])),
        Map(deterministic=True),
        Prefetch(size=rng.choice(["auto", 0, 2])),
        WithOptions(deterministic=rng.choice([None, True])),
        WithOptions(fusion=rng.choice([True, False])),
        WithOptions(optimizations=rng.choice([True, False])),
        WithOptions(warm_start=rng.choice([True, False])),
        Cache(),
        Take(count=-1),
        Skip(count=0),
        Repeat(count=1),
        Shard(num_shards=1, index=0),
        Take(count=7),
        Skip(count=2),
        Batch(size=2, drop_remainder=True),
        Unbatch(),
    ]
    return rng.choice(stages)


def is_possible(pipeline: Pipeline) -> bool:
    """Return whether TensorFlow can build it: only batches are taken apart."""
    depth = 0
    for stage in pipeline.stages:
        depth += isinstance(stage, Batch) - isinstance(stage, Unbatch)
        if depth not in (0, 1):
            return False
    return True
