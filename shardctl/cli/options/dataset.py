"""From the dataset options to the dataset."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from shardctl.cli.output import say
from shardctl.errors import DatasetError, ShardctlError

if TYPE_CHECKING:
    from shardctl.cli.options.shared import DatasetOptions
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.core.resume.resume_plan import ResumePlan


def chosen_dataset(options: DatasetOptions) -> Dataset:
    """Return the dataset the options, the environment or the folder choose; say a default."""
    from shardctl.readers.reference import choose_dataset

    chosen = choose_dataset(
        options.dataset or (), data_dir=options.data_dir, env=os.environ, cwd=Path.cwd()
    )
    if chosen.note is not None:
        say(chosen.note)
    return chosen.dataset


def dataset_of_plan(plan: ResumePlan, options: DatasetOptions) -> Dataset:
    """Return the dataset of the options, else the one a plan was made for, where it lay."""
    if options.dataset:
        return chosen_dataset(options)
    ref = plan.dataset.data_dir or plan.dataset.title
    try:
        return chosen_dataset(replace(options, dataset=[ref]))
    except ShardctlError as error:
        raise DatasetError(
            f"{error}; say where the plan's dataset is with --dataset REF"
        ) from error
