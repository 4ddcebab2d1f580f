"""SC03x: what several hosts read, too much of, unevenly, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import EVERY_LOADER, Violation, rule
from shardctl.planning.lint.rules.stages import as_seeds

# From here on reading everything on every host is more than a detail.
MANY_HOSTS = 8
MUCH_TO_READ = 1024**3  # bytes that are read for nothing in an epoch


@rule("SC031", "few-shards", "warning", "fewer shards than hosts")
def few_shards(context: LintContext) -> Iterator[Violation]:
    """Find fewer file instructions than hosts."""
    num_hosts = context.num_hosts
    for read in _reads_split_among_hosts(context):
        if read.num_files >= num_hosts:
            continue
        files = _files(read.num_files)
        if context.host_mode.refuses_files(read.num_files, num_hosts):
            yield Violation(
                why=f"{read.spec}: TFDS refuses to split {files} among {num_hosts:,} hosts",
                fix=phrase("{host_by=even}, or {:,} shards or a multiple of that", num_hosts),
                specs=(read.spec,),
                settings=("host_by", "hosts", "host"),
                severity="error",
            )
            continue
        times = context.shares(read).read_amplification or 1
        yield Violation(
            why=f"{read.spec}: {num_hosts:,} hosts share {files} and read the data "
            f"{times:,.1f} times in all",
            fix=f"{num_hosts:,} shards, or a multiple of that",
            specs=(read.spec,),
            settings=("hosts", "host"),
        )


@rule("SC032", "odd-shards", "warning", "a number of shards that the hosts do not divide")
def odd_shards(context: LintContext) -> Iterator[Violation]:
    """Find a number of file instructions that leaves a remainder among the hosts."""
    num_hosts, whole_files = context.num_hosts, context.host_mode.whole_files
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
        yield Violation(
            why=f"{read.spec}: {_files(count)} do not divide among {num_hosts:,} hosts, and {what}",
            fix=f"{count - rest:,} or {count - rest + num_hosts:,} shards",
            specs=(read.spec,),
            settings=("hosts", "host"),
            severity="warning" if whole_files else "notice",
        )


def _reads_split_among_hosts(context: LintContext) -> tuple[Read, ...]:
    if context.num_hosts == 1 or context.host_mode.reads_all:
        return ()
    return (*context.trained, *context.evaluated)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


@rule("SC033", "example-sharding", "warning", "example sharding at scale")
def example_sharding(context: LintContext) -> Iterator[Violation]:
    """Find `ds.shard` where it reads a lot for nothing."""
    num_hosts = context.num_hosts
    if num_hosts == 1 or not context.host_mode.reads_all:
        return
    for read in (*context.trained, *context.evaluated):
        shares = context.shares(read)
        total = 0 if shares.num_bytes is None else shares.num_bytes.total
        if num_hosts < MANY_HOSTS and total - total // num_hosts < MUCH_TO_READ:
            continue
        yield Violation(
            why=f"{read.spec}: each of {num_hosts:,} hosts reads and decodes every example, "
            f"{num_hosts:,} times the data in all",
            fix=phrase("{host_by=even}, or {host_by=files}"),
            specs=(read.spec,),
            settings=("host_by",),
        )


@rule(
    "SC034",
    "uneven-hosts",
    "warning",
    "hosts that make different numbers of batches",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def uneven_hosts(context: LintContext) -> Iterator[Violation]:
    """Find hosts that end before others do."""
    settings, usage = context.settings, context.usage
    if context.num_hosts == 1 or context.repeats_files():
        return
    for read in (*context.trained, *context.evaluated):
        shares = context.shares(read)
        examples, batches = shares.num_examples, shares.num_batches
        if shares.refusal is not None or not shares.is_uneven:
            continue
        if usage.take is not None and usage.take <= examples.min:
            continue
        if batches is None:
            why = f"hosts read {examples.min:,} to {examples.max:,} examples"
            whole_files = context.host_mode.whole_files
            fix = phrase("{host_by=even}") if whole_files else f"take({examples.min})"
        else:
            why = (
                f"hosts make {batches.min:,} to {batches.max:,} batches, so a collective hangs at "
                f"step {batches.min:,}, counted from 0"
            )
            size, epochs = settings.batch or 1, settings.epochs
            cured = examples.min * epochs // size == examples.max * epochs // size
            fix = f"take({batches.min}) on the batches"
            if cured and not settings.drop_remainder:
                fix = phrase("{drop_remainder=True}, or {}", fix)
            if read.evaluates:
                fix = "pad, as shardctl.tfds.evaluation does"
        yield Violation(
            why=f"{read.spec}: {why}",
            fix=fix,
            specs=(read.spec,),
            settings=("batch", "host_by", "hosts", "host"),
        )


# SC035 to SC037: shuffles of several hosts that do not fit together, and hosts with nothing.


@rule("SC035", "same-permutation", "notice", "hosts that open their files in one permutation")
def same_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts that shuffle their files alike."""
    if context.num_hosts == 1 or context.host_mode.reads_all:
        return
    for read in context.trained:
        if context.shares(read).same_permutation and context.files_of_host(read) > 1:
            yield Violation(
                why=f"{read.spec}: all {context.num_hosts:,} hosts open their files in the same "
                "permutation of places",
                fix="a seed for each host, as in seed + host",
                specs=(read.spec,),
                settings=("shuffle_seed",),
            )


@rule("SC036", "unshared-order", "error", "example sharding of an order that hosts do not share")
def unshared_order(context: LintContext) -> Iterator[Violation]:
    """Find `ds.shard` over orders that differ between hosts."""
    yield from as_seeds.unshared_order(context)
    settings = context.settings
    if context.num_hosts == 1 or not context.host_mode.reads_all:
        return
    unseeded = settings.shuffles_files and settings.shuffle_seed is None
    if (
        settings.deterministic is False
        or context.races
        or (unseeded and settings.global_seed is None)
    ):
        yield Violation(
            why="each host reads in an order of its own, so ds.shard gives some examples to "
            "several hosts and others to none",
            fix=phrase("one {shuffle_seed} for all hosts, or {host_by=even}"),
            settings=("host_by", "deterministic", "shuffle_files"),
        )


@rule(
    "SC037",
    "idle-hosts",
    "error",
    "hosts without examples",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def idle_hosts(context: LintContext) -> Iterator[Violation]:
    """Find fewer examples than hosts."""
    num_hosts = context.num_hosts
    for read in (*context.trained, *context.evaluated):
        if context.host_mode.refuses_files(read.num_files, num_hosts):
            continue  # SC031 says so
        if num_hosts > 1 and context.shares(read).idle_hosts:
            idle = context.shares(read).idle_hosts
            who = "1 host gets" if idle == 1 else f"{idle:,} hosts get"
            yield Violation(
                why=f"{read.spec}: {who} none of its {read.num_examples:,} examples",
                fix="fewer hosts",
                specs=(read.spec,),
                settings=("hosts", "host"),
            )
