# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl snapshot`: a small file that fixes an order."""

from dataclasses import replace

from shardctl.cli.options.dataset import (
    DatasetOptions,
    dataset_and_refs,
    options_of_snapshot,
    project_here,
    refs_to_keep,
)
from shardctl.cli.options.order import OrderOptions
from shardctl.cli.options.shared import SpecArgument
from shardctl.cli.output import Formats, OutputOptions, as_text, say, warn

FORMATS = Formats(
    renderers={
        "yaml": as_text("saved.snapshot_file:snapshot_yaml"),
        "json": as_text("saved.snapshot_file:snapshot_json"),
    }
)


def snapshot(
    source: DatasetOptions, reading: OrderOptions, out: OutputOptions, spec: SpecArgument = None
) -> None:
    """Write a small file that fixes an order, a snapshot: commit it, then compare with diff.

    Examples:
      # Fix the order that a training reads
      shardctl snapshot train --shuffle-seed 42 -d mnist -o order.yaml
      # The order of a part, as TFDS reads it by default
      shardctl snapshot 'train[:80%]' -d mnist -o order.yaml
    """
    from shardctl.verbs.snapshot.answer import snapshot as take_snapshot

    project = project_here()
    settings = reading.settings(project)
    chosen = dataset_and_refs(source, project)
    taken = take_snapshot(chosen.dataset, spec, settings)
    warn(taken.warnings)
    # How the file names its dataset, seen from where the file is.
    refs = refs_to_keep(chosen, out.output)
    FORMATS.write(out, replace(taken.snapshot, refs=refs))
    if out.output not in (None, "-"):
        from shardctl.verbs.snapshot.view import snapshot_written

        options = options_of_snapshot(source, project)
        for line in snapshot_written(taken.snapshot, out.output, options):
            say(line)
