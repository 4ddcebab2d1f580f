# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl plan`: the file instructions of a subsplit."""

from typing import Annotated, Any

import typer

from shardctl.cli.completion import values as completion
from shardctl.cli.formats import AllOption, Formats, OutputOptions, verb_formats
from shardctl.cli.options.dataset import chosen_dataset, project_here
from shardctl.cli.options.shared import DatasetOptions, flag, number, option
from shardctl.cli.output import warn

FORMATS = Formats(renderers=verb_formats("rendering.plan", "plan"))


def plan(
    source: DatasetOptions,
    out: OutputOptions,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...",
            help="Subsplits as TFDS writes them: 'train[40:]', 'train[:10%]+test', 'all' "
            "[default: train].",
            autocompletion=completion.splits,
        ),
    ] = None,
    hosts: Annotated[Any, number("Plan every one of N hosts.")] = None,
    host: Annotated[str | None, option("I/N", "Plan host I of N only, from 0.")] = None,
    drop_remainder: Annotated[
        bool, flag("Give every host the same number; leave out the rest.")
    ] = False,
    every_row: AllOption = False,
) -> None:
    """Resolve subsplits to file instructions, for one reader or for each host.

    Hosts share the examples as tfds.even_splits does.

    Examples:
      # What a slice reads, and from which files
      shardctl plan 'train[44%:45%]' -d imagenet2012
      # Two parts of a split in turn, for each of 8 hosts
      shardctl plan 'train[:10%]' 'train[10%:]' --hosts 8 -d mnist -f json
    """
    from shardctl.core.hosts.host import Host
    from shardctl.planning.plan import plan as plan_specs

    plans = plan_specs(
        chosen_dataset(source, project_here(source)),
        *specs or (),
        hosts=hosts,
        host=None if host is None else Host.parse(host),
        drop_remainder=drop_remainder,
    )
    warn(plans.warnings)
    FORMATS.write(out, plans, every_row=every_row)
