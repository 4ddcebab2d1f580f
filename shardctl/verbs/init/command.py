# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl init`: a commented shardctl.yaml for a dataset."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.base.text import quoted
from shardctl.cli.app import options_of
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import Flag, Splits
from shardctl.cli.output import OUTPUT, Formats, OutputOptions, as_text, say, warn
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
    """Write a commented shardctl.yaml, which says once what every command here reads.

    It holds the dataset and the options given here, and every other setting as a comment with its
    default and its meaning.

    Arguments:
      specs [SPEC]...: What lint looks at [default: train].

    Options:
      --force: Replace the file where it is there already.

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
    draft = _draft(source, reading, using, specs, Path(output).parent)
    FORMATS.write(OutputOptions(output=output), draft)
    if not to_file:
        return
    say(f"wrote {output}")
    if os.path.basename(output) != PROJECT_FILENAME:
        say(f"commands read it where it is named {PROJECT_FILENAME}")
        return
    say("next: check what these settings do wrong, and see them all:")
    say("  shardctl lint")
    say("  shardctl config")


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
    named = named_dataset(source.dataset or (), project=Project(), env=os.environ, cwd=here)
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
        return "What is read; several are compared."
    said = options_of(DatasetOptions, *reversed(LintOptions.__mro__))
    return re.sub(r" *\[default: [^\]]*\]", "", said[f"--{name.replace('_', '-')}"][1])
