"""Settings of PyTorch's loaders by chance, for what is recorded and for what runs live."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from shardctl.loaders.loader_sequence import LoaderConfig

SEEDS = (0, 1, 42, -1, -7, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**63, 2**64 - 5, -(2**63))
SIZES = (0, 1, 2, 3, 7, 8, 50, 100, 333, 1001)


def asked_of(given: dict[str, Any], version: str = "") -> LoaderConfig:
    """Return what a rule is asked of settings, `n` among them."""
    settings = dict(given)
    return LoaderConfig(lengths=np.array([settings.pop("n")]), version=version, **settings)


def settings_by_chance(
    loader: str, rng: random.Random, *, workers: tuple[int, ...] = (0,), sizes: tuple[int, ...]
) -> dict[str, Any]:
    """Return settings that the loader reads; the real one may refuse them, as it does seeds."""
    settings: dict[str, Any] = {
        "n": rng.choice(sizes) if rng.random() < 0.7 else rng.randrange(max(sizes)),
        "first_epoch": rng.choice([0, 0, 1, 2, 3]),
        "epochs": rng.choice([1, 1, 2, 3]),
        "batch": rng.choice([1, 2, 7, 8, 64] + [None] * (loader != "accelerate")),
        "workers": rng.choice(workers),
    }
    settings["drop_remainder"] = settings["batch"] is not None and rng.random() < 0.3
    seed = rng.choice(SEEDS) if rng.random() < 0.5 else rng.getrandbits(63)
    kind = rng.choice(["host", "host", "own", "global", "none"])
    if kind == "host":
        world = rng.choice([1, 2, 3, 4, 5, 8, 64])
        settings |= {"shares": True, "num_hosts": world, "host": rng.randrange(world)}
        if loader != "accelerate":
            settings["drop_shard_remainder"] = rng.random() < 0.4
    if kind in ("host", "own") and rng.random() < 0.85:
        settings |= {"seed": seed, "shuffle": rng.choice([None, None, True, False])}
    if kind == "global":
        settings |= {"global_seed": seed, "shuffle": True}
        if loader == "accelerate":
            world = rng.choice([1, 1, 2, 3, 8])
            settings |= {"shares": world > 1, "num_hosts": world, "host": rng.randrange(world)}
    if settings["workers"] and rng.random() < 0.5:
        settings["persistent_workers"] = True
    return settings
