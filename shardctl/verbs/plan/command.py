# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl plan`: the file instructions of a subsplit."""

from shardctl.cli.options.dataset import DatasetOptions, chosen_dataset, project_here
from shardctl.cli.options.shared import Flag, Number, Splits, Text
from shardctl.cli.output import AllOption, OutputOptions, formats_of, say, warn

FORMATS = formats_of("plan")


def plan(
    source: DatasetOptions,
    out: OutputOptions,
    specs: Splits = None,
    hosts: Number = None,
    host: Text = None,
    drop_remainder: Flag = False,
    every_row: AllOption = False,
) -> None:
    """Resolve subsplits to file instructions, for one reader or for each host.

    Hosts share the examples as tfds.even_splits does.

    Arguments:
      specs [SPEC]...: Subsplits as TFDS writes them: 'train[40:]', 'train[:10%]+test', 'all'
        [default: train].

    Options:
      --hosts N: Plan every one of N hosts.
      --host I/N: Plan host I of N only, from 0.
      --drop-remainder: Leave out the remainder, so that all hosts read the same number.

    Examples:
      # What a slice reads, and from which files
      shardctl plan 'train[44%:45%]' -d imagenet2012
      # Two parts of a split in turn, for each of 8 hosts
      shardctl plan 'train[:10%]' 'train[10%:]' --hosts 8 -d mnist -f json
    """
    from shardctl.spec.host import Host
    from shardctl.verbs.plan.answer import plan as plan_specs

    plans = plan_specs(
        chosen_dataset(source, project_here()),
        *specs or (),
        hosts=hosts,
        host=None if host is None else Host.parse(host),
        drop_remainder=drop_remainder,
    )
    warn(plans.warnings)
    if (seconds := len(plans.plans) // 5_000) > 2:  # plans of hosts, made one by one
        say(f"note: {len(plans.plans):,} plans take about {seconds} s; --host I/{hosts} makes one")
    FORMATS.write(out, plans, every_row=every_row)
