# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl diff`: where and why two orders, or two plans, part."""

import os
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions
from shardctl.cli.output import check_format, say, screen, warn, write
from shardctl.cli.progress import watched
from shardctl.core.text import quoted
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.core.dataset.dataset import Dataset
    from shardctl.core.resume.plan_listing import PlanListing
    from shardctl.core.snapshot.snapshot import Snapshot
    from shardctl.planning.diff.diff import Diff
    from shardctl.planning.diff.plans import PlansDiff

_FORMATS = ("table", "json", "yaml", "github")


def diff(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    expected: Annotated[
        str, typer.Argument(metavar="A", help="A snapshot; or a plan, with B another.")
    ],
    actual: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="Another one [default: the order as it is today]."),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            "--spec",
            metavar="SPEC",
            help="What is read today [default: as in A].",
            autocompletion=completion.splits,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write today's order to A where it differs.")
    ] = False,
) -> None:
    """Say where and why two orders part; exit with 0 for the same, 1 for different, 2 for trouble.

    Today's dataset is chosen as ever, or else the one that A names is looked up; a setting that
    neither an option nor shardctl.yaml names is as in A. Formats: table, json, yaml, github.

    Example: shardctl diff order.yaml
    """
    from shardctl.core.snapshot.snapshot import Snapshot
    from shardctl.files.comparable_file import read_comparable

    check_format(out.format, *_FORMATS)
    first = read_comparable(Path(expected))
    if actual is None:
        if not isinstance(first, Snapshot):
            raise UsageError(
                f"{quoted(expected)} is a {first.kind}; name a second one to compare it with"
            )
        equal = _with_today(first, expected, source, reading, spec, out, update=update)
    else:
        _refuse_options(source, reading, spec, update=update)
        equal = _with_file(first, read_comparable(Path(actual)), (expected, actual), out)
    if not equal:
        raise typer.Exit(1)


def _refuse_options(
    source: DatasetOptions, reading: OrderOptions, spec: str | None, *, update: bool
) -> None:
    if update:
        raise UsageError("--update writes today's order to A; leave out B")
    given = (*astuple(source), *astuple(reading), spec)
    if any(value is not None for value in given):
        raise UsageError(
            "options of datasets and settings are about today's order; leave them out, or B"
        )


def _with_file(
    first: "Snapshot | PlanListing",
    second: "Snapshot | PlanListing",
    labels: tuple[str, str],
    out: OutputOptions,
) -> bool:
    from shardctl.core.snapshot.snapshot import KIND, Snapshot
    from shardctl.planning.diff.diff import diff as compare
    from shardctl.planning.diff.pinned_order import PinnedOrder
    from shardctl.planning.diff.plans import diff_plans

    if isinstance(first, Snapshot) and isinstance(second, Snapshot):
        found = compare(
            PinnedOrder(snapshot=first, label=labels[0]),
            PinnedOrder(snapshot=second, label=labels[1]),
        )
        _write_orders(found, labels[0], out)
        return found.equal
    if isinstance(first, Snapshot) or isinstance(second, Snapshot):
        kinds = [KIND if isinstance(side, Snapshot) else side.kind for side in (first, second)]
        raise UsageError(
            f"{quoted(labels[0])} is a {kinds[0]} and {quoted(labels[1])} a {kinds[1]}; files of "
            "one kind are compared"
        )
    plans = diff_plans(first, second, labels=labels)
    _write_plans(plans, labels[0], out)
    return plans.equal


def _with_today(
    pinned: "Snapshot",
    path: str,
    source: DatasetOptions,
    reading: OrderOptions,
    spec: str | None,
    out: OutputOptions,
    *,
    update: bool,
) -> bool:
    from shardctl.files.comparable_file import is_json
    from shardctl.files.snapshot.writer import snapshot_json, snapshot_yaml
    from shardctl.planning.diff.diff import diff as compare
    from shardctl.planning.diff.pinned_order import PinnedOrder
    from shardctl.planning.diff.pinned_settings import settings_to_fall_back_on
    from shardctl.planning.snapshot import snapshot

    dataset = _todays_dataset(pinned, source)
    settings = reading.settings(settings_to_fall_back_on(pinned, dataset))
    today = snapshot(dataset, pinned.spec if spec is None else spec, settings, watch=watched)
    warn(today.warnings)
    found = compare(
        PinnedOrder(snapshot=pinned, label=path),
        PinnedOrder(snapshot=today.snapshot, label="today", live=today.live),
    )
    _write_orders(found, path, out, can_update=not update)
    if not update:
        return found.equal
    if today.snapshot != pinned:
        render = snapshot_json if is_json(Path(path).read_bytes()) else snapshot_yaml
        write(render(today.snapshot), path)
        say(f"{path} now holds today's order")
    return True


def _todays_dataset(pinned: "Snapshot", source: DatasetOptions) -> "Dataset":
    """Return the dataset that is chosen as in every command, else the one that is pinned."""
    from shardctl.readers.reference import choose_dataset, read_dataset

    chosen = choose_dataset(
        source.dataset or (), data_dir=source.data_dir, env=os.environ, cwd=Path.cwd()
    )
    if chosen.note is None:
        return chosen.dataset
    data_dir = source.data_dir
    if data_dir is None and chosen.config is not None:
        data_dir = chosen.config.data_dir
    return read_dataset([pinned.title], data_dir=data_dir, env=os.environ, cwd=Path.cwd())


def _write_orders(
    found: "Diff", path: str, out: OutputOptions, *, can_update: bool = False
) -> None:
    from shardctl.files import documents
    from shardctl.rendering.diff import diff as rendering

    chunks: Iterable[str]
    if out.format == "table":
        advice = f"if this is meant, the same command with --update writes it to {path}"
        shown = screen(out.output)
        chunks = rendering.diff_text(found, shown, advice=advice if can_update else None)
    elif out.format == "github":
        chunks = rendering.diff_annotation(found, path)
    else:
        to_text = documents.to_json if out.format == "json" else documents.to_yaml
        chunks = to_text(rendering.diff_document(found))
    write(chunks, out.output)


def _write_plans(found: "PlansDiff", path: str, out: OutputOptions) -> None:
    from shardctl.files import documents
    from shardctl.rendering.diff import plans as rendering

    chunks: Iterable[str]
    if out.format == "table":
        chunks = rendering.plans_text(found, screen(out.output))
    elif out.format == "github":
        chunks = rendering.plans_annotation(found, path)
    else:
        to_text = documents.to_json if out.format == "json" else documents.to_yaml
        chunks = to_text(rendering.plans_document(found))
    write(chunks, out.output)
