# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl diff`: where and why two orders, or two plans, differ."""

from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.formats import (
    AllOption,
    Formats,
    OutputOptions,
    as_json,
    as_table,
    as_text,
    as_yaml,
)
from shardctl.cli.options.dataset import (
    chosen_dataset,
    project_here,
    refs_to_keep,
    text_on_stdin,
)
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions
from shardctl.cli.output import say, warn, write
from shardctl.core.text import printable, quoted
from shardctl.errors import UsageError

if TYPE_CHECKING:
    from shardctl.core.resume.resume_plan import PlanListing
    from shardctl.core.snapshot.snapshot import Snapshot
    from shardctl.readers.reference import Fallback


def _formats(module: str, what: str) -> Formats:
    return Formats(
        renderers={
            "table": as_table(f"rendering.diff.{module}:{what}_table"),
            "json": as_json(f"rendering.diff.{module}:{what}_document"),
            "yaml": as_yaml(f"rendering.diff.{module}:{what}_document"),
            "github": as_text(f"rendering.diff.{module}:{what}_annotation"),
        }
    )


FORMATS = _formats("diff", "diff")
_PLANS = _formats("plans", "plans")


def diff(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    expected: Annotated[
        str, typer.Argument(metavar="A", help="A snapshot; or a plan, with B another; - is stdin.")
    ],
    actual: Annotated[
        str | None,
        typer.Argument(metavar="[B]", help="Another one [default: the current order]."),
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            "--spec",
            metavar="SPEC",
            help="What the current order reads [default: as in A].",
            autocompletion=completion.splits,
        ),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Write the current order to A where it differs.")
    ] = False,
    every_row: AllOption = False,
) -> None:
    """Say where and why two orders differ; exits with 0 if equal, 1 if different, 2 for trouble.

    The dataset is chosen as in every command, else it is the one that A names; a setting that
    neither an option nor shardctl.yaml names is as in A.

    Examples:
      # Is today's order still the one that was fixed?
      shardctl diff order.yaml
      # Where would another cycle part from it?
      shardctl diff order.yaml --cycle 8
      # What changed between two plans
      shardctl diff before.json after.json
    """
    from shardctl.core.snapshot.snapshot import Snapshot

    if update and expected == "-":
        raise UsageError("--update writes the current order to A, which is stdin; name a file")
    first = _read(expected)
    shown = "stdin" if expected == "-" else expected
    if actual is None:
        if not isinstance(first, Snapshot):
            raise UsageError(
                f"{quoted(expected)} is a {first.kind}; name a second one to compare it with"
            )
        equal = _with_current(first, shown, source, reading, spec, out, update=update)
    else:
        _refuse_options(source, reading, spec, update=update)
        equal = _with_file(
            first,
            _read(actual),
            (shown, "stdin" if actual == "-" else actual),
            out,
            every_row=every_row,
        )
    if not equal:
        raise typer.Exit(1)


def _read(path: str) -> "Snapshot | PlanListing":
    from shardctl.files.comparable_file import parse_comparable, read_comparable

    if path == "-":
        return parse_comparable(text_on_stdin(), source="stdin")
    return read_comparable(Path(path))


def _refuse_options(
    source: DatasetOptions, reading: OrderOptions, spec: str | None, *, update: bool
) -> None:
    if update:
        raise UsageError("--update writes the current order to A; leave out B")
    if reading.given() or any(value is not None for value in (*astuple(source), spec)):
        raise UsageError(
            "options of datasets and settings are about the current order; leave them out, or B"
        )


def _with_file(
    first: "Snapshot | PlanListing",
    second: "Snapshot | PlanListing",
    labels: tuple[str, str],
    out: OutputOptions,
    *,
    every_row: bool,
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
        FORMATS.write(out, found)
        return found.equal
    if isinstance(first, Snapshot) or isinstance(second, Snapshot):
        kinds = [KIND if isinstance(side, Snapshot) else side.kind for side in (first, second)]
        raise UsageError(
            f"{quoted(labels[0])} is a {kinds[0]} and {quoted(labels[1])} a {kinds[1]}; files of "
            "one kind are compared"
        )
    plans = diff_plans(first, second, labels=labels)
    _PLANS.write(out, plans, every_row=every_row)
    return plans.equal


def _with_current(
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
    from shardctl.planning.diff.pinned_order import PinnedOrder, settings_to_fall_back_on
    from shardctl.planning.snapshot import snapshot

    project = project_here(source, reading)
    dataset = chosen_dataset(source, project, fallback=_named_by(pinned, path))
    settings = reading.settings(project, settings_to_fall_back_on(pinned, dataset))
    spec = pinned.spec if spec is None else spec
    current = snapshot(dataset, spec, settings)
    warn(current.warnings)
    found = compare(
        PinnedOrder(snapshot=pinned, label=path),
        PinnedOrder(snapshot=current.snapshot, label="today", live=current.live),
    )
    FORMATS.write(out, found, can_update=not update)
    if not update:
        return found.equal
    if current.snapshot != pinned:
        refs = refs_to_keep(source, path) if source.dataset else pinned.refs
        render = snapshot_json if is_json(Path(path).read_bytes()) else snapshot_yaml
        write(render(replace(current.snapshot, refs=refs)), path)
        say(f"{path} now holds the current order")
    return True


def _named_by(pinned: "Snapshot", path: str) -> "Fallback":
    """Return where to look for the dataset of a snapshot that nothing else chooses."""
    from shardctl.readers.reference import Fallback

    refs = pinned.refs or (pinned.title,)
    return Fallback(refs=refs, folder=Path(path).parent, said_by=printable(path))
