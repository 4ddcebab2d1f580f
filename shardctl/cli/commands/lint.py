# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl lint`: what will bite in the way a project reads a dataset."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.options.dataset import chosen_dataset
from shardctl.cli.options.lint import LintOptions, path_from_repository, usage_of
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions
from shardctl.cli.output import check_format, screen, write

if TYPE_CHECKING:
    from shardctl.planning.lint.rule import Rule
    from shardctl.readers.config_file import Config
    from shardctl.rendering.lint import Settled


def lint(
    source: DatasetOptions,
    reading: OrderOptions,
    using: LintOptions,
    out: OutputOptions,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...",
            help="What is read; several are compared [default: as in shardctl.yaml, else train].",
            autocompletion=completion.splits,
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="CODE", help="Tell the whole story of a finding."),
    ] = None,
    list_rules: Annotated[
        bool, typer.Option("--list", help="List all findings there are.")
    ] = False,
) -> None:
    """Say what will bite in a pipeline's settings, with a code, why, and what helps.

    Reads the settings of the other commands, here or in shardctl.yaml, and exits with 1 if it finds
    something. Formats: table, json, yaml, csv, github.

    Example: shardctl lint 'train[:60%]' --eval 'train[50%:]' --epochs 90 -d imagenet2012
    """
    from shardctl.files import documents
    from shardctl.planning.lint.lint import explained
    from shardctl.planning.lint.lint import lint as lint_pipeline
    from shardctl.planning.lint.rules import RULES
    from shardctl.readers.config_file import find_config
    from shardctl.rendering import lint as rendering

    check_format(out.format, "table", "json", "yaml", "csv", "github")
    if explain is not None:
        _write_rules((explained(explain),), out, story=True)
        return
    if list_rules:
        _write_rules(RULES, out, story=False)
        return
    config = find_config(Path.cwd())
    arguments = using.arguments(config)
    if specs or using.evaluated:  # what is named here is what is looked at
        arguments["specs"] = tuple(specs or ())
        arguments["eval"] = tuple(using.evaluated or ())
    found = lint_pipeline(
        chosen_dataset(source),
        arguments.get("specs"),
        arguments.get("eval", ()),
        reading.settings(_machine(reading, config)),
        usage_of(arguments),
        select=arguments.get("select", ()),
        ignore=arguments.get("ignore", ()),
    )
    settled = _settled(config, reading, using, specs, for_people=out.format == "table")
    if out.format == "table":
        text = rendering.lint_text(found, settled, screen(out.output))
    elif out.format == "csv":
        text = documents.to_csv(rendering.CSV_HEADER, rendering.lint_rows(found, settled))
    elif out.format == "github":
        text = rendering.lint_annotations(found, settled)
    else:
        document = rendering.lint_document(found, settled)
        text = documents.to_json(document) if out.format == "json" else documents.to_yaml(document)
    write(text, out.output)
    if found.findings:
        raise typer.Exit(1)


def _machine(reading: OrderOptions, config: "Config | None") -> dict[str, Any]:
    """Return this machine's CPUs for a cycle of "auto", which is a finding on any machine."""
    stated = None if config is None else config.read.get("cycle")
    return {"cpus": os.cpu_count() or 1} if "auto" in (reading.cycle, stated) else {}


def _settled(
    config: "Config | None",
    reading: OrderOptions,
    using: LintOptions,
    specs: list[str] | None,
    *,
    for_people: bool,
) -> "Settled":
    """Return where the settings of shardctl.yaml stand that nothing here replaces.

    People open a file from here, annotations name it from the root of its repository.
    """
    from shardctl.readers.config_lines import setting_lines
    from shardctl.rendering.lint import Settled

    if config is None:
        return Settled(lines={})
    given = {field.name for field in fields(reading) if getattr(reading, field.name) is not None}
    given |= {"pass"} if reading.pass_index is not None else set()
    given |= using.arguments(None).keys()
    given |= {"specs", "eval"} if specs or using.evaluated else set()
    lines = setting_lines(config.path)
    return Settled(
        file=os.path.relpath(config.path) if for_people else path_from_repository(config.path),
        lines={name: line for name, line in lines.items() if name not in given},
    )


def _write_rules(rules: "Sequence[Rule]", out: OutputOptions, *, story: bool) -> None:
    from shardctl.files import documents
    from shardctl.rendering import lint as rendering

    if out.format == "csv":
        text = documents.to_csv(rendering.RULES_CSV_HEADER, rendering.rules_rows(rules))
    elif out.format in ("json", "yaml"):
        document = rendering.rules_document(rules)
        text = documents.to_json(document) if out.format == "json" else documents.to_yaml(document)
    elif story:
        text = rendering.story_text(rules[0], screen(out.output))
    else:
        text = rendering.rules_table(rules, screen(out.output))
    write(text, out.output)
