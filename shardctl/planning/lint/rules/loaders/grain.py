"""SC081 to SC085: what Grain's workers, hosts and windows do that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardctl.core.phrase import Argument, phrase
from shardctl.core.text import counted
from shardctl.errors import ShardctlError
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import Violation, rule

if TYPE_CHECKING:
    from shardctl.core.order.loader_order import LoaderOrder

_GRAIN = ("grain",)


@rule(
    "SC081",
    "worker-batches",
    "warning",
    "batches that depend on the number of workers",
    loaders=_GRAIN,
)
def worker_batches(context: LintContext) -> Iterator[Violation]:
    """Find batches that several workers make."""
    settings = context.settings
    if (settings.workers or 0) < 2 or (settings.batch or 0) < 2:
        return
    for read, order in _orders(context):
        if order.num_examples > 1:
            yield Violation(
                why=phrase(
                    "{}: with {} each worker batches what it reads itself; with another number of "
                    "them other examples meet in a batch",
                    read.spec,
                    Argument("workers", settings.workers),
                ),
                fix=phrase("keep {workers} fixed, or batch a MapDataset before to_iter_dataset"),
                specs=(read.spec,),
                settings=("workers",),
            )


@rule(
    "SC082",
    "lost-remainder",
    "warning",
    "a remainder of the hosts that Grain loses",
    loaders=_GRAIN,
)
def lost_remainder(context: LintContext) -> Iterator[Violation]:
    """Find hosts that cannot share evenly what an IndexSampler has."""
    settings, num_hosts = context.settings, context.num_hosts
    if not _samples(context) or settings.drop_shard_remainder:
        return
    from shardctl.core.loaders.grain.orders import equal_hosts  # NumPy

    for read, order in _orders(context, (*context.trained, *context.evaluated)):
        each, rest = divmod(read.num_examples, num_hosts)
        if not rest or not equal_hosts(order.version):
            continue
        size = settings.epochs * read.num_examples // num_hosts
        lost = settings.epochs * (each + 1) - size
        again = size - settings.epochs * each
        said = phrase(
            "{}: each of {} hosts reads {}; {} of them {} {} short of {}",
            read.spec,
            num_hosts,
            counted(size, "example"),
            rest,
            "is" if rest == 1 else "are",
            lost,
            "its share" if settings.epochs == 1 else f"{settings.epochs} epochs",
        )
        if again:
            said = phrase("{}, the others read {} once more", said, again)
        yield Violation(
            why=said,
            fix=phrase(
                "{drop_shard_remainder=True}, or {host_by=examples}, which reads every example"
            ),
            specs=(read.spec,),
            settings=("drop_shard_remainder", "host"),
        )


@rule("SC083", "host-permutation", "notice", "hosts that read in one permutation", loaders=_GRAIN)
def host_permutation(context: LintContext) -> Iterator[Violation]:
    """Find hosts whose pieces are shuffled alike."""
    settings, num_hosts = context.settings, context.num_hosts
    if not _samples(context) or settings.shuffle_seed is None:
        return
    for read in context.trained:
        each, rest = divmod(read.num_examples, num_hosts)
        longer = 0 if settings.drop_shard_remainder else rest
        alike = max(longer, num_hosts - longer)
        if each < 2 or alike < 2:
            continue
        yield Violation(
            why=phrase(
                "{}: {} read the same places of their pieces at the same time",
                read.spec,
                f"all {num_hosts:,} hosts" if not longer else f"{alike:,} of {num_hosts:,} hosts",
            ),
            fix=phrase("a seed for each host, as in seed + 1000 * host, or {host_by=examples}"),
            specs=(read.spec,),
            settings=("shuffle_seed", "host"),
        )


@rule(
    "SC084",
    "doubled-example",
    "warning",
    "a shuffle that hands out one example twice",
    loaders=_GRAIN,
)
def doubled_example(context: LintContext) -> Iterator[Violation]:
    """Find shuffles of 4 ** k + 1 examples."""
    from shardctl.core.loaders.grain.index_shuffle import is_permutation  # NumPy
    from shardctl.core.loaders.grain.orders import host_share

    settings = context.settings
    for read, _ in _orders(context, (*context.trained, *context.evaluated)):
        lengths = set()
        if settings.shuffle_seed is not None:
            lengths = {read.num_examples}
            if _samples(context):
                drop, count = settings.drop_shard_remainder, context.num_hosts
                lengths = {
                    len(host_share(read.num_examples, host, count, drop=drop))
                    for host in (0, count - 1)
                }
        if settings.buffer is not None:
            lengths.add(settings.buffer)
        for length in sorted(lengths):
            if length and not is_permutation(length):
                yield Violation(
                    why=f"{read.spec}: a shuffle of {length:,} examples hands out one of them "
                    "twice and the last one never",
                    fix="one example less or more",
                    specs=(read.spec,),
                    settings=("shuffle_seed", "buffer"),
                )


@rule(
    "SC085",
    "overlapping-window",
    "warning",
    "a last window that reaches beyond the end",
    loaders=_GRAIN,
)
def overlapping_window(context: LintContext) -> Iterator[Violation]:
    """Find windows that the examples do not fill."""
    settings, window = context.settings, context.settings.buffer
    if window is None or window < 2:
        return
    for read, _ in _orders(context, (*context.trained, *context.evaluated)):
        beyond = -(settings.epochs * read.num_examples) % window
        if beyond:
            yield Violation(
                why=phrase(
                    "{}: the last window of {} reaches {} beyond the end: some examples come once "
                    "more, and others are left out",
                    read.spec,
                    Argument("buffer", window),
                    counted(beyond, "place"),
                ),
                fix=phrase("a {buffer} that divides the examples"),
                specs=(read.spec,),
                settings=("buffer", "epochs"),
            )


def _samples(context: LintContext) -> bool:
    """Whether several hosts share by Grain's IndexSampler."""
    settings = context.settings
    return context.num_hosts > 1 and settings.host_by == "even" and settings.buffer is None


def _orders(
    context: LintContext, reads: tuple[Read, ...] | None = None
) -> Iterator[tuple[Read, LoaderOrder]]:
    """Yield the specs that Grain reads with these settings, each with the order of a host."""
    for read in context.trained if reads is None else reads:
        order = context.loader_order(read)
        if not isinstance(order, ShardctlError):
            yield read, order
