"""From the dataset options to the dataset."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from shardctl.cli.output import say

if TYPE_CHECKING:
    from shardctl.cli.options import DatasetOptions
    from shardctl.core.dataset import Dataset


def chosen_dataset(options: DatasetOptions) -> Dataset:
    """Return the dataset the options, the environment or the folder choose; say a default."""
    from shardctl.readers.reference import choose_dataset

    chosen = choose_dataset(
        options.dataset or (), data_dir=options.data_dir, env=os.environ, cwd=Path.cwd()
    )
    if chosen.note is not None:
        say(chosen.note)
    return chosen.dataset
