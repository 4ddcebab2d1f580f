"""What the shell offers after a TAB: datasets and split names."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from typing import Any

from shardctl.errors import ShardctlError

# Names are anyone's: none that would be an option, a pattern or a path of zsh (`=ls`) is offered.
_NAME = re.compile(r"[\w.][\w./:@%+=,-]*")


def datasets(ctx: Any, incomplete: str) -> list[str]:
    """Offer the datasets under the chosen data dir, then those of the catalog.

    Versions come after a `:`, configs after a `/` or once a single name is left.
    """
    from shardctl.files.file_text import working_folder
    from shardctl.readers.catalog import catalog_names, catalog_titles
    from shardctl.readers.data_dirs import data_dirs, list_datasets
    from shardctl.readers.project_file import find_project

    titles: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        project = find_project(working_folder())
        dirs = data_dirs(ctx.params.get("data_dir"), os.environ, project)
        titles += map(str, list_datasets(dirs.local()))
    with contextlib.suppress(ShardctlError, OSError):
        for name in _starting(catalog_names(), re.split("[/:]", incomplete)[0]):
            titles += catalog_titles(name)
    titles = _starting(titles, incomplete)
    if ":" in incomplete:
        return sorted(set(titles))
    with_config = {title.partition(":")[0] for title in titles}
    names = {title.partition("/")[0] for title in with_config}
    if "/" in incomplete:
        return sorted(with_config)
    return sorted(names | with_config if len(names) == 1 else names)


def splits(ctx: Any, incomplete: str) -> list[str]:
    """Offer the split names of the chosen dataset, also after a `+`."""
    from shardctl.files.file_text import working_folder
    from shardctl.readers.project_file import find_project
    from shardctl.readers.reference import choose_dataset

    before, plus, last = incomplete.rpartition("+")
    names: list[str] = []
    with contextlib.suppress(ShardctlError, OSError):
        dataset = choose_dataset(
            ctx.params.get("dataset") or (),
            project=find_project(working_folder()),
            data_dir=ctx.params.get("data_dir"),
            env=os.environ,
            cwd=working_folder(),
        ).dataset
        names = [split.name for split in dataset.splits]
    return [before + plus + name for name in _starting([*names, "all"], last)]


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if _NAME.fullmatch(name) and name.startswith(incomplete)]
