"""Settings of a loader at random, of what it takes: they tell whether a version is the same."""

from __future__ import annotations

from collections.abc import Callable, Generator
from random import Random
from typing import Any

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.loaders.hugging_face.eras import BEFORE_SHUFFLE
from shardctl.core.loaders.loader import Loader
from shardctl.core.order.loader_order import LoaderOrder
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UnpredictableOrderError, UsageError

# Sizes at which rules have edges: nothing to mix, 16 bits of a cipher, many more than a buffer.
_SIZES = (1, 2, 3, 5, 7, 16, 50, 97, 100, 256, 500, 999, 65_536, 65_537, 70_001)
_SMALL = 12  # how many of the sizes are usual
_TRIES = 2000  # settings in a row that are refused


def random_orders(
    loader: Loader, version: str, random: Random, *, every_workers: int = 20
) -> Generator[LoaderOrder]:
    """Yield orders of small made-up datasets under random settings, without end.

    Settings that the rule refuses are left out. Processes cost seconds, so one in `every_workers`
    orders has some.
    """
    drawn = refused = 0
    while True:
        dataset = _dataset(random)
        try:
            settings = ReadSettings(
                loader=loader.name,
                loader_version=version,
                **_values(loader, random, workers=drawn % every_workers == every_workers - 1),
            )
            ranges = resolve_subsplit("train", dataset).ranges
            order = LoaderOrder(dataset, ranges, settings)
        except (UsageError, UnpredictableOrderError):
            refused += 1
            if refused > _TRIES:
                raise
            continue
        drawn, refused = drawn + 1, 0
        yield order


def _dataset(random: Random) -> Dataset:
    size = random.choice(_SIZES if random.random() < 0.1 else _SIZES[:_SMALL])
    num_shards = random.choice((1, 1, 2, 3, 5, 8, 13, 24))
    cuts = sorted(random.randrange(size + 1) for _ in range(min(num_shards, size) - 1))
    lengths = tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))
    split = Split(name="train", shard_lengths=tuple(length for length in lengths if length))
    return Dataset(name="random", splits=(split,))


def _values(loader: Loader, random: Random, *, workers: bool) -> dict[str, Any]:
    """Return values of the settings that a loader takes; half of them are left as they are."""

    def seed() -> int:
        return random.choice((0, 1, 42, random.randrange(1000), random.randrange(2**32)))

    def host() -> Host:
        count = random.randrange(1, 6)
        return Host(index=random.randrange(count), count=count)

    draws: dict[str, Callable[[], Any]] = {
        "shuffle": lambda: random.random() < 0.7,
        "shuffle_seed": seed,
        "global_seed": seed,
        "epochs": lambda: random.choice((2, 3)),
        "pass_index": lambda: random.choice((1, 2, 5)),
        "host": host,
        "host_by": lambda: random.choice(("even", "examples")),
        "drop_shard_remainder": lambda: True,
        "batch": lambda: random.choice((1, 2, 3, 4, 7, 8, 16, 33)),
        "buffer": lambda: random.choice((1, 2, 3, 5, 16, 64, 100, 5000)),
        "buffer_seed": seed,
        "streaming": lambda: random.random() < 0.5,
        "arrow": lambda: random.random() < 0.5,
        "before_shuffle": lambda: random.choice(BEFORE_SHUFFLE),
        "input_shards": lambda: random.choice((1, 2, 10)),
    }
    values: dict[str, Any] = {
        name: draws[name]() for name in draws if name in loader.takes and random.random() < 0.5
    }
    if "batch" in values and "drop_remainder" in loader.takes and random.random() < 0.4:
        values["drop_remainder"] = True
    if workers and "workers" in loader.takes:
        values["workers"] = random.choice((1, 2, 3))
        if "persistent_workers" in loader.takes:
            values["persistent_workers"] = random.random() < 0.5
    return values
