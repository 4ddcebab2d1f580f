"""Records what PyTorch's loaders hand out, for tests on machines that have none of them.

Run where torch, torchdata and accelerate are installed:

    python -m tests.loaders.torch.record

With an older torchdata, `.. record stateful` writes what that one hands out, beside the newest.
"""

from __future__ import annotations

import json
import random
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.loaders.torch.settings import asked_of, settings_by_chance

_FOLDER = Path(__file__).parent
_NUM_CASES = 60
_SIZES = (0, 1, 2, 3, 7, 8, 20, 33, 50)
# Chosen by hand: corners of the deal, and hosts that see a little of a long permutation.
_HOST = {"shares": True, "seed": 5}
_STAY = {"workers": 2, "persistent_workers": True}
_CHOSEN: dict[str, list[dict[str, Any]]] = {
    "torch": [
        {"n": 10, "host": 1, "num_hosts": 3, "first_epoch": 2, **_HOST},
        {"n": 10, "host": 1, "num_hosts": 3, "drop_shard_remainder": True, **_HOST},
        {"n": 3, "host": 6, "num_hosts": 8, "epochs": 2, **_HOST},
        {"n": 3, "host": 6, "num_hosts": 8, "drop_shard_remainder": True, **_HOST},
        {"n": 1, "host": 6, "num_hosts": 8, "batch": 4, **_HOST},
        {"n": 0, "host": 0, "num_hosts": 2, **_HOST},
        {"n": 100_000, "host": 999, "num_hosts": 1000, "first_epoch": 1, **_HOST},
        {"n": 9, "host": 1, "num_hosts": 2, "shares": True, "shuffle": True},
        {"n": 9, "host": 1, "num_hosts": 2, "shares": True, "batch": 2},
        {"n": 12, "global_seed": 5, "shuffle": True, "first_epoch": 1, "epochs": 3, "batch": 5},
        {"n": 12, "seed": 5, "shuffle": True, "first_epoch": 1, "epochs": 3, "workers": 2},
        {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 2, "batch": 5, "workers": 3},
        {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 4, "batch": 5, **_STAY},
        {"n": 12, "seed": 5, "shuffle": True, "first_epoch": 1, "epochs": 3, **_STAY},
    ],
    "stateful": [
        {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 3, "batch": 5},
        {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 3, "batch": 5, "workers": 2},
        {"n": 12, "global_seed": 5, "shuffle": True, "first_epoch": 2, "workers": 3},
        {"n": 1, "global_seed": 5, "shuffle": True, "epochs": 3, "workers": 2},
        {"n": 12, "global_seed": 5, "shuffle": True, "epochs": 4, "batch": 5, **_STAY},
        {"n": 12, "seed": 5, "shuffle": True, "epochs": 3, "batch": 5},
        {"n": 12, "seed": 5, "shuffle": True, "first_epoch": 1, "epochs": 3, "workers": 2},
        {"n": 12, "seed": 5, "shuffle": True, "first_epoch": 1, "epochs": 3, **_STAY},
        {"n": 10, "host": 1, "num_hosts": 3, "epochs": 2, "workers": 2, "batch": 2, **_HOST},
    ],
    "accelerate": [
        {"n": 50, "host": 3, "num_hosts": 4, "batch": 8, "epochs": 2, **_HOST},
        {"n": 50, "host": 3, "num_hosts": 4, "batch": 8, "drop_remainder": True, **_HOST},
        {"n": 5, "host": 3, "num_hosts": 4, "batch": 8, **_HOST},
        {"n": 5, "host": 0, "num_hosts": 4, "batch": 8, "drop_remainder": True, **_HOST},
        {"n": 17, "host": 1, "num_hosts": 2, "batch": 8, **_HOST},
        {"n": 17, "host": 0, "num_hosts": 1, "batch": 8, **_HOST},
        {"n": 17, "host": 1, "num_hosts": 2, "batch": 8, "shares": True},
        {"n": 100_000, "host": 7, "num_hosts": 1000, "batch": 8, "first_epoch": 3, **_HOST},
        {"n": 20, "seed": 5, "batch": 8, "epochs": 2, "workers": 2},
        {"n": 20, "seed": 5, "batch": 8, "epochs": 3, **_STAY},
        {"n": 20, "global_seed": 5, "shuffle": True, "batch": 8, "epochs": 3, **_STAY},
    ],
}
LOADERS = tuple(_CHOSEN)


def recorded(file: str) -> list[dict[str, Any]]:
    """Return the cases of a file: `asked`, and `batches` that were handed out; None: refused.

    A file is called as its loader, with a version behind it where it is not the newest.
    """
    cases: list[dict[str, Any]] = _read(file)["cases"]
    return cases


def recorded_versions(file: str) -> dict[str, str]:
    """Return the libraries that handed out what is in a file."""
    versions: dict[str, str] = _read(file)["versions"]
    return versions


def _read(file: str) -> Any:
    return json.loads((_FOLDER / f"recorded_{file}.json").read_text(encoding="utf-8"))


def handed_out(loader: str, settings: dict[str, Any]) -> list[list[int]] | None:
    """Return what the real loader hands out, batch by batch; None where it refuses."""
    from shardctl.errors import UsageError
    from shardctl.loaders.loader import LOADERS as TABLE
    from shardctl.loaders.loader import library_of

    asked = asked_of(settings)
    try:
        batches = library_of(TABLE[loader]).batches(asked, range(asked.num_examples))
        return [batch.tolist() for batch in batches]
    except UsageError:
        return None


def _write(loader: str, num_by_chance: int, behind: str = "") -> None:
    rng = random.Random(15)
    by_chance = [settings_by_chance(loader, rng, sizes=_SIZES) for _ in range(num_by_chance)]
    cases = [
        {"asked": settings, "batches": handed_out(loader, settings)}
        for settings in (*_CHOSEN[loader], *by_chance)
    ]
    versions = {name: version(name) for name in ("torch", "torchdata", "accelerate")}
    lines = ",\n".join(json.dumps(case) for case in cases)
    text = f'{{"versions": {json.dumps(versions)},\n"cases": [\n{lines}\n]}}\n'
    (_FOLDER / f"recorded_{loader}{behind}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] == ["stateful"]:
        _write("stateful", 20, "_" + version("torchdata"))
    else:
        for each in LOADERS:
            _write(each, _NUM_CASES)
