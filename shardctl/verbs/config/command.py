# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl config`: the settings in force here, and who says so."""

from typing import TYPE_CHECKING

from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.output import Formats, OutputOptions, verb_formats, warn
from shardctl.errors import ShardctlError, UnnamedDatasetError
from shardctl.verbs.config.options import all_in_force
from shardctl.verbs.lint.command import LintOptions

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project

FORMATS = Formats(renderers=verb_formats("verbs.config.view", "config"))


def config(source: DatasetOptions, reading: OrderOptions, out: OutputOptions) -> None:
    """Show every setting in force and where it comes from.

    An option, a line of a shardctl.yaml, the environment, a default, or another setting that brings
    it along. With the options of another command it shows what that would use; of lint it shows
    what shardctl.yaml says. A dataset that is not found is a warning here.

    Examples:
      # Which settings are in force here, and who says so
      shardctl config
      # What simulate would use with these options, for programs
      shardctl config --cycle 3 --shuffle-seed 42 -d mnist -f json
    """
    from shardctl.metadata.project_file import project_files
    from shardctl.stores.paths import working_folder
    from shardctl.verbs.config.answer import Config

    project = project_here()
    resolved = reading.resolved(project)
    dataset, problem = _dataset(source, project)
    FORMATS.write(
        out,
        Config(
            dataset=dataset,
            problem=problem,
            files=tuple(map(str, project_files(working_folder()))),
            settings=all_in_force(project, source, reading, resolved, LintOptions(), dataset),
        ),
    )


def _dataset(source: DatasetOptions, project: "Project") -> tuple["Dataset | None", str | None]:
    """Return the dataset, else what is wrong with it, which is said too."""
    try:
        return chosen_dataset(source, project), None
    except UnnamedDatasetError:
        raise  # a file is to keep it
    except ShardctlError as error:
        problem = str(error)
        warn([problem])
        return None, problem
