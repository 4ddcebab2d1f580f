"""How does a job resume with another number of hosts?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import DatasetLike, as_dataset
from shardctl.core.hosts.host import even_range
from shardctl.core.hosts.host_reads import SharedReads
from shardctl.core.instructions.reads import Reads
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import phrase
from shardctl.core.resume.resume_plan import MAX_HOSTS, HostShare, ResumePlan, settings_as_planned
from shardctl.core.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
    refuse_loader,
)
from shardctl.core.text import counted
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.pinned_sources import without_stages
from shardctl.planning.resume.rest_of_epoch import consumed_examples
from shardctl.planning.resume.resume import (
    calls_after_read,
    further_epochs,
    ids_at,
    num_further_epochs,
)
from shardctl.planning.resume.stopped_hosts import (
    OldHost,
    at_start_of,
    check_left,
    epochs_of,
    left_of_epochs,
    old_orders,
    pending_of,
    stopped_hosts,
)

HostsMode = Literal["exactly-once", "at-most-once", "at-least-once"]


@checked
def resume_on_hosts(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    hosts: int,
    to_hosts: int,
    consumed: int | Sequence[int] | None = None,
    steps: int | None = None,
    mode: HostsMode = "exactly-once",
    risk: float | None = None,
) -> ResumePlan:
    """Return how a job of `hosts` hosts resumes with `to_hosts`: exactly once, in another order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: those of the job, without a host.
        hosts: how many hosts it had.
        to_hosts: how many it goes on with.
        consumed: how many examples each had handed out; one count for all, or a list of one for
            each.
        steps: how many batches, in place of `consumed`.
        mode: where the buffers had no seeds, "at-most-once" passes by all that each host's buffer
            had read, and "at-least-once" reads the last of it again.
        risk: of "at-least-once", below how many examples may be lost on the average of all hosts
            together; 1e-6 if None.

    Returns:
        A ResumePlan, whose `hosts` say what each new host reads. What no host has handed out is
        split evenly, in the order of the files. Where hosts are in different epochs it goes on
        in that of the foremost, and what others have left of earlier ones is shared as well.

    Raises:
        UsageError: a count past a host's end, as many counts as no host count, a host in the
            settings, files that repeat without end, no such mode, a mode or risk as for `resume`,
            or more new hosts than files that they share, with epochs to follow.
        UnpredictableOrderError: TensorFlow leaves the order open.

    >>> import shardctl
    >>> plan = shardctl.resume_on_hosts("imagenet2012", "train", hosts=4, to_hosts=6, consumed=1000)
    >>> plan.remaining, plan.hosts[0]
    (1277167, <HostShare host 0 of 6: 212,862 examples, 171 file instructions>)
    """
    dataset, settings = as_dataset(dataset), as_settings(settings)
    refuse_loader(
        settings,
        "a plan for other hosts",
        phrase("its own hosts go on, each with resume and {host=I/N}"),
    )
    dataset, spec, settings = without_stages(dataset, spec, settings)
    if settings.stages is not None:
        raise UsageError(
            phrase(
                "{to_hosts} with {stages}: what other hosts are left to read is known for shard, "
                "shuffle, repeat and batch in this order; continue on as many hosts, each by its "
                "own plan, or plan from the logs of all, {seen=CODES}"
            )
        )
    refuse_unreadable(dataset)
    if settings.host is not None:
        raise UsageError(
            phrase("{host} with {to_hosts}: all hosts are planned at once; leave {host} out")
        )
    if settings.repeat_files:
        raise UsageError(
            phrase(
                "{repeat_files=True} with {to_hosts}: the epochs of each host run into one another "
                "without end, so nothing is left over to share; resume each host by itself"
            )
        )
    planned = old_orders(dataset, spec, settings, hosts, mode=mode, risk=risk)
    each = (consumed,) if isinstance(consumed, int) else consumed
    counts = _counts([p.of_reader for p in planned], each, steps)
    old, unseeded = stopped_hosts([p.of_reader for p in planned], counts, mode=mode, risk=risk)
    epochs = epochs_of(old)
    left = left_of_epochs(old, epochs)
    unfinished = any(host.point.remaining for host in old)
    last = epochs[-1]
    check_left(left, old, last)
    if unseeded and unfinished and not len(left) and last + 1 < settings.epochs:
        # What the buffers held was the rest of the epoch.
        old, last = [at_start_of(host, last + 1) for host in old], last + 1
        left = left_of_epochs(old, range(last, last + 1))
    shares = even_shares(left, to_hosts)
    whole = planned[0].with_settings(replace(planned[0].order.settings, host=None))
    follow = num_further_epochs(whole.of_reader, last) if unfinished else 0
    further = further_epochs(whole.of_reader, last) if unfinished else ()
    _refuse_epochs(whole.of_reader, follow, to_hosts)
    if unseeded:
        further = tuple(replace(epoch, buffer_seeds=None) for epoch in further)
    sizes = np.zeros(to_hosts, np.int64)
    if follow:
        reads = SharedReads(whole.of_reader.reads, whole.ranges)
        sizes = settings.host_mode.num_examples(reads, to_hosts) * follow
    total = _total(left.num_examples, sizes, settings)
    plan_mode: HostsMode = mode if unseeded else "exactly-once"
    return ResumePlan(
        dataset=dataset.identity,
        spec=planned[0].spec,
        mode=plan_mode,
        settings=settings_as_planned(settings, ordered=dataset.ordered),
        consumed=sum(counts),
        epoch=last,
        remaining=left.num_examples,
        remaining_total=total,
        instructions=left.select(slice(0, 0)),
        pending=None if settings.buffer is None or unseeded else _pending_ids(old),
        unseeded=unseeded,
        further_epochs=further,
        num_further_epochs=follow,
        from_consumed=tuple(counts),
        hosts=shares,
        after_read=calls_after_read(settings, plan_mode, last),
        assumptions=whole.assumptions,
        warnings=(
            *planned[0].warnings,
            *_several_epochs(epochs),
            *_dropped(left.num_examples + int(sizes.sum()) - total),
        ),
    )


def _dropped(num_dropped: int) -> tuple[str, ...]:
    if not num_dropped:
        return ()
    return (
        phrase(
            "{drop_remainder=True}: each new host drops a last batch of its own, {} in all",
            counted(num_dropped, "example"),
        ),
    )


def _refuse_epochs(order: ReaderOrder, follow: int, to_hosts: int) -> None:
    """Refuse epochs to follow that TFDS does not share: of fewer files than hosts."""
    mode, num_files = order.settings.host_mode, len(order.reads)
    if not follow or not mode.refuses_files(num_files, to_hosts):
        return
    raise UsageError(
        phrase(
            "{to_hosts=}: {}, so no host could read the epochs that follow; go on with {} at most, "
            "or state {epochs=} for the rest of this epoch alone",
            mode.refusal(to_hosts, num_idle=0, num_files=num_files),
            num_files,
            to_hosts=to_hosts,
            epochs=order.settings.epochs - follow,
        )
    )


def _total(num_left: int, follow: Int64s, settings: ReadSettings) -> int:
    """Return how many examples the new hosts hand out: their shares, and what follows of each.

    `follow` is int64[hosts]; each host drops a last batch of its own.
    """
    num_hosts = len(follow)
    each = num_left // num_hosts + (np.arange(num_hosts) < num_left % num_hosts) + follow
    if settings.drop_remainder and settings.batch is not None:
        each = each - each % settings.batch
    return int(each.sum())


def _counts(
    orders: Sequence[ReaderOrder], consumed: Sequence[int] | None, steps: int | None
) -> list[int]:
    if consumed is None or len(consumed) == 1:
        each = [None if consumed is None else consumed[0]] * len(orders)
    elif len(consumed) == len(orders):
        each = list(consumed)
    else:
        raise UsageError(
            phrase(
                "{consumed} names {} counts for {hosts=}: give one for all, or one a host",
                len(consumed),
                hosts=len(orders),
            )
        )
    counts = []
    for index, (order, count) in enumerate(zip(orders, each, strict=True)):
        try:
            counts.append(consumed_examples(order, consumed=count, steps=steps))
        except UsageError as error:
            raise UsageError(phrase("host {} of {}: {}", index, len(orders), error)) from None
    return counts


def _pending_ids(old: Sequence[OldHost]) -> tuple[int | str, ...]:
    ids: list[int | str] = []
    for host in old:
        epoch = host.point.epoch
        ids += ids_at(host.order, host.order.reading(epoch), pending_of(host, epoch))
        host.order.forget_readings()
    return tuple(ids)


def _several_epochs(epochs: range) -> tuple[str, ...]:
    if len(epochs) == 1:
        return ()
    return (
        f"the hosts are in epochs {epochs[0]} to {epochs[-1]}: what is left of each is shared out "
        "as one",
    )


def even_shares(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise UsageError(
            phrase("{to_hosts=}: a number from 1 to {} is needed", MAX_HOSTS, to_hosts=num_hosts)
        )
    total = reads.num_examples
    shares = []
    for index in range(num_hosts):
        part = even_range(0, total, index, num_hosts, drop_remainder=False)
        share = reads.between(part.start, part.stop)
        shares.append(HostShare(index=index, count=num_hosts, instructions=share))
    return tuple(shares)
