# Typer reads annotations at run time, so this module has no `from __future__ import annotations`.
"""`shardctl hosts`: what every host reads under even, file and example sharding."""

from typing import Annotated, Any

from shardctl.cli.options.dataset import DatasetOptions, refuse_no_spec
from shardctl.cli.options.order import OrderOptions, asked_for
from shardctl.cli.options.shared import Flag, SpecArgument, option, real_number, whole_number
from shardctl.cli.output import OutputOptions, PictureOption, end_with, formats_of, warn
from shardctl.errors import UsageError

FORMATS = formats_of("hosts", pictures=True)
_SWEEP = formats_of("hosts", "sweep")
_MAX_COUNTS = 10_000  # numbers of hosts in one sweep


def _host_counts(text: Any) -> int | tuple[int, ...]:
    """Return a number of hosts, or several where the text has a range or a comma."""
    text = str(text)
    whole = whole_number(1, 1_000_000)
    if "-" not in text.lstrip("-") and "," not in text:
        return whole(text)
    counts: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        start = whole(first.strip())
        stop = whole(last.strip()) if dash else start
        if stop < start:
            raise UsageError(f"the range runs backwards; write {last}-{first}")
        if len(counts) + stop - start >= _MAX_COUNTS:
            raise UsageError(f"a sweep has at most {_MAX_COUNTS} numbers")
        counts += range(start, stop + 1)
    return tuple(counts)


def hosts(
    source: DatasetOptions,
    reading: OrderOptions,
    out: OutputOptions,
    num_hosts: Annotated[Any, option("--hosts", parse=_host_counts)] = None,
    spec: SpecArgument = None,
    check: Flag = False,
    max_amplification: Annotated[
        Any,
        option(parse=real_number(lambda factor: factor >= 1, "a number, at least 1, is needed")),
    ] = None,
    every_row: Annotated[bool, option("--all")] = False,
    picture: PictureOption = None,
) -> None:
    """Compare what each host reads, under even splits, file sharding and ds.shard.

    A file is read from its start, so what a host skips in it counts as read. Batches are those of
    a host. Of the order options --batch, --drop-remainder, --epochs, --reverse, --file-order and
    the file shuffle matter here; --host-by names the strategy that --check judges. With --loader
    there is only that library's way to share. Bars show which hosts are late or idle.

    Options:
      --hosts N|A-B|A,B: Number of hosts; several, as 1-64 or 8,16,32, get a line each.
      --check: Exit with 1 if, under --host-by or as the loader shares, hosts are idle, differ in
        batches (with --batch), read more than --max-amplification, or TFDS refuses.
      --max-amplification X: The read amplification that --check allows: examples read by all hosts
        over examples of the spec [default: 1.1].
      --all: Show every host on a terminal too, and under each strategy.

    Examples:
      # What 64 hosts read, in three ways to share
      shardctl hosts train --hosts 64 --batch 256 -d imagenet2012
      # Numbers of hosts side by side
      shardctl hosts --hosts 8,16,32 -d imagenet2012
      # In CI: fail where file sharding leaves hosts idle
      shardctl hosts --hosts 16 --host-by files --check -d imagenet2012
    """
    from shardctl.metadata.files_on_disk import check_files, not_listed, with_disk_bytes
    from shardctl.verbs.hosts.answer import MAX_AMPLIFICATION, problems
    from shardctl.verbs.hosts.answer import hosts as compare_hosts

    if num_hosts is None:
        refuse_no_spec(spec, source)
        raise UsageError("how many hosts? give --hosts N, a range as 1-64, or a list as 8,16,32")
    if "host" in reading.given():
        raise UsageError("--host names one host and hosts compares them all; give --hosts N alone")
    chosen, settings = asked_for(source, reading)
    files = check_files(chosen)
    dataset = with_disk_bytes(chosen, files)
    plan = compare_hosts(dataset, spec, settings, hosts=num_hosts)
    warn(not_listed(files))
    warn(plan.warnings)
    if isinstance(num_hosts, int):
        FORMATS.write(out, plan, every_row=every_row, picture=picture, every_strategy=every_row)
    else:
        _SWEEP.write(out, plan)
    if check:
        bound = MAX_AMPLIFICATION if max_amplification is None else max_amplification
        end_with(p for one in plan.comparisons for p in problems(one, plan.judged, bound))
