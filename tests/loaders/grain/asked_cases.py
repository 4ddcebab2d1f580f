"""Settings of Grain to compare with the real library: random ones, and those at the edges."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shardctl.loaders.loader_sequence import LoaderConfig

NEWEST = "0.2.18"


def asked(num_examples: int, *, version: str = NEWEST, **settings: Any) -> LoaderConfig:
    """Return what Grain is asked over so many examples; `host` is (index, count)."""
    if "host" in settings:
        settings["host"], settings["num_hosts"] = settings["host"]
        settings["shares"] = True
    return LoaderConfig(lengths=np.array([num_examples]), version=version, **settings)


def random_settings(chance: random.Random, workers: Sequence[int]) -> dict[str, Any]:
    """Return settings for `asked`, a few of which Grain refuses."""
    settings: dict[str, Any] = {
        "num_examples": chance.choice(
            [0, 1, 2, 3, 5, 10, chance.randrange(1, 60), *_several(chance, 20, 700, 3)]
        ),
        "epochs": chance.choice([1, 1, 2, 3, 5]),
        "workers": chance.choice(workers),
    }
    seed = chance.choice([None, 0, 2**32 - 1, 2**32, -1, *_several(chance, 0, 2**32, 12)])
    if seed is not None:
        settings["seed"] = seed
    if chance.random() < 0.7:
        count = chance.choice([1, 2, 3, 4, 8])
        settings["host"] = (chance.randrange(count), count)
    if chance.random() < 0.4:
        settings["host_by"] = "examples"
        if chance.random() < 0.5:
            settings["buffer"] = chance.choice([1, 2, 3, 7, 64, 200])
            settings["buffer_seed"] = chance.choice(
                [0, 5, 2**32 - 1, 2**32 - 3, *_several(chance, 0, 2**31, 3)]
            )
    elif "host" in settings:
        settings["drop_shard_remainder"] = chance.random() < 0.4
    if chance.random() < 0.8:
        settings["batch"] = chance.choice([1, 2, 3, 7, 16, 50])
        settings["drop_remainder"] = chance.random() < 0.5
    return settings


def edges() -> Iterator[dict[str, Any]]:
    """Yield settings for `asked` that meet each edge of the rule, small enough to be kept."""
    for host in range(3):
        for epochs in (1, 2, 5):
            yield {"num_examples": 11, "seed": 7, "epochs": epochs, "host": (host, 3)}
        yield {"num_examples": 11, "seed": 7, "host": (host, 3), "drop_shard_remainder": True}
        yield {"num_examples": 2, "seed": 1, "host": (host, 3)}
        yield {"num_examples": 2, "seed": 1, "host": (host, 3), "epochs": 2}
        yield {"num_examples": 11, "host": (host, 3), "host_by": "examples", "epochs": 2, "seed": 4}
        yield {
            "num_examples": 10,
            "host": (host, 3),
            "host_by": "examples",
            "epochs": 2,
            "seed": 4,
            "buffer": 6,
            "buffer_seed": 9,
        }
    for num_examples in (0, 1, 2):
        yield {"num_examples": num_examples, "seed": 3, "epochs": 2, "batch": 2}
        yield {"num_examples": num_examples, "seed": 3, "host_by": "examples"}
    for seed in (-1, 0, 2**32 - 1, 2**32):
        yield {"num_examples": 9, "seed": seed, "epochs": 2}
    for buffer_seed in (-1, 2**32 - 2, 2**32 - 1):
        yield {
            "num_examples": 9,
            "host_by": "examples",
            "buffer": 5,
            "buffer_seed": buffer_seed,
        }
    yield {"num_examples": 9}
    yield {"num_examples": 9, "epochs": 2, "batch": 4, "drop_remainder": True}
    # 0 to 4 workers that share 23 reads: some have a batch more, some a smaller one, some none.
    for workers in range(5):
        for batch in (1, 3, 4, 6, 12):
            yield {"num_examples": 23, "seed": 5, "workers": workers, "batch": batch}
            yield {
                "num_examples": 23,
                "seed": 5,
                "workers": workers,
                "batch": batch,
                "drop_remainder": True,
            }
    yield {"num_examples": 2, "seed": 5, "workers": 3, "batch": 2}
    yield {"num_examples": 7, "seed": 5, "workers": 3}
    yield {
        "num_examples": 23,
        "seed": 5,
        "workers": 2,
        "batch": 4,
        "epochs": 3,
        "host": (1, 2),
        "host_by": "examples",
    }


def _several(chance: random.Random, least: int, beyond: int, number: int) -> list[int]:
    return [chance.randrange(least, beyond) for _ in range(number)]
