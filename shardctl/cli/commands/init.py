# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl init`: a commented shardctl.yaml for a dataset."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.formats import Formats, OutputOptions, as_text
from shardctl.cli.options.dataset import chosen_dataset
from shardctl.cli.options.lint import LintOptions, usage_of
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, flag, setting_in_words
from shardctl.cli.output import say, warn
from shardctl.cli.panels import OUTPUT
from shardctl.core.secrets import public_url
from shardctl.core.settings.table import SETTING_BY_FIELD, SETTINGS
from shardctl.core.text import quoted
from shardctl.errors import ShardctlError, UsageError
from shardctl.files.stores.stores import is_remote
from shardctl.readers.project_file import PROJECT_FILENAME, Project, project_files

if TYPE_CHECKING:
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.core.settings.read_settings import ReadSettings
    from shardctl.core.stages.stages import Pipeline, Read
    from shardctl.readers.reference import NamedDataset
    from shardctl.rendering.init import DraftSetting, ProjectDraft

FORMATS = Formats(renderers={"yaml": as_text("rendering.init:project_text")})


def init(
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...",
            help="What lint looks at [default: train].",
            autocompletion=completion.splits,
        ),
    ] = None,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to another file, or to stdout (-).",
            rich_help_panel=OUTPUT,
        ),
    ] = PROJECT_FILENAME,
    force: Annotated[bool, flag("Replace the file where it is there already.")] = False,
) -> None:
    """Write a commented shardctl.yaml, which says once what every command here reads.

    It holds the dataset and the options given here, and every other setting as a comment with its
    default and its meaning.

    Examples:
      # Commands in this folder read mnist, shuffled, in batches
      shardctl init -d mnist --shuffle-seed 42 --batch 128
      # What the file of a project with an evaluation of its own would say
      shardctl init 'train[:90%]' --eval 'train[90%:]' -d mnist -o -
    """
    to_file = output != "-"
    if to_file and not force and os.path.lexists(output):
        raise UsageError(
            f"{quoted(output, 200)} is there already; --force replaces it, --output FILE writes "
            "another, and shardctl config shows what it says"
        )
    draft = _Draft(source=source, reading=reading, using=using, specs=specs, output=output)
    FORMATS.write(OutputOptions(output=output), draft.made())
    if to_file:
        _say_what_next(draft, output)


def _say_what_next(draft: "_Draft", output: str) -> None:
    said = ", ".join(draft.said()) or "nothing but defaults"
    say(f"wrote {output}: {said}")
    path = Path(os.path.abspath(output))
    if path.name != PROJECT_FILENAME:
        say(f"commands read it where it is named {PROJECT_FILENAME}")
        return
    above = next((file for file in project_files(path.parent.parent)), None)
    if above is not None:
        say(f"{os.path.relpath(above)} is not read here any more: the nearest file alone is")
    say("next: shardctl config shows what is in force, shardctl lint what goes wrong with it")


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What is to be written, from the options."""

    source: DatasetOptions
    reading: OrderOptions
    using: LintOptions
    specs: list[str] | None
    output: str

    @property
    def _folder(self) -> Path:
        """The folder of the file, to which its paths are relative."""
        return Path("." if self.output == "-" else os.path.dirname(self.output) or ".")

    def said(self) -> Iterator[str]:
        """Yield what the file states, in words."""
        named = self._named()
        if named.source != "default":
            yield setting_in_words("dataset", " and ".join(self._refs()))
        for name, value in self.reading.given().items():
            yield setting_in_words(SETTING_BY_FIELD[name].name, value)
        for name, value in self._lint().items():
            yield setting_in_words(f"lint {name}", list(value) if _is_list(value) else value)

    def made(self) -> "ProjectDraft":
        """Return what the file says.

        Raises:
            ShardctlError: the dataset is not there, or the options do not fit it or each other.
        """
        from shardctl.core.instructions.subsplit import resolve_subsplit
        from shardctl.rendering.init import DraftSetting, ProjectDraft

        dataset = chosen_dataset(self.source, Project())
        settings = self.reading.settings(Project())
        linted = self._lint()
        for spec in (*linted.get("specs", ()), *linted.get("eval", ())):
            resolve_subsplit(spec, dataset)
        try:
            settings.check_predictable(ordered=dataset.ordered)
        except ShardctlError as error:  # a file may state what only some commands refuse
            warn([str(error)])
        refs = self._refs()
        data_dir = self.source.data_dir
        return ProjectDraft(
            dataset=DraftSetting(
                name="dataset",
                value=refs if len(refs) > 1 else refs[0],
                meaning=f"{_help('--dataset')} A path is relative to this file.",
                stated=self._named().source != "default",
            ),
            data_dir=DraftSetting(
                name="data_dir",
                value=None if data_dir is None else self._path(data_dir),
                meaning=_help("--data-dir"),
                stated=data_dir is not None,
            ),
            read=tuple(self._read_settings(settings, dataset)),
            lint=tuple(self._lint_settings(linted, settings, dataset)),
        )

    def _named(self) -> "NamedDataset":
        from shardctl.files.file_text import working_folder
        from shardctl.readers.reference import named_dataset

        refs = self.source.dataset or ()
        return named_dataset(refs, project=Project(), env=os.environ, cwd=working_folder())

    def _refs(self) -> list[str]:
        from shardctl.files.file_text import working_folder
        from shardctl.readers.reference import ref_from

        refs = self._named().refs
        return [ref_from(ref, cwd=working_folder(), folder=self._folder) for ref in refs]

    def _path(self, path: str) -> str:
        """Return a path as the file states it: one that is relative here, relative to the file."""
        if is_remote(path) or os.path.isabs(path) or path.startswith("~"):
            return public_url(path)
        return Path(os.path.relpath(path, self._folder)).as_posix()

    def _stages(self, stages: "Pipeline") -> "Pipeline":
        """Return stages whose paths lead from the file."""
        from shardctl.core.stages.pipelines import with_changed
        from shardctl.files.file_text import working_folder
        from shardctl.readers.reference import ref_from

        def read(read: "Read") -> "Read":
            if read.data is None:
                return read
            return replace(
                read, data=ref_from(read.data, cwd=working_folder(), folder=self._folder)
            )

        return with_changed(stages, read=read, kept=self._path)

    def _lint(self) -> dict[str, Any]:
        return self.using.arguments(Project()) | (
            {"specs": tuple(self.specs)} if self.specs else {}
        )

    def _read_settings(
        self, settings: "ReadSettings", dataset: "Dataset"
    ) -> "Iterator[DraftSetting]":
        from shardctl.rendering.init import DraftSetting

        given = self.reading.given()
        for setting in SETTINGS:
            value = setting.value_in_force(settings, ordered=dataset.ordered)
            if setting.field == "file_order" and given.get("file_order", "-") != "-":
                value = self._path(given[setting.field])
            elif setting.field == "stages" and settings.stages is not None:
                value = setting.kind.to_document(self._stages(settings.stages))
            elif setting.field in given:
                value = setting.kind.to_document(getattr(settings, setting.field))
            meaning = _without_default(setting.help)
            if setting.stands_for.lower() not in meaning.lower():
                meaning = f"{meaning.rstrip('.')} ({setting.stands_for})."
            yield DraftSetting(
                name=setting.name,
                value=value,
                meaning=meaning,
                takes=setting.kind.metavar or "true|false",
                stated=setting.field in given,
            )

    def _lint_settings(
        self, linted: Mapping[str, Any], settings: "ReadSettings", dataset: "Dataset"
    ) -> "Iterator[DraftSetting]":
        from shardctl.planning.config import lint_in_force
        from shardctl.rendering.init import DraftSetting

        in_force = lint_in_force(linted, usage_of(dict(linted)), settings, dataset)
        if "open_files" not in linted:
            in_force["open_files"] = None  # another number on the next machine
        for name, value in in_force.items():
            option = f"--{name.replace('_', '-')}"
            yield DraftSetting(
                name=name,
                value=value,
                meaning="What is read; several are compared."
                if name == "specs"
                else _without_default(_help(option)),
                stated=name in linted,
            )


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _help(option: str) -> str:
    """Return the help of an option of the dataset or of lint, the one place that has its words."""
    for group in (DatasetOptions, LintOptions):
        for hint in get_type_hints(group, include_extras=True).values():
            for about in get_args(hint)[1:]:
                names = (about.default, *about.param_decls)  # Typer's first is its default here
                if option in str(names[0]).split("/") + list(names[1:]):
                    return str(about.help)
    raise AssertionError(f"no option {option}")


def _without_default(text: str) -> str:
    return re.sub(r" *\[default: [^\]]*\]", "", text)
