# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl lint`: what goes wrong with the way a project reads a dataset."""

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli import completion
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.names import setting_origins
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import Splits, flag, option
from shardctl.cli.output import (
    Formats,
    OutputOptions,
    as_csv,
    as_json,
    as_table,
    as_text,
    as_yaml,
    verb_formats,
)
from shardctl.errors import UsageError
from shardctl.settings.table import SETTING_BY_FIELD
from shardctl.verbs.lint.options import LintOptions, usage_of

if TYPE_CHECKING:
    from shardctl.draw.setting_origins import SettingOrigins
    from shardctl.metadata.project_file import Project

FORMATS = Formats(
    renderers={
        **verb_formats("verbs.lint.view", "lint"),
        "github": as_text("verbs.lint.view:lint_annotations"),
    }
)
_RULES = Formats(
    renderers={
        "table": as_table("verbs.lint.view:rules_table"),
        "json": as_json("verbs.lint.view:rules_document"),
        "yaml": as_yaml("verbs.lint.view:rules_document"),
        "csv": as_csv("verbs.lint.view:rules_rows"),
        "github": as_table("verbs.lint.view:rules_table"),  # rules are not at a line of a file
    }
)


def lint(
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    out: OutputOptions,
    specs: Splits = None,
    explain: Annotated[str | None, option(offered=completion.codes)] = None,
    list_rules: Annotated[bool, flag("--list")] = False,
) -> None:
    """Say what goes wrong with a pipeline's settings, with a code, why, and what helps.

    Reads the settings of the other commands, here or in shardctl.yaml, and exits with 1 if it finds
    something (--fail-on).

    Arguments:
      specs [SPEC]...: What is read; several are compared [default: as in shardctl.yaml, else
        train].

    Options:
      --explain CODE: Tell the whole story of a finding.
      --list: List all findings there are.

    Examples:
      # Does the evaluation read what the training reads?
      shardctl lint 'train[:60%]' --eval 'train[50%:]' --epochs 90 -d imagenet2012
      # What a finding is about
      shardctl lint --explain SC001
    """
    from shardctl.verbs.lint.answer import explained
    from shardctl.verbs.lint.answer import lint as lint_pipeline
    from shardctl.verbs.lint.rule import DEFAULT_FAIL_ON
    from shardctl.verbs.lint.rules import LINT_RULES

    if explain is not None:
        _RULES.write(out, (explained(explain),), stories=True)
        return
    if list_rules:
        _RULES.write(out, LINT_RULES)
        return
    # What is named here is all that is looked at.
    named = replace(using, evaluated=[*(using.evaluated or ()), *(specs or ())])
    project = project_here(source, reading, named)
    arguments = using.arguments(project)
    if specs or using.evaluated:
        arguments["specs"] = tuple(specs or ())
        arguments["eval"] = tuple(using.evaluated or ())
    settings = reading.settings(project, _machine(reading, project))
    found = lint_pipeline(
        chosen_dataset(source, project, settings=settings),
        arguments.get("specs"),
        settings,
        evaluated=arguments.get("eval", ()),
        usage=usage_of(arguments),
        select=arguments.get("select", ()),
        ignore=arguments.get("ignore", ()),
    )
    origins = _origins(project, reading, using, specs, for_people=out.format == "table")
    FORMATS.write(out, found, origins)
    if found.fails(arguments.get("fail_on", DEFAULT_FAIL_ON)):
        raise typer.Exit(1)


def _machine(reading: OrderOptions, project: "Project") -> dict[str, Any]:
    """Return this machine's CPUs for a cycle of "auto", which is a finding on any machine."""
    from shardctl.settings.names import main_names

    with contextlib.suppress(UsageError):  # what is wrong there is said by `settings`
        cycles = (reading.given().get("cycle"), main_names(project.read).get("cycle"))
        return {"cpus": os.cpu_count() or 1} if "auto" in cycles else {}
    return {}


def _origins(
    project: "Project",
    reading: OrderOptions,
    using: LintOptions,
    specs: list[str] | None,
    *,
    for_people: bool,
) -> "SettingOrigins":
    """Return where shardctl.yaml has the settings that no option replaces."""
    given = {SETTING_BY_FIELD[name].name for name in reading.given()} | using.given().keys()
    given |= {"specs", "eval"} if specs or using.evaluated else set()
    return setting_origins(project, lambda name: name not in given, from_here=for_people)
