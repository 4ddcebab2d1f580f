# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl audit`: what a run was trained on, by its logs."""

import os
from typing import Annotated, Any

import typer

from shardctl.base.text import choices
from shardctl.cli import output
from shardctl.cli.options.dataset import DatasetOptions
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.options.shared import argument, number
from shardctl.errors import UsageError

FORMATS = output.formats_of("audit", pictures=True)


def audit(
    source: DatasetOptions,
    reading: OrderOptions,
    out: output.OutputOptions,
    logs: Annotated[list[str] | None, argument()] = None,
    first_step: Annotated[Any, number(minimum=0)] = None,
    every_row: output.AllOption = False,
    picture: output.PictureOption = None,
) -> None:
    """Compare the logs of a run with its order: what was trained on twice, never, out of turn.

    A log has a line for each step, STEP ID ID .., with ids or tfds_ids, or the step alone. A
    process appends to its own; shardctl.StepLog writes such logs. Where steps go back the job was
    restarted: what it rolled back counts beside the steps that survived. Exit with 1 if something
    differs; -f csv lists it.

    Arguments:
      logs LOG.. [SPEC]: Files, folders of *.log, - for stdin; then the split or slice
        [default: train].

    Options:
      --first-step S: The first step of the run is step S [default: 1 if the logs begin so, else 0].

    Examples:
      # Was every example trained on once, across all restarts?
      shardctl audit run/trained.log --shuffle-seed 1 --batch 64 -d mnist
      # Logs of 8 hosts, of two epochs, and every difference as a row
      shardctl audit run/ --epochs 2 --batch 64 -d mnist -o differences.csv
    """
    from shardctl.verbs.audit.answer import audit as audit_logs

    words = logs or []
    specs = [word for word in words if not (word == "-" or os.path.exists(word))]
    paths = [word for word in words if word not in specs]
    if not paths or len(specs) > 1:
        given = f"not {choices(specs)}" if specs else "there are none"
        raise UsageError(
            f"give logs, files that are there, and at most one split or slice; {given}"
        )
    dataset, settings = asked_for(source, reading)
    spec = specs[0] if specs else None
    found = audit_logs(dataset, spec, settings, logs=paths, first_step=first_step)
    output.warn(found.warnings)
    FORMATS.write(out, found, every_row=every_row, picture=picture)
    if not found.equal:
        raise typer.Exit(1)
