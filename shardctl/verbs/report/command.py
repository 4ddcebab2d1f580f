# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl report`: pictures and figures of one pipeline, in one file that needs nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from shardctl.base.phrase import option_name
from shardctl.base.text import quoted
from shardctl.cli import completion
from shardctl.cli.options.dataset import (
    DatasetOptions,
    chosen_dataset,
    dataset_and_refs,
    project_here,
)
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import SpecArgument, Switch, number, option
from shardctl.cli.output import Formats, OutputOptions, as_json, as_text, as_yaml, warn
from shardctl.errors import UsageError
from shardctl.verbs.config.command import all_in_force
from shardctl.verbs.lint.command import UsageOptions, usage_of

if TYPE_CHECKING:
    from shardctl.dataset.dataset import Dataset
    from shardctl.metadata.project_file import Project
    from shardctl.metadata.reference import NamedDataset


def _formats(page: str, document: str) -> Formats:
    written = {"json": as_json(document), "yaml": as_yaml(document)}
    return Formats(renderers={"html": as_text(page), **written})


FORMATS = _formats("verbs.report.page:report_page", "verbs.report.page:report_document")
_COMPARED = _formats(
    "verbs.report.compare_page:comparison_page", "verbs.report.compare_page:comparison_document"
)


@dataclass(frozen=True, kw_only=True)
class ReportUsage(UsageOptions):
    """What lint checks; the other parts show two of these too.

    Options:
      --eval SPEC: Split or slice to evaluate on; the first is counted [default: test, else
        validation, with --hosts or --devices]; repeatable.
      --hosts N: How many hosts read; the first is measured [default: 1].
    """

    evaluated: Annotated[list[str] | None, option("--eval", offered=completion.splits)] = None
    num_hosts: Annotated[Any, number("--hosts")] = None


def report(
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

    The page is one file without scripts that needs no network: how the order is shuffled, which
    files are read when, lint's findings, every setting and its source. With hosts or devices also
    what each host reads, and whether the evaluation hangs.

    Options:
      --devices N: Devices of a host, which share a batch [default: 1].
      --loaders: Compare all loaders, too [default: no].
      --compare A B: Show two pipelines side by side: snapshots, or settings files such as
        shardctl.yaml. SPEC and the options of datasets and settings override settings files.

    Examples:
      # How does this pipeline read? Open report.html in a browser
      shardctl report --shuffle-files --buffer 10000 --hosts 64 -d mnist -o report.html
      # The same figures for programs
      shardctl report --shuffle-files --buffer 10000 -d mnist -f json
      # Where do two pipelines differ, and which is shuffled better?
      shardctl report --compare before.yaml after.yaml -o compared.html
    """
    from shardctl.metadata.files_on_disk import check_files, not_listed, with_disk_bytes
    from shardctl.verbs.report.answer import ReportQuestion, report_of

    if compare is not None:
        alone = {**vars(using), "devices": num_devices, "loaders": loaders}
        _compare(compare, source, reading, out, spec=spec, alone=alone)
        return
    project = project_here()
    resolved = reading.resolved(project)
    arguments = using.arguments(project)
    dataset = chosen_dataset(source, project, settings=resolved.settings)
    files = check_files(dataset)
    made = report_of(
        ReportQuestion(
            dataset=dataset,
            spec=spec,
            settings=resolved.settings,
            usage=usage_of(arguments),
            **{name: tuple(arguments.get(name, ())) for name in ("select", "ignore")},
            evaluated=tuple(arguments.get("eval", ())),
            in_force=all_in_force(project, source, reading, resolved, using, dataset),
            sized=with_disk_bytes(dataset, files),
            devices=num_devices,
            loaders=bool(loaders),
        )
    )
    warn(not_listed(files))
    warn(made.warnings)
    FORMATS.write(out, made)


def _compare(
    files: tuple[str, str],
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    *,
    spec: str | None,
    alone: Mapping[str, object],
) -> None:
    """Write two pipelines side by side; options override settings files."""
    from shardctl.api.diff import opened_report, refuse_one_file, sides_of
    from shardctl.verbs.report.compare import compare_sides

    for name, value in alone.items():
        if value not in (None, []):
            raise UsageError(
                f"{option_name(name)} is about one pipeline; leave it out, or --compare"
            )
    refuse_one_file(*files)
    given = [opened_report(path, path) for path in files]
    is_given = source.is_given or spec is not None or reading.given()
    if is_given and not any(one.project for one in given):
        raise UsageError(
            f"{quoted(files[0], 200)} and {quoted(files[1], 200)} are snapshots, which fix their "
            "orders; leave out SPEC and the options of datasets and settings"
        )

    def dataset_of(project: "Project", fallback: "NamedDataset | None") -> "Dataset":
        return dataset_and_refs(source, project, fallback=fallback).dataset

    made = compare_sides(
        *sides_of(given, spec=spec, dataset_of=dataset_of, settings_of=reading.settings)
    )
    warn(made.warnings)
    _COMPARED.write(out, made)
