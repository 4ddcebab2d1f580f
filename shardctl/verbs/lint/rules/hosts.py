"""SC031 to SC037: what several hosts read: too much, unevenly, in unlike orders, or nothing."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.base.text import counted
from shardctl.stages import stages as ast
from shardctl.stages.part import Stage
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import LintContext, of_type
from shardctl.verbs.lint.context import Read as LintRead
from shardctl.verbs.lint.rule import EVERY_LOADER, Violation, rule

# From here on reading everything on every host is more than a detail.
MANY_HOSTS = 8
MUCH_TO_READ = 1024**3  # bytes that are read for nothing in an epoch


@rule("SC031", "hosts", "host")
def few_shards(context: LintContext) -> Iterator[Violation]:
    """Find fewer file instructions than hosts."""
    num_hosts = context.num_hosts
    for read in _reads_split_among_hosts(context):
        files = counted(read.num_files, "file")
        if context.settings.host_mode.refuses_files(read.num_files, num_hosts):
            why = f"TFDS refuses to split {files} among {num_hosts:,} hosts"
            fix = f"--host-by even, or {num_hosts:,} shards or a multiple of that"
            names = ("host_by", "hosts", "host")
            yield Violation(why, fix, read, settings=names, severity="error")
        elif read.num_files < num_hosts:
            times = context.shares(read).read_amplification or 1
            why = f"{num_hosts:,} hosts share {files} and read the data {times:,.1f} times in all"
            yield Violation(why, f"{num_hosts:,} shards, or a multiple of that", read)


@rule("SC032", "hosts", "host")
def odd_shards(context: LintContext) -> Iterator[Violation]:
    """Find a number of file instructions that leaves a remainder among the hosts."""
    num_hosts, whole_files = context.num_hosts, context.settings.host_mode.whole_files
    for read in _reads_split_among_hosts(context):
        count, rest = read.num_files, read.num_files % num_hosts
        if count < num_hosts or not rest:
            continue
        if whole_files:
            load = context.shares(read).num_examples
            what = f"hosts read {load.min:,} to {load.max:,} examples"
        else:
            times = context.shares(read).read_amplification or 1
            what = f"some are read by two hosts, {times:,.2f} times the data in all"
        why = f"{counted(count, 'file')} cannot be shared evenly by {num_hosts:,} hosts: {what}"
        fix = f"{count - rest:,} or {count - rest + num_hosts:,} shards"
        yield Violation(why, fix, read, severity="warning" if whole_files else "notice")


def _reads_split_among_hosts(context: LintContext) -> tuple[LintRead, ...]:
    split = context.num_hosts > 1 and not context.settings.host_mode.reads_all
    return context.used if split else ()


@rule("SC033", "host_by")
def example_sharding(context: LintContext) -> Iterator[Violation]:
    """Find `ds.shard` where it reads a lot for nothing."""
    num_hosts = context.num_hosts
    if num_hosts == 1 or not context.settings.host_mode.reads_all:
        return
    for read in context.used:
        num_bytes = context.shares(read).num_bytes
        total = 0 if num_bytes is None else num_bytes.total
        if num_hosts >= MANY_HOSTS or total - total // num_hosts >= MUCH_TO_READ:
            each = f"each of {num_hosts:,} hosts reads and decodes every example"
            why = f"{each}, {num_hosts:,} times the data in all"
            yield Violation(why, "--host-by even, or --host-by files", read)


@rule("SC034", *("batch", "host_by", "hosts", "host"), for_data_source=True, loaders=EVERY_LOADER)
def uneven_hosts(context: LintContext) -> Iterator[Violation]:
    """Find hosts that end before others do."""
    settings, take = context.settings, context.usage.take
    if context.num_hosts == 1 or settings.is_endless:
        return
    for read in context.used:
        shares = context.shares(read)
        examples, batches = shares.num_examples, shares.num_batches
        # The script stops before any host runs out.
        enough = take is not None and take <= examples.min
        if shares.refusal is not None or not shares.is_uneven or enough:
            continue
        if batches is None:
            why = f"hosts read {examples.min:,} to {examples.max:,} examples"
            whole_files = context.settings.host_mode.whole_files
            fix = "--host-by even" if whole_files else f"take({examples.min})"
        else:
            why = (
                f"hosts make {batches.min:,} to {batches.max:,} batches, so a collective hangs at "
                f"step {batches.min:,}, counted from 0"
            )
            size, epochs = settings.batch or 1, settings.epochs
            fix = f"take({batches.min}) on the batches"
            if read.evaluates:
                fix = "pad, as shardctl.tfds.evaluation does"
            # Hosts differ only in their partial batch, so without it they make as many.
            elif examples.min * epochs // size == examples.max * epochs // size:
                fix = fix if settings.drop_remainder else f"--drop-remainder, or {fix}"
        yield Violation(why, fix, read)


@rule("SC035", "shuffle_seed")
def same_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts that shuffle their files alike."""
    if context.num_hosts == 1 or context.settings.host_mode.reads_all:
        return
    why = f"all {context.num_hosts:,} hosts open their files in the same permutation"
    for read in context.trained:
        if context.shares(read).same_permutation and context.files_of_host(read) > 1:
            yield Violation(why, "a seed for each host, as in seed + host", read)


@rule("SC036", "host_by", "deterministic", "shuffle_files")
def unshared_order(context: LintContext) -> Iterator[Violation]:
    """Find `ds.shard` over orders that differ between hosts."""
    settings = context.settings
    open_files = settings.shuffles_files and settings.shuffle_seed is None
    open_files = (open_files and settings.global_seed is None) or context.races
    at = context.stages_at(None) if context.writes_stages else ()
    shards = [one for one in at if isinstance(one.stage, ast.Shard) and one.stage.num_shards > 1]
    lost = "so some examples go to several hosts and others to none"
    for here in shards:
        causes: list[Stage] = [*of_type(here.before, ast.Opaque)]
        unseeded = (one for one in of_type(here.before, ast.Shuffle) if _is_open(one, context))
        causes = [*unseeded, *causes]
        files = open_files and isinstance(here.source, ast.Read)
        if causes or files or settings.deterministic is False:
            cause = next(map(text_of_part, causes), "the files")
            why = f"{here}: each host has another order behind {cause}, {lost}"
            fix = "shard before the shuffle, or one seed for all hosts"
            yield Violation(why, fix, settings=("stages",))
    if shards or context.num_hosts == 1 or not context.settings.host_mode.reads_all:
        return
    if settings.deterministic is False or open_files:
        given = "so ds.shard gives some examples to several hosts and others to none"
        why = f"each host reads in another order, {given}"
        yield Violation(why, "one --shuffle-seed for all hosts, or --host-by even")


def _is_open(shuffle: ast.Shuffle, context: LintContext) -> bool:
    seeded = shuffle.seed is not None or context.settings.global_seed is not None
    return shuffle.buffer != 1 and not seeded


@rule("SC037", "hosts", "host", for_data_source=True, loaders=EVERY_LOADER)
def idle_hosts(context: LintContext) -> Iterator[Violation]:
    """Find fewer examples than hosts."""
    num_hosts = context.num_hosts
    for read in context.used if num_hosts > 1 else ():
        idle = context.shares(read).idle_hosts
        # That files are refused, SC031 says.
        if idle and not context.settings.host_mode.refuses_files(read.num_files, num_hosts):
            who = "1 host gets" if idle == 1 else f"{idle:,} hosts get"
            why = f"{who} none of its {read.num_examples:,} examples"
            yield Violation(why, "fewer hosts", read)
