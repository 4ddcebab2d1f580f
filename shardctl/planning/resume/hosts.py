"""How does a job resume with another number of hosts?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s, distinct
from shardctl.core.dataset.dataset import DatasetLike, as_dataset
from shardctl.core.hosts.host import even_range
from shardctl.core.hosts.host_reads import SharedReads
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.order.order import Order
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import phrase, refused
from shardctl.core.resume.resume_plan import (
    MAX_HOSTS,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    HostShare,
    ResumePlan,
    ShuffleCall,
)
from shardctl.core.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.core.settings.short_form import stages_of
from shardctl.core.settings.table import ENDLESS
from shardctl.core.stages.stages import Batch, Shuffle, Unbatch
from shardctl.core.text import counted
from shardctl.errors import UsageError
from shardctl.planning.file_formats import refuse_unreadable
from shardctl.planning.order import PlannedOrder
from shardctl.planning.pinned_sources import without_stages
from shardctl.planning.resume.rest_of_epoch import consumed_examples, plan_of
from shardctl.planning.resume.resume import (
    calls_after_read,
    further_epochs,
)
from shardctl.planning.resume.stopped_hosts import (
    LeftOver,
    as_host,
    check_shared,
    left_by_example,
    left_of_readings,
    num_after,
    old_orders,
    undropped,
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
        settings: those of the job, without a host; of stages a shard, or the host of a reader, may
            be that of any of the hosts.
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
        in that of the foremost, and what others have left of earlier ones is shared as well. Of
        epochs that are mixed, as by a shuffle behind a repeat or in a mixture, all are shared.
        Padding, which another loader hands out again, is no part of it.

    Raises:
        UsageError: a count past a host's end, as many counts as no host count, a host in the
            settings, stages that share nothing or among another number, files or stages that repeat
            without end, no such mode, a mode or risk as for `resume`, or more new hosts than files
            that they share, with epochs to follow.
        UnpredictableOrderError: TensorFlow leaves the order open.

    >>> import shardctl
    >>> plan = shardctl.resume_on_hosts("imagenet2012", "train", hosts=4, to_hosts=6, consumed=1000)
    >>> plan.remaining, plan.hosts[0]
    (1277167, <HostShare host 0 of 6: 212,862 examples, 171 file instructions>)
    """
    dataset, given = as_dataset(dataset), as_settings(settings)
    check_shared(given, hosts)
    dataset, spec, settings = without_stages(dataset, spec, given)
    if settings.host is not None:
        if given.host is not None:
            raise refused("{host} with {to_hosts}: all hosts are planned at once; leave {host} out")
        settings = replace(settings, host=None)  # a shard of the stages was that of one host
    if settings.reader.on_tf_data:
        refuse_unreadable(dataset)
    if settings.is_endless:
        raise refused(
            "{} with {to_hosts}: the epochs of each host run into one another without end, so "
            "nothing is left over to share; resume each host by itself",
            ENDLESS,
        )
    planned = old_orders(dataset, spec, settings, hosts, mode=mode, risk=risk)
    counts = _counts([p.order for p in planned], consumed, steps)
    first = planned[0].order
    if first.has_readings:
        found = left_of_readings([p.of_reader for p in planned], counts, mode=mode, risk=risk)
    else:
        full = [one.with_settings(undropped(one.order.settings)).order for one in planned]
        found = left_by_example([one.order for one in planned], full, counts)
        settings = replace(first.settings, host=None, stages=settings.stages)
    last, follow = found.epochs[-1], found.num_further_epochs
    fields: dict[str, Any] = {"mode": "exactly-once"}
    if first.has_readings:
        # Epochs to follow come before the batches, which may run from one into the next.
        shares = even_shares(found.reads, to_hosts)
        fields, sizes = _of_reader(planned[0], settings, found, to_hosts, mode)
        whole = np.array([share.num_examples for share in shares]) + sizes
        dropped = whole - _kept(whole, fields["after_read"])
    else:
        # What the hosts have left is a list without an order of its own; epochs that nobody has
        # begun are read as the pipeline of a new host has them.
        shares = _shares_of_sources(found.reads, to_hosts)
        whole = np.array([share.num_examples for share in shares])
        fields["after_read"] = _calls_behind(settings)
        dropped, sizes = whole - _kept(whole, fields["after_read"]), np.zeros_like(whole)
        for index in range(to_hosts if follow else 0):
            one = planned[0].with_settings(as_host(settings, index, to_hosts, of=hosts))
            sizes[index] = num_after(one.order, last)
        whole = whole + sizes
        if follow:
            call = ConcatenateCall(first_epoch=last + 1, last_epoch=last + follow)
            fields["after_read"] = (*fields["after_read"], call)
    if not settings.reader.on_tf_data:
        advice = _of_library(settings, last, follow, to_hosts)
        fields |= {"after_read": (), "continued_by": "loader", "advice": advice}
    return plan_of(
        planned[0],
        settings,
        **fields,
        consumed=sum(counts),
        epoch=last,
        remaining=found.reads.num_examples,
        remaining_total=int((whole - dropped).sum()),
        num_further_epochs=follow,
        from_consumed=tuple(counts),
        hosts=shares,
        warnings=(
            *planned[0].warnings,
            *_warnings(settings, first, found, int(dropped.sum())),
        ),
    )


def _of_reader(
    planned: PlannedOrder, settings: ReadSettings, found: LeftOver, to_hosts: int, mode: HostsMode
) -> tuple[dict[str, Any], Int64s]:
    """Return what a plan of TFDS's reader says besides, and the sizes of epochs to follow."""
    last, follow, unseeded = found.epochs[-1], found.num_further_epochs, found.unseeded
    whole = planned.with_settings(replace(planned.order.settings, host=None)).of_reader
    _refuse_epochs(whole, follow, to_hosts)
    sizes = np.zeros(to_hosts, np.int64)
    if follow:
        shared = SharedReads(whole.reads, whole.ranges)
        sizes = settings.host_mode.num_examples(shared, to_hosts) * follow
    plan_mode: HostsMode = mode if unseeded else "exactly-once"
    fields = {
        "mode": plan_mode,
        "pending": None if settings.buffer is None or unseeded else found.pending,
        "unseeded": unseeded,
        "further_epochs": further_epochs(whole, last, seeded=not unseeded) if follow else (),
        "after_read": calls_after_read(settings, plan_mode, last),
    }
    return fields, sizes


def _of_library(settings: ReadSettings, last: int, follow: int, to_hosts: int) -> tuple[str, ...]:
    """Return how a library that reads by index goes on with lists of examples."""
    rest = (
        "each new host reads the examples of its instructions and no others, as a subset by their "
        "index (torch.utils.data.Subset, Dataset.select, MapDataset.slice), without a sampler of "
        "its own: that would share, shuffle and pad them again"
    )
    if not follow:
        return (rest,)
    first, end = settings.pass_index + last + 1, settings.pass_index + last + follow
    which = f"epoch {first}" if follow == 1 else f"epochs {first} to {end}"
    return (
        rest,
        f"then {which}, whole: the loader as it was, on {to_hosts} hosts; where its epoch counts "
        f"in the order (set_epoch, num_epochs) it begins with {first}",
    )


def _warnings(
    settings: ReadSettings, order: Order, found: LeftOver, num_dropped: int
) -> Iterator[str]:
    """Yield what is assumed of the hosts, and what becomes of what they have left."""
    host, epochs = order.settings.host, found.epochs
    if settings.stages and host is not None and host.count > 1:
        yield phrase(
            "assumed: each host reads its own part, as {host_by=} has it, for no stage says how "
            "they share; state it, as in read(train, host=0/{}) or shard({}, 0)",
            host.count,
            host.count,
            host_by=settings.host_by,
        )
    if len(epochs) > 1:
        yield (
            f"the hosts are in epochs {epochs[0]} to {epochs[-1]}: what is left of each is shared "
            "out as one"
        )
    if found.num_again:
        yield (
            f"{counted(found.num_again, 'example')} that hosts were to read again, to be as many "
            "as others (padding), or that others had read, are not left"
        )
    if not order.has_epochs:
        yield (
            "what is left of all epochs is listed, since they are mixed: by a shuffle behind the "
            "repeat, or among several readers, whose weights the rest does not keep"
        )
    if num_dropped:
        lost = counted(num_dropped, "example")
        yield phrase("{drop_remainder}: each new host drops a last batch, {} in all", lost)


def _calls_behind(settings: ReadSettings) -> tuple[AfterRead, ...]:
    """Return the shuffles and batches of a pipeline, whose other stages chose what is listed."""
    calls: list[AfterRead] = []
    for stage in stages_of(settings).stages:
        if isinstance(stage, Shuffle):
            seed = stage.seed if isinstance(stage.seed, int) else None
            calls.append(ShuffleCall(buffer_size=stage.buffer, seed=seed))
        elif isinstance(stage, Batch):
            call = BatchCall(batch_size=stage.size, drop_remainder=stage.drop_remainder)
            calls.append(call)
        elif isinstance(stage, Unbatch):
            calls = [call for call in calls if not isinstance(call, BatchCall)]
    return tuple(calls)


def _shares_of_sources(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return even shares in which each split has its part, spread over all of the share."""
    of_splits = [
        even_shares(reads.select(np.flatnonzero(reads.split == split)), num_hosts)
        for split in distinct(reads.split).tolist()
    ]
    if len(of_splits) < 2:
        return even_shares(reads, num_hosts)
    # The first hosts take what does not divide, so that every other source begins with the last.
    return tuple(
        HostShare(
            index=index,
            count=num_hosts,
            instructions=_spread(
                [
                    shares[index if place % 2 == 0 else num_hosts - 1 - index].instructions
                    for place, shares in enumerate(of_splits)
                ]
            ),
        )
        for index in range(num_hosts)
    )


def _spread(several: Sequence[Reads]) -> Reads:
    """Return the rows of several reads in turn, each as far in it as the others."""
    middles = [
        (np.cumsum(reads.take) - reads.take / 2) / max(reads.num_examples, 1) for reads in several
    ]
    return joined(several).select(np.argsort(np.concatenate(middles), kind="stable"))


def _refuse_epochs(order: ReaderOrder, follow: int, to_hosts: int) -> None:
    """Refuse epochs to follow that TFDS does not share: of fewer files than hosts."""
    mode, num_files = order.settings.host_mode, len(order.reads)
    if not follow or not mode.refuses_files(num_files, to_hosts):
        return
    raise refused(
        "{to_hosts=}: {}, so no host could read the epochs that follow; go on with {} at most, "
        "or state {epochs=} for the rest of this epoch alone",
        mode.refusal(to_hosts, num_idle=0, num_files=num_files),
        num_files,
        to_hosts=to_hosts,
        epochs=order.settings.epochs - follow,
    )


def _kept(each: Int64s, calls: Sequence[AfterRead]) -> Int64s:
    """Return how many of its examples (int64[hosts]) each host hands out in whole batches."""
    batch = next((one for one in reversed(calls) if isinstance(one, BatchCall)), None)
    return each - each % batch.batch_size if batch is not None and batch.drop_remainder else each


def _counts(
    orders: Sequence[Order], consumed: int | Sequence[int] | None, steps: int | None
) -> list[int]:
    each = [consumed] if consumed is None or isinstance(consumed, int) else list(consumed)
    if len(each) == 1:
        each *= len(orders)
    elif len(each) != len(orders):
        raise refused(
            "{consumed} names {} counts for {hosts=}: give one for all, or one a host",
            len(each),
            hosts=len(orders),
        )
    counts = []
    for index, (order, count) in enumerate(zip(orders, each, strict=True)):
        try:
            counts.append(consumed_examples(order, consumed=count, steps=steps))
        except UsageError as error:
            raise UsageError(phrase("host {} of {}: {}", index, len(orders), error)) from None
    return counts


def even_shares(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return each host's share of the examples: one after the other, as many each, or one more.

    The first hosts take what does not divide, as in `tfds.even_splits`.

    Raises:
        UsageError: less than one host.
    """
    if not 1 <= num_hosts <= MAX_HOSTS:
        raise refused("{to_hosts=}: a number from 1 to {} is needed", MAX_HOSTS, to_hosts=num_hosts)
    total = reads.num_examples
    shares = []
    for index in range(num_hosts):
        part = even_range(0, total, index, num_hosts, drop_remainder=False)
        share = reads.between(part.start, part.stop)
        shares.append(HostShare(index=index, count=num_hosts, instructions=share))
    return tuple(shares)
