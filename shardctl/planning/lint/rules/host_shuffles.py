"""SC035 to SC037: shuffles of several hosts that do not fit together, and hosts with nothing."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.phrase import phrase
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import EVERY_LOADER, Story, Violation, rule
from shardctl.planning.lint.rules.stages import as_seeds


@rule(
    "SC035",
    "same-permutation",
    "notice",
    "hosts that open their files in one permutation",
    story=Story(
        happens="The permutation of a host's list of files depends on the seed and on the length "
        "of the list alone. Hosts with equally many files and one seed shuffle in lockstep: at "
        "any time all read the file at the same place of their lists. Where files differ by "
        "place, by date or by source, a global batch then holds one kind.",
        source="TFDS core/reader.py, _read_files: the shuffle comes after the files are split "
        "among the hosts, with a buffer at least as large as the list; 0/1,894 passes differed.",
        fix="Give each host its own seed, as in shuffle_seed = seed + host. (Never with ds.shard, "
        "where all hosts have to share one order.)",
        example="shardctl lint --hosts 8 --host-by files --shuffle-seed 1 -d imagenet2012",
    ),
)
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


@rule(
    "SC036",
    "unshared-order",
    "error",
    "example sharding of an order that hosts do not share",
    story=Story(
        happens="ds.shard(n, i) keeps the examples at every n-th place of the order. Hosts share "
        "the dataset out among them only if all read in one and the same order. Where the files "
        "are shuffled without a seed, or timing has a say, each host has its own order: some "
        "examples are read by several hosts and others by none, and nothing fails.",
        source="tensorflow/core/kernels/data/shard_dataset_op.cc counts places, not examples.",
        fix=phrase(
            "Give every host the same {shuffle_seed}; or split the examples before the shuffle: "
            "{host_by=even}."
        ),
        example="shardctl lint --hosts 4 --host-by examples --shuffle-files -d imagenet2012",
    ),
)
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
    story=Story(
        happens="There are fewer examples than hosts. Under even splits TFDS refuses the spec of "
        'a host that gets none ("corresponds to no data!"); under ds.shard such a host makes no '
        "step, and the others wait for it in their first.",
        source="TFDS core/splits.py and core/subsplits_utils.py.",
        fix="Fewer hosts, or more examples: validate on some hosts only, or on one.",
        example="shardctl lint 'test[:6]' --hosts 8 -d mnist",
    ),
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
