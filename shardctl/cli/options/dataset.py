"""From the dataset options and the project to the dataset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shardctl.cli.output import say

if TYPE_CHECKING:
    from shardctl.cli.options.shared import DatasetOptions
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.readers.project_file import Project


def project_here() -> Project:
    """Return the project of the folder that the command runs in; a command reads it once."""
    from shardctl.readers.project_file import find_project

    return find_project(Path.cwd())


def chosen_dataset(
    options: DatasetOptions, project: Project, *, fallback: str | None = None
) -> Dataset:
    """Return the dataset the options, the environment, the project or the folder choose.

    Where they choose none it is `fallback`, or else a built-in one, which is said.
    """
    from shardctl.readers.reference import choose_dataset

    chosen = choose_dataset(
        options.dataset or (),
        project=project,
        data_dir=options.data_dir,
        env=os.environ,
        cwd=Path.cwd(),
        fallback=fallback,
    )
    if chosen.note is not None:
        say(chosen.note)
    return chosen.dataset
