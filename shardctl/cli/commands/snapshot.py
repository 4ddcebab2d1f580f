# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl snapshot`: a small file that fixes an order."""

from dataclasses import replace

from shardctl.cli.formats import Formats, OutputOptions, as_text
from shardctl.cli.options.dataset import chosen_dataset, project_here, refs_to_keep
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import DatasetOptions, SpecArgument
from shardctl.cli.output import warn

FORMATS = Formats(
    renderers={
        "yaml": as_text("files.snapshot.writer:snapshot_yaml"),
        "json": as_text("files.snapshot.writer:snapshot_json"),
    }
)


def snapshot(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    spec: SpecArgument = None,
) -> None:
    """Write a small file that fixes an order: commit it, and compare it with shardctl diff.

    Examples:
      # Fix the order that a training reads
      shardctl snapshot train --shuffle-seed 42 -d mnist -o order.yaml
      # As shardctl.yaml, the environment or the folder choose the dataset
      shardctl snapshot -o order.yaml
    """
    from shardctl.planning.snapshot import snapshot as take_snapshot

    project = project_here(source, reading)
    settings = reading.settings(project)
    taken = take_snapshot(chosen_dataset(source, project), spec, settings)
    warn(taken.warnings)
    refs = refs_to_keep(source, out.output)
    FORMATS.write(out, replace(taken.snapshot, refs=refs))
