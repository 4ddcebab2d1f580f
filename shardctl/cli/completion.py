"""What the shell offers after a TAB: datasets, split names, formats."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shardctl.errors import ShardctlError


def formats(incomplete: str) -> list[str]:
    """Offer the formats."""
    return _starting(("table", "json", "yaml", "csv"), incomplete)


def datasets(ctx: Any, incomplete: str) -> list[str]:
    """Offer the datasets under the chosen data dir, then those of the catalog."""
    from shardctl.readers.catalog import catalog_names
    from shardctl.readers.data_dirs import data_dirs, list_datasets

    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        found = list_datasets(data_dirs(ctx.params.get("data_dir"), os.environ))
        names += [
            dataset.name + (f"/{dataset.config}" if dataset.config else "") for dataset in found
        ]
    with contextlib.suppress(ShardctlError, OSError):
        names += catalog_names()
    return _starting(sorted(set(names)), incomplete)


def splits(ctx: Any, incomplete: str) -> list[str]:
    """Offer the split names of the chosen dataset, also after a `+`."""
    from shardctl.readers.reference import choose_dataset

    before, plus, last = incomplete.rpartition("+")
    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dataset = choose_dataset(
            ctx.params.get("dataset") or (),
            data_dir=ctx.params.get("data_dir"),
            env=os.environ,
            cwd=Path.cwd(),
        ).dataset
        names = [split.name for split in dataset.splits]
    return [before + plus + name for name in _starting([*names, "all"], last)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
