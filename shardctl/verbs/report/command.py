# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl report`: pictures and figures of one pipeline, in one file that needs nothing else."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shardctl.cli import completion
from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.names import typed_again
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import SpecArgument, Switch, number, option
from shardctl.cli.output import Formats, OutputOptions, as_json, as_text, as_yaml, warn
from shardctl.errors import UsageError
from shardctl.verbs.config.options import all_in_force
from shardctl.verbs.lint.options import UsageOptions, usage_of

if TYPE_CHECKING:
    from shardctl.metadata.project_file import Project

FORMATS = Formats(
    renderers={
        "html": as_text("verbs.report.page:report_page"),
        "json": as_json("verbs.report.document:report_document"),
        "yaml": as_yaml("verbs.report.document:report_document"),
    }
)


@dataclass(frozen=True, kw_only=True)
class ReportUsage(UsageOptions):
    """What lint looks at, two of which the other parts show too.

    Options:
      --eval SPEC: What is evaluated on; the first is counted in batches [default: test, else
        validation]; repeatable.
      --hosts N: How many hosts read; the first is measured [default: one reads, 8 are compared].
    """

    evaluated: Annotated[list[str] | None, option("--eval", offered=completion.splits)] = None
    num_hosts: Annotated[Any, number("--hosts")] = None


_NAMING_FILES = ("--compare", "--dataset", "--data-dir", "--file-order")
_LEFT_OUT = ("--format", "--output", "--color", *_NAMING_FILES)
_COMPARED = Formats(
    renderers={
        "html": as_text("verbs.report.compared:comparison_page"),
        "json": as_json("verbs.report.compared:comparison_document"),
        "yaml": as_yaml("verbs.report.compared:comparison_document"),
    }
)


def report(
    ctx: typer.Context,
    source: DatasetOptions,
    reading: OrderOptions,
    using: ReportUsage,
    out: OutputOptions,
    spec: SpecArgument = None,
    num_devices: Annotated[Any, number("--devices")] = None,
    loaders: Switch = None,
    compare: Annotated[tuple[str, str] | None, option()] = None,
) -> None:
    """Write one page that shows how a pipeline reads: pictures, figures, findings.

    The page is one file without scripts that needs no network: how the order is shuffled and which
    shards feed it, the first blocks, what each host reads, the steps of the evaluation, lint's
    findings, every setting and who says so, and the command that makes it again. What cannot be
    shown says why.

    Options:
      --devices N: Devices of a host, which share a batch [default: 1].
      --loaders: Compare all loaders, too [default: no].
      --compare A B: Set two side by side: snapshots, or settings files as shardctl.yaml; SPEC and
        the options of datasets and settings go over settings files.

    Examples:
      # How does this pipeline read? Open report.html in a browser
      shardctl report --shuffle-files --buffer 10000 --hosts 64 -d mnist -o report.html
      # The same figures for programs
      shardctl report --shuffle-files --buffer 10000 -d mnist -f json
      # Where do two pipelines part, and which is shuffled better?
      shardctl report --compare before.yaml after.yaml -o compared.html
    """
    from shardctl.metadata.files_on_disk import check_files, not_listed, with_disk_bytes
    from shardctl.verbs.report.answer import report_of
    from shardctl.verbs.report.question import ReportQuestion

    if compare is not None:
        if loaders:
            raise UsageError("--loaders is about one pipeline; leave it out, or --compare")
        _compare(ctx, compare, source, reading, using, out, spec=spec, devices=num_devices or 1)
        return
    project = project_here(source, reading, using)
    resolved = reading.resolved(project)
    arguments = using.arguments(project)
    usage = usage_of(arguments)
    dataset = chosen_dataset(source, project, settings=resolved.settings)
    files = check_files(dataset)
    made = report_of(
        ReportQuestion(
            dataset=dataset,
            spec=spec,
            settings=resolved.settings,
            lint=arguments,
            usage=usage,
            in_force=all_in_force(project, source, reading, resolved, using, dataset),
            file_order_list=_file_order_list(project, reading),
            sized=with_disk_bytes(dataset, files),
            devices=num_devices or 1,
            loaders=bool(loaders),
        )
    )
    warn(not_listed(files))
    warn(made.warnings)
    FORMATS.write(out, made)


def _compare(
    ctx: typer.Context,
    files: tuple[str, str],
    source: DatasetOptions,
    reading: OrderOptions,
    using: ReportUsage,
    out: OutputOptions,
    *,
    spec: str | None,
    devices: int,
) -> None:
    from shardctl.verbs.report.compare import compare_sides
    from shardctl.verbs.report.options import compared_sides, refuse_lint_options

    refuse_lint_options(using)
    made = compare_sides(
        *compared_sides(files, source, reading, spec),
        hosts=using.num_hosts,
        devices=devices,
        evaluated=using.evaluated[0] if using.evaluated else None,
    )
    warn(made.warnings)
    spec_typed = [] if spec is None else [spec]
    named = [*_from_anywhere(files, source, reading), "-o", "report.html"]
    again = typed_again(ctx, spec_typed, *named, leaving_out=_LEFT_OUT)
    _COMPARED.write(out, replace(made, again=again))


def _from_anywhere(
    files: tuple[str, str], source: DatasetOptions, reading: OrderOptions
) -> Iterator[str]:
    """Yield the options that name files, by whole paths; a page goes to others, so no secrets."""
    from shardctl.metadata.reference import ref_from_anywhere

    yield "--compare"
    yield from (ref_from_anywhere(file, is_path=True) for file in files)
    for ref in source.dataset or ():
        yield from ("-d", ref_from_anywhere(ref))
    if source.data_dir is not None:
        yield from ("--data-dir", ref_from_anywhere(source.data_dir, is_path=True))
    listed = reading.given().get("file_order")
    if listed is not None:
        yield from ("--file-order", listed if listed == "-" else os.path.abspath(listed))


def _file_order_list(project: "Project", reading: OrderOptions) -> str | None:
    """Return the whole path of the list that the file order was read from, if it was a file."""
    from shardctl.settings.names import main_names

    given = reading.given().get("file_order")
    if given is not None:
        return None if given == "-" else os.path.abspath(given)
    stated = main_names(project.read).get("file_order")
    if project.path is None or not isinstance(stated, str):
        return None
    return os.path.abspath(project.path.parent / stated)
