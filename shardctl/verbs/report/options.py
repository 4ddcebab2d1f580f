"""Two pipelines of `report --compare`, by the names of their files and by options."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardctl.base.text import quoted
from shardctl.cli.options.dataset import dataset_and_refs
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.cli.options.order import OrderOptions
    from shardctl.cli.options.shared import DatasetOptions
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project
    from shardctl.metadata.reference import Fallback
    from shardctl.verbs.lint.options import UsageOptions
    from shardctl.verbs.report.compare import Side

_SHOWN_OF_BOTH = ("evaluated", "num_hosts")  # what a comparison takes besides


def compared_sides(
    files: tuple[str, str], source: DatasetOptions, reading: OrderOptions, spec: str | None
) -> list[Side]:
    """Return what two files say; options of datasets and settings go over every settings file.

    Raises:
        ShardctlError: a file that is no snapshot and no settings file, or one at fault.
        UsageError: such options where both files are snapshots.
    """
    from shardctl.api.diff import opened_report, refuse_one_file, sides_of

    refuse_one_file(*files)
    given = [opened_report(path, path) for path in files]
    is_told = source.is_given or spec is not None
    if not any(one.project for one in given) and (is_told or reading.given()):
        raise UsageError(
            f"{quoted(files[0], 200)} and {quoted(files[1], 200)} are snapshots, which are as they "
            "were pinned; leave out SPEC and the options of datasets and settings"
        )

    def dataset_of(project: Project, fallback: Fallback | None) -> Dataset:
        return dataset_and_refs(source, project, fallback=fallback).dataset

    return sides_of(given, spec=spec, dataset_of=dataset_of, settings_of=reading.settings)


def refuse_lint_options(using: UsageOptions) -> None:
    """Refuse options about findings, which a comparison does not have.

    Raises:
        UsageError: one of them is given.
    """
    from shardctl.base.phrase import option_name

    for name, value in vars(using).items():
        if value not in (None, []) and name not in _SHOWN_OF_BOTH:
            raise UsageError(
                f"{option_name(name)} is about the findings of one pipeline; leave it out, or "
                "--compare"
            )
