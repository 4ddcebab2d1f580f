# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl config`: the settings in force here, and the source of each."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shardctl.base.phrase import option
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.order import OrderOptions, ResolvedSettings
from shardctl.cli.options.shared import Flag
from shardctl.cli.output import OutputOptions, formats_of, warn, write
from shardctl.errors import ShardctlError, UnnamedDatasetError
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.verbs.config.answer import (
    Config,
    Origin,
    SettingInForce,
    Source,
    lint_in_force,
    read_in_force,
)
from shardctl.verbs.lint.command import LintOptions, UsageOptions, usage_of

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project

FORMATS = formats_of("config")


def config(
    source: DatasetOptions, reading: OrderOptions, out: OutputOptions, schema: Flag = False
) -> None:
    """Show every setting in force and where it comes from.

    A setting comes from an option, a line of shardctl.yaml, the environment, another setting or a
    default. With the options of another command, config shows what that command would use. For
    lint it shows what shardctl.yaml says. A dataset that is not found is a warning here.

    Options:
      --schema: Print the JSON schema of shardctl.yaml, for editors.

    Examples:
      # Which settings are in force here, and from where
      shardctl config
      # What simulate would use with these options, for programs
      shardctl config --cycle 3 --shuffle-seed 42 -d mnist -f json
    """
    from shardctl.metadata.project_file import project_files
    from shardctl.stores.stores import working_folder

    if schema:
        from shardctl.verbs.config.schema import schema_text

        write([schema_text()], out.output)
        return
    project = project_here(say_so=False)
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


# Where each setting was set: an option, a line, a variable.


def all_in_force(
    project: "Project",
    source: DatasetOptions,
    reading: OrderOptions,
    resolved: ResolvedSettings,
    using: UsageOptions,
    dataset: "Dataset | None",
) -> tuple[SettingInForce, ...]:
    """Return every setting in force: of the dataset, of the order, and of lint."""
    sources = _Sources(project)
    arguments = using.arguments(project)
    linted = lint_in_force(arguments, usage_of(arguments), resolved.settings, dataset)
    origins = {
        field: sources.of_read(field, reading.given().get(field)) for field in resolved.sources
    }
    return (
        *sources.of_datasets(source),
        *read_in_force(resolved.settings, origins, ordered=dataset is not None and dataset.ordered),
        *(sources.of_lint(name, value, arguments, using.given()) for name, value in linted.items()),
    )


class _Sources:
    """Where the settings of a project, and those that go over it, were set."""

    def __init__(self, project: "Project") -> None:
        self._file = None if project.path is None else str(project.path)
        self._lines = project.lines() if project.path is not None else {}
        self._project = project

    def of_datasets(self, options: DatasetOptions) -> Iterator[SettingInForce]:
        """Yield which dataset is chosen, then the folders where names are looked up, in order."""
        from shardctl.metadata.dataset_names import DATA_DIR_VARIABLE, data_dirs
        from shardctl.metadata.reference import ENVIRONMENT_VARIABLE, named_dataset

        named = named_dataset(options.dataset or (), project=self._project)
        refs = list(named.refs) if len(named.refs) > 1 else named.refs[0]
        by = {"option": "--dataset", "environment": ENVIRONMENT_VARIABLE}.get(named.source)
        source = "default" if named.source == "fallback" else named.source  # none is given here
        yield _chosen("dataset", refs, self._origin("dataset", source, by))
        dirs = data_dirs(options.data_dir, self._project)
        for folder, (kind, _) in dirs.sources.items():
            by = {"option": "--data-dir", "environment": DATA_DIR_VARIABLE}.get(kind)
            yield _chosen("data_dir", folder, self._origin("data_dir", kind, by))

    def of_read(self, field: str, given: object) -> Origin:
        """Return who set a field of the settings of an order; `given` is what its option says."""
        setting = SETTING_BY_FIELD[field]
        if given is None:
            return self._origin(f"read.{setting.name}", "file")
        return self._origin(setting.name, "option", _typed(field, given))

    def of_lint(
        self, name: str, value: object, stated: Mapping[str, object], given: Mapping[str, object]
    ) -> SettingInForce:
        """Return a setting of lint: of `given` options, else of the file, or as by default."""
        if name in given:
            origin = self._origin(f"lint.{name}", "option", _typed(name, value))
        else:
            origin = self._origin(f"lint.{name}", "file" if name in stated else "default")
        return _chosen(f"lint.{name}", value, origin)

    def _origin(self, key: str, source: Source, by: str | None = None) -> Origin:
        if source != "file":
            return Origin(source=source, by=by)
        return Origin(source=source, file=self._file, line=self._lines.get(key))


def _typed(name: str, value: object) -> str:
    """Return an option without its value, of which a switch is part."""
    return option(name, value) if isinstance(value, bool) else option(name)


def _chosen(name: str, value: object, origin: Origin) -> SettingInForce:
    """Return a setting whose value is the one that was written, where somebody wrote one."""
    given = None if origin.source in ("default", "folder") else value
    return SettingInForce(name=name, value=value, given=given, origin=origin)
