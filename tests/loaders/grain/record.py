"""Records what the real Grain hands out: `python -m tests.loaders.grain.record`.

The file recorded_VERSION.json beside it holds it for the installed version. Needs Grain and NumPy.
"""

from __future__ import annotations

import json
import platform
import random
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from shardctl.errors import UsageError
from shardctl.loaders.loader import LOADERS, library_of
from tests.loaders.grain.asked_cases import asked, edges, random_settings

_SIZES = (1, 2, 3, 50, 4095, 4097, 65536, 65537, 65538, 262145, 10**6, 2**32, 2**32 + 1, 10**12)
_RANDOM_ORDERS = 25


def main() -> None:
    """Write the file of the installed version."""
    version = metadata.version("grain")
    recorded = {
        "library": "grain",
        "version": version,
        "python": platform.python_version(),
        "shuffles": list(_shuffles(random.Random(15))),
        "orders": list(_orders(random.Random(15), version)),
    }
    target = Path(__file__).with_name(f"recorded_{version.replace('.', '_')}.json")
    lines = json.dumps(recorded, separators=(",", ":")).replace('{"settings"', '\n{"settings"')
    target.write_text(lines + "\n", encoding="utf-8")
    print(f"{target}: {len(recorded['orders'])} orders")


def _shuffles(chance: random.Random) -> Iterator[dict[str, Any]]:
    module = import_module(
        "grain._src.python.experimental.index_shuffle.python.index_shuffle_module"
    )
    for size in _SIZES:
        for seed in (0, 2**32 - 1, chance.randrange(2**32)):
            indices = sorted({0, size // 2, size - 1, *(chance.randrange(size) for _ in range(4))})
            found = [
                module.index_shuffle(index, max_index=size - 1, seed=seed, rounds=4)
                for index in indices
            ]
            yield {"num_examples": size, "seed": seed, "indices": indices, "examples": found}


def _orders(chance: random.Random, version: str) -> Iterator[dict[str, Any]]:
    drawn = [random_settings(chance, [0, 0, 1, 2, 3]) for _ in range(_RANDOM_ORDERS)]
    for settings in (*edges(), *drawn):
        wanted = asked(version=version, **settings)
        try:
            pieces = list(library_of(LOADERS["grain"]).batches(wanted, range(wanted.num_examples)))
        except UsageError as error:
            yield {"settings": settings, "refused": str(error)[:100]}
            continue
        if wanted.batch is None:
            pieces = [np.concatenate([np.empty(0, np.int64), *pieces])]
        yield {"settings": settings, "batches": [piece.tolist() for piece in pieces]}


if __name__ == "__main__":
    main()
