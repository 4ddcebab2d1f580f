# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl config`: the settings in force here, and who says so."""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shardctl.cli.formats import Formats, OutputOptions, verb_formats
from shardctl.cli.options.dataset import chosen_dataset, project_here
from shardctl.cli.options.lint import LintOptions, usage_of
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions
from shardctl.cli.output import warn
from shardctl.core.phrase import Argument
from shardctl.core.settings.kinds import Switch
from shardctl.core.settings.table import SETTING_BY_FIELD
from shardctl.errors import ShardctlError
from shardctl.rendering.text.command_line import as_options, option_of

if TYPE_CHECKING:
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.planning.config import Origin, SettingInForce, Source
    from shardctl.readers.project_file import Project

FORMATS = Formats(renderers=verb_formats("rendering.config", "config"))


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
    from shardctl.files.file_text import working_folder
    from shardctl.planning.config import Config, lint_in_force, read_in_force
    from shardctl.readers.project_file import project_files

    project = project_here()
    places = _Places(project)
    resolved = reading.resolved(project)
    dataset, problem = _dataset(source, project)
    arguments = LintOptions().arguments(project)
    linted = lint_in_force(arguments, usage_of(arguments), resolved.settings, dataset)
    origins = {
        field: places.of_read(field, reading.given().get(field)) for field in resolved.sources
    }
    FORMATS.write(
        out,
        Config(
            dataset=dataset,
            problem=problem,
            files=tuple(map(str, project_files(working_folder()))),
            settings=(
                *places.of_datasets(source),
                *read_in_force(
                    resolved.settings, origins, ordered=dataset is not None and dataset.ordered
                ),
                *(places.of_lint(name, value, arguments) for name, value in linted.items()),
            ),
        ),
    )


def _dataset(source: DatasetOptions, project: "Project") -> tuple["Dataset | None", str | None]:
    """Return the dataset, else what is wrong with it, which is said too."""
    try:
        return chosen_dataset(source, project), None
    except ShardctlError as error:
        problem = as_options(error)
        warn([problem])
        return None, problem


class _Places:
    """Where the settings of a project, and those that go over it, were set."""

    def __init__(self, project: "Project") -> None:
        self._file = None if project.path is None else str(project.path)
        self._lines = project.lines() if project.path is not None else {}
        self._project = project

    def of_datasets(self, options: DatasetOptions) -> "Iterator[SettingInForce]":
        """Yield which dataset is chosen, then the folders where names are looked up, in order."""
        from shardctl.files.file_text import working_folder
        from shardctl.readers.data_dirs import DATA_DIR_VARIABLE, data_dirs
        from shardctl.readers.reference import ENVIRONMENT_VARIABLE, named_dataset

        named = named_dataset(
            options.dataset or (), project=self._project, env=os.environ, cwd=working_folder()
        )
        refs = list(named.refs) if len(named.refs) > 1 else named.refs[0]
        by = {"option": "--dataset", "environment": ENVIRONMENT_VARIABLE}.get(named.source)
        yield _chosen("dataset", refs, self._origin("dataset", named.source, by))
        dirs = data_dirs(options.data_dir, os.environ, self._project)
        for folder, kind in dirs.named_by.items():
            by = {"option": "--data-dir", "environment": DATA_DIR_VARIABLE}.get(kind)
            yield _chosen("data_dir", folder, self._origin("data_dir", kind, by))

    def of_read(self, field: str, option: object) -> "Origin":
        """Return who set a field of the settings of an order; `option` is what its option says."""
        setting = SETTING_BY_FIELD[field]
        if option is None:
            return self._origin(f"read.{setting.name}", "file")
        is_switch = isinstance(setting.kind, Switch)
        argument = Argument(field, option) if is_switch else Argument(field)
        return self._origin(setting.name, "option", option_of(argument))

    def of_lint(self, name: str, value: object, stated: Mapping[str, object]) -> "SettingInForce":
        """Return a setting of lint, which the file states or nobody does."""
        origin = self._origin(f"lint.{name}", "file" if name in stated else "default")
        return _chosen(f"lint.{name}", value, origin)

    def _origin(self, key: str, source: "Source", by: str | None = None) -> "Origin":
        from shardctl.planning.config import Origin

        if source != "file":
            return Origin(source=source, by=by)
        return Origin(source=source, file=self._file, line=self._lines.get(key))


def _chosen(name: str, value: object, origin: "Origin") -> "SettingInForce":
    """Return a setting whose value is the one that was written, where somebody wrote one."""
    from shardctl.planning.config import SettingInForce

    given = None if origin.source in ("default", "folder") else value
    return SettingInForce(name=name, value=value, given=given, origin=origin)
