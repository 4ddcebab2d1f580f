# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl snapshot`: a small file that fixes an order."""

from dataclasses import dataclass
from typing import Annotated

import typer

from shardctl.cli.options.dataset import chosen_dataset
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, OutputOptions, SpecArgument
from shardctl.cli.output import check_format, warn, write
from shardctl.cli.progress import watched


@dataclass(frozen=True, kw_only=True)
class SnapshotOutput(OutputOptions):
    """How and where a snapshot is written."""

    format: Annotated[
        str,
        typer.Option("--format", "-f", metavar="FORMAT", help="yaml, or json for programs."),
    ] = "yaml"


def snapshot(
    source: DatasetOptions,
    reading: OrderOptions,
    out: SnapshotOutput,
    spec: SpecArgument = None,
) -> None:
    """Write a small file that fixes an order: commit it, and compare it with shardctl diff.

    Example: shardctl snapshot train --shuffle-seed 42 -o order.yaml
    """
    from shardctl.files.snapshot.writer import snapshot_json, snapshot_yaml
    from shardctl.planning.snapshot import snapshot as take_snapshot

    check_format(out.format, "yaml", "json")
    settings = reading.settings()
    taken = take_snapshot(chosen_dataset(source), spec, settings, watch=watched)
    warn(taken.warnings)
    render = snapshot_yaml if out.format == "yaml" else snapshot_json
    write(render(taken.snapshot), out.output)
