# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl plan`: the file instructions of a subsplit."""

from typing import Annotated

import typer

from shardctl.cli.answer import answer, check_answer
from shardctl.cli.completion import values as completion
from shardctl.cli.options.dataset import chosen_dataset
from shardctl.cli.options.numbers import whole_number
from shardctl.cli.options.shared import DatasetOptions, OutputOptions
from shardctl.cli.output import warn


def plan(
    specs: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC...",
            help="Subsplits as TFDS writes them: 'train[40:]', 'train[:10%]+test', 'all'.",
            autocompletion=completion.splits,
        ),
    ],
    source: DatasetOptions,
    out: OutputOptions,
    hosts: Annotated[
        int | None,
        typer.Option(
            "--hosts",
            metavar="N",
            parser=whole_number("--hosts", minimum=1),
            help="Plan every one of N hosts.",
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="I/N", help="Plan host I of N only, from 0.")
    ] = None,
    drop_remainder: Annotated[
        bool, typer.Option("--drop-remainder", help="Leave out what N does not divide.")
    ] = False,
    every_row: Annotated[
        bool, typer.Option("--all", help="Show every file instruction in the table.")
    ] = False,
) -> None:
    """Resolve subsplits to file instructions, for one reader or for each host.

    Hosts share the examples as tfds.even_splits does.

    Example: shardctl plan 'train[44%:45%]' -d imagenet2012
    """
    from shardctl.core.hosts.host import Host
    from shardctl.errors import UsageError
    from shardctl.planning.plan import plan as plan_specs
    from shardctl.rendering import plan as rendering

    check_answer(out)
    if host is not None and hosts is not None:
        raise UsageError("--host and --hosts together: --host I/N already says how many there are")
    if drop_remainder and host is None and hosts is None:
        raise UsageError("--drop-remainder needs --hosts N or --host I/N: one reader drops nothing")
    plans = plan_specs(
        chosen_dataset(source),
        *specs,
        hosts=hosts,
        host=None if host is None else Host.parse(host),
        drop_remainder=drop_remainder,
    )
    warn(plans.warnings)
    answer(
        out,
        table=lambda screen: rendering.plan_table(plans, screen, every_row=every_row),
        document=lambda: rendering.plan_document(plans),
        header=rendering.CSV_HEADER,
        rows=lambda: rendering.plan_rows(plans),
    )
