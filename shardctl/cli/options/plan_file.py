"""A plan file in place of the options that a plan is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from shardctl.cli.options.dataset import chosen_dataset, project_here
from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.rendering.text.command_line import option_name

if TYPE_CHECKING:
    from shardctl.cli.options.shared import DatasetOptions
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.core.resume.resume_plan import ResumePlan


def plan_of_file(
    path: str, source: DatasetOptions, given: Mapping[str, object]
) -> tuple[Dataset, ResumePlan]:
    """Return the dataset as it is today, and the plan of a file applied to it.

    `given` are the values that would make another plan, by the names of their parameters.

    Raises:
        UsageError: one of them is given.
        DatasetError: the file is broken, or the dataset another than the plan was made for.
    """
    from shardctl.files.plan.reader import read_plan
    from shardctl.planning.resume.apply_plan import applied

    for name, value in given.items():
        if value is not None:
            said = name if name == "SPEC" else option_name(name)
            raise UsageError(f"{said} with --plan: the plan file holds the whole pipeline")
    plan = read_plan(path)
    dataset = dataset_of_plan(plan, source)
    return dataset, applied(plan, dataset)


def dataset_of_plan(plan: ResumePlan, options: DatasetOptions) -> Dataset:
    """Return the dataset of the options, else the one a plan was made for, where it lay."""
    project = project_here()
    if options.dataset:
        return chosen_dataset(options, project)
    ref = plan.dataset.data_dir or plan.dataset.title
    try:
        return chosen_dataset(replace(options, dataset=[ref]), project)
    except ShardctlError as error:
        raise DatasetError(
            f"{error}; say where the plan's dataset is with --dataset REF"
        ) from error
