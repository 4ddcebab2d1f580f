# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl init`: a commented shardctl.yaml for a dataset."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.base.text import quoted, run_in
from shardctl.cli.app import options_of
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import Flag, Splits
from shardctl.cli.output import OUTPUT, Formats, OutputOptions, as_text, say, warn, write
from shardctl.errors import ShardctlError, UsageError
from shardctl.metadata.project_file import PROJECT_FILENAME, Project
from shardctl.verbs.lint.command import LintOptions, usage_of

if TYPE_CHECKING:
    from shardctl.verbs.init.answer import ProjectDraft

FORMATS = Formats(renderers={"yaml": as_text("verbs.init.view:project_text")})


def init(
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    specs: Splits = None,
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
    force: Flag = False,
) -> None:
    """Write a commented shardctl.yaml: the settings of all commands in this folder.

    It holds the dataset and the options given here. Every other setting is a comment with its
    default and its meaning. Beside it, shardctl.schema.json tells editors what the file may hold.

    Arguments:
      specs [SPEC]...: Splits or slices that lint checks [default: train].

    Options:
      --force: Replace an existing file.

    Examples:
      # Commands in this folder read mnist, shuffled, in batches
      shardctl init -d mnist --shuffle-seed 42 --batch 128
      # Print the file of a project with an evaluation slice
      shardctl init 'train[:90%]' --eval 'train[90%:]' -d mnist -o -
    """
    to_file = output != "-"
    if to_file and not force and os.path.lexists(output):
        raise UsageError(
            f"{quoted(output, 200)} exists; --force replaces it, --output FILE writes another one"
        )
    draft = _draft(source, reading, using, specs, Path(output).parent)
    if not to_file:
        FORMATS.write(OutputOptions(output=output), draft)
        return
    from shardctl.verbs.config.schema import SCHEMA_FILENAME, schema_text

    FORMATS.write(OutputOptions(output=output), replace(draft, schema=SCHEMA_FILENAME))
    beside = os.path.join(os.path.dirname(output), SCHEMA_FILENAME)
    write([schema_text()], beside)
    say(f"wrote {output} and {beside}, by which editors check it")
    if os.path.basename(output) != PROJECT_FILENAME:
        say(f"commands read it only under the name {PROJECT_FILENAME}")
        return
    say("next: see all settings, and check them:")
    say(f"  {run_in(os.path.dirname(output), 'shardctl', 'config')}")
    say("  shardctl lint")


def _draft(
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    specs: list[str] | None,
    folder: Path,
) -> "ProjectDraft":
    """Return what a file in a folder says, to which its paths are relative.

    Raises:
        ShardctlError: the dataset is not there, or the options do not fit it or each other.
    """
    from shardctl.metadata.reference import named_dataset, ref_from
    from shardctl.spec.subsplit import resolve_subsplit
    from shardctl.stores.stores import working_folder
    from shardctl.verbs.config.answer import lint_in_force
    from shardctl.verbs.init.answer import DraftSetting, ProjectDraft, path_as_stated, read_settings

    here = working_folder()

    def from_file(ref: str) -> str:
        return ref_from(ref, cwd=here, folder=folder)

    dataset = chosen_dataset(source, Project())
    settings = reading.settings(Project())
    linted = using.arguments(Project()) | ({"specs": tuple(specs)} if specs else {})
    for spec in (*linted.get("specs", ()), *linted.get("eval", ())):
        resolve_subsplit(spec, dataset)
    try:
        settings.check_predictable(ordered=dataset.ordered)
    except ShardctlError as error:  # a file may state what only some commands refuse
        warn([str(error)])
    named = named_dataset(source.dataset or (), project=Project())
    refs = [*map(from_file, named.refs)]
    in_force = lint_in_force(linted, usage_of(dict(linted)), settings, dataset)
    if "open_files" not in linted:
        in_force["open_files"] = None  # another number on the next machine
    return ProjectDraft(
        dataset=DraftSetting(
            name="dataset",
            value=refs if len(refs) > 1 else refs[0],
            meaning=f"{_help('dataset')} A path is relative to this file.",
            stated=named.source != "default",
        ),
        data_dir=DraftSetting(
            name="data_dir",
            value=None if source.data_dir is None else path_as_stated(source.data_dir, folder),
            meaning=_help("data_dir"),
            stated=source.data_dir is not None,
        ),
        read=tuple(read_settings(settings, reading.given(), dataset, folder, from_file)),
        lint=tuple(
            DraftSetting(name=name, value=value, meaning=_help(name), stated=name in linted)
            for name, value in in_force.items()
        ),
    )


def _help(name: str) -> str:
    """Return the help of an option of the dataset or of lint, the one place that has its words."""
    if name == "specs":
        return "Splits or slices that are read; several are compared."
    said = options_of(DatasetOptions, *reversed(LintOptions.__mro__))
    return re.sub(r" *\[default: [^\]]*\]", "", said[f"--{name.replace('_', '-')}"][1])
