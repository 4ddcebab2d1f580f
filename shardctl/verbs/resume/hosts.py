"""Plans with which a job resumes on another number of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, counting, groups_of
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.order.order import Order
from shardctl.order.plan_order import PlannedOrder, order_of
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.resolved_spec import refuse_unreadable
from shardctl.order.sources import resolved_reading, without_stages
from shardctl.saved.resume_plan import (
    MAX_HOSTS,
    AfterRead,
    BatchCall,
    ConcatenateCall,
    HostShare,
    ResumePlan,
    ShuffleCall,
)
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import stages_of
from shardctl.settings.table import ENDLESS
from shardctl.spec.host import Host
from shardctl.spec.host_reads import SharedReads
from shardctl.spec.reads import Reads, joined, reads_of
from shardctl.stages import stages as tf_stages
from shardctl.stages.part import Part
from shardctl.stages.pipelines import parts_of, with_changed
from shardctl.verbs.resume import rest_of_epoch
from shardctl.verbs.resume.answer import OF_SUBSET
from shardctl.verbs.resume.stopped_hosts import LeftOver, left_of_readings

Int32s = npt.NDArray[np.int32]


def old_orders(
    dataset: Dataset,
    spec: str | None,
    settings: ReadSettings,
    hosts: int,
    *,
    mode: str = "exactly-once",
    risk: float | None = None,
) -> list[PlannedOrder]:
    """Return the order of each of the hosts that stopped; without a seed, see `order_to_resume`."""
    if not 1 <= hosts <= MAX_HOSTS:
        raise refused("{hosts=}: a number from 1 to {} is needed", MAX_HOSTS, hosts=hosts)
    check_shared(settings, hosts)
    resolved = resolved_reading(dataset, spec, settings)
    of_first = as_host(settings, 0, hosts, of=hosts)
    first = rest_of_epoch.order_to_resume(partial(order_of, resolved), of_first, mode, risk)
    known = replace(first.order.settings, host=settings.host, stages=settings.stages)
    # Host 0 has fixed what was open (a version, "auto"); the others take the same.
    others = (as_host(known, index, hosts, of=hosts) for index in range(1, hosts))
    return [first, *map(first.with_settings, others)]


# What is left where an epoch is no reading of files that could be continued: stages and mixtures,
# and the loaders of other libraries. What each host yields is looked at one by one.

_MOST_CODES = 1 << 28  # examples times epochs, each with a count
_PER_SECOND = 3_000_000  # examples that are looked up


def left_by_example(
    orders: Sequence[Order], whole: Sequence[Order], counts: Sequence[int]
) -> LeftOver:
    """Return what is left of the epochs that hosts are in, an example as often as it is read.

    `whole` are the orders with what a last batch is short of, which is left as well. Where epochs
    cannot be begun by themselves, all that is left of the pass counts as of them.

    Raises:
        UsageError: an order without end, or too many examples to look at one by one.
    """
    first = orders[0]
    if first.num_epochs is None:
        raise refused(
            "{to_hosts} with {stages} without end: nothing is left over to share; end them, as "
            "in 'repeat(3)', or continue on as many hosts, each by its own plan"
        )
    _check_countable(first, 1)
    progress = Progress(
        "examples of the hosts",
        sum(order.num_examples for order in (*orders, *whole)),
        per_second=_PER_SECOND,
        instead="state fewer --epochs, or a part of the spec",
    )
    stops = [
        _epochs_at(order, count, progress) for order, count in zip(orders, counts, strict=True)
    ]
    begun = [stop for stop in stops if stop is not None] or [range(1)]
    epochs = range(min(stop.start for stop in begun), max(stop.stop for stop in begun))
    # Epochs that run into one another are taken together, up to the last one.
    if not first.has_epochs:
        epochs = range(epochs.start, first.num_epochs)
    _check_countable(first, len(epochs))
    # [epochs, codes]: how often each example was yielded, and how often it is still to be.
    done = np.zeros((len(epochs), first.codes.num_codes), np.int32)
    left = np.zeros_like(done)
    for order, undropped, count, stop in zip(orders, whole, counts, stops, strict=True):
        own = _times_read(order, count, epochs, progress)
        done += own
        if stop is not None and count < order.num_examples:
            # What the undropped order of the host reads in these epochs, less what it has yielded.
            of_host = _times_read(undropped, undropped.num_examples, epochs, progress)
            begins = stop.start - epochs.start
            # Only epochs that the host has begun, or is to read.
            left[begins:] += np.maximum(of_host[begins:] - own[begins:], 0)
    # How often each example is in what the spec reads, which overlapping ranges read again.
    # A difference array: +1 where a row begins and -1 where it ends; its cumulative sum is the
    # number of rows over each example.
    times = np.zeros(first.codes.num_codes + 1, np.int32)
    rows = reads_of(first.dataset, first.ranges)
    starts = first.codes.first_codes(rows)
    np.add.at(times, starts, 1)
    np.subtract.at(times, starts + rows.take, 1)
    # Never more than the spec reads: a loader's padding is no part of it.
    once = np.minimum(left, np.maximum(np.cumsum(times[:-1]) - done, 0))
    unfinished = any(n < order.num_examples for n, order in zip(counts, orders, strict=True))
    return LeftOver(
        reads=joined([_reads_of_counts(first, of_epoch) for of_epoch in once]),
        epochs=epochs,
        num_further_epochs=first.num_epochs - epochs.stop if unfinished else 0,
        num_again=int((left - once).sum()),
    )


def num_after(order: Order, epoch: int) -> int:
    """Return how many examples of later epochs than one an order yields."""
    return sum(int((epochs > epoch).sum()) for _, epochs in _in_pieces(order, order.num_examples))


def _check_countable(order: Order, num_epochs: int) -> None:
    if order.codes.num_codes * num_epochs > _MOST_CODES:
        raise refused(
            "{to_hosts}: {:,} examples in {} are too many to look at one by one; plan a part "
            "of the spec, or fewer {epochs}",
            order.codes.num_codes,
            counted(num_epochs, "epoch"),
        )


def _in_pieces(order: Order, stop: int) -> Iterator[tuple[int, Int64s]]:
    """Yield (position, epochs from there on, int64[q]) of what is before a position."""
    return ((int(piece[0]), order.epoch_of(piece)) for piece in counting(0, stop))


def _epochs_at(order: Order, count: int, progress: Progress) -> range | None:
    """Return the epochs that a host is in after so many examples; None if it has none at all."""
    if not order.num_examples:
        return None
    last, first = 0, order.num_epochs or 1
    for start, epochs in _in_pieces(order, order.num_examples):
        progress.advance(len(epochs))
        # Epochs before and after the position, in this piece.
        before, behind = epochs[: max(count - start, 0)], epochs[max(count - start, 0) :]
        if len(before):
            last = max(last, int(before.max()))
        if len(behind):
            first = min(first, int(behind.min()))
    if count == order.num_examples:
        return range(last, last + 1)
    # Mixed epochs: from the first that is not finished to the last that has begun.
    return range(first, max(first, last) + 1)


def _times_read(order: Order, stop: int, epochs: range, progress: Progress) -> Int32s:
    """Return how often each example of `epochs` comes before a position, int32[epochs, codes]."""
    counts = np.zeros((len(epochs), order.codes.num_codes), np.int32)
    for start, found in _in_pieces(order, stop):
        progress.advance(len(found))
        # Only pieces that hold one of the epochs are looked up.
        here = (found >= epochs.start) & (found < epochs.stop)
        if here.any():
            codes = order.read(start, start + len(found))
            # `np.add.at` counts repeated codes; `+=` would count each once.
            np.add.at(counts, (found[here] - epochs.start, codes[here]), 1)
    return counts


def _reads_of_counts(order: Order, counts: Int32s) -> Reads:
    """Return what reads each example (int32[num_codes]) so often, as runs in the order of files."""
    # Level k: examples that are read more than k times.
    levels = range(int(counts.max(initial=0)))
    found = [
        rest_of_epoch.reads_of_codes(order, np.flatnonzero(counts > level)) for level in levels
    ]
    return joined([order.reads.select(slice(0, 0)), *found]).runs()


# Which of the hosts a process is: a shard of the stages, or the host of a reader of their own,
# where they have such; else the host of the settings.


def as_host(settings: ReadSettings, index: int, count: int, *, of: int) -> ReadSettings:
    """Return settings of one of `of` hosts as host `index` of `count` has them.

    >>> from shardctl.stages.text import text_of
    >>> shared = ReadSettings(stages="shard(2, 0) | repeat(3) | shuffle(9, seed=1)")
    >>> text_of(as_host(shared, 4, 6, of=2).stages)
    'shard(6, index=4) | repeat(3) | shuffle(9, seed=1)'
    """
    host = Host(index=index, count=count)

    # A part that shares among the old hosts shares among the new ones.
    def part(given: Part) -> Part:
        if _hosts_of(given) != of:
            return given
        if isinstance(given, tf_stages.Read):
            own = {**dict(given.settings), "host": str(host)}
            return replace(given, settings=tuple(own.items()))
        return tf_stages.Shard(num_shards=count, index=index)

    pipeline = stages_of(settings)
    if not any(_hosts_of(part) == of for part in parts_of(pipeline)):
        return replace(settings, host=host)
    return replace(settings, stages=with_changed(pipeline, part=part))


def check_shared(settings: ReadSettings, hosts: int) -> None:
    """Refuse stages of which it is not stated how so many hosts share all that they read.

    What one reader reads is shared as the settings say, where its stages say nothing.

    Raises:
        UsageError: see above; the text names a part of the stages, and the way out.
    """
    pipeline = stages_of(settings)
    counts = {_hosts_of(part) for part in parts_of(pipeline)} - {None}
    unshared = _unshared(pipeline, hosts)
    if not counts and unshared == [pipeline.source]:
        return
    if (hosts not in counts and counts) or (hosts > 1 and unshared):
        raise refused(
            "{stages}: it is not stated how {hosts=} share what is read; state it with "
            "read(train, host=0/{}), or with shard({}, 0) after the read",
            hosts,
            hosts,
            hosts=hosts,
        )


def _hosts_of(part: Part) -> int | None:
    """Return of how many hosts a part of stages takes a share, None where it takes none."""
    if isinstance(part, tf_stages.Read):
        host = dict(part.settings).get("host")
        return None if host is None else int(str(host).partition("/")[2])
    return part.num_shards if isinstance(part, tf_stages.Shard) and part.num_shards > 1 else None


def _unshared(pipeline: tf_stages.Pipeline, hosts: int) -> list[tf_stages.Read]:
    """Return the readers of which each host gets everything."""
    found: list[tf_stages.Read] = []
    # Inputs first: what feeds a part is shared before the part itself.
    for part in (pipeline.source, *pipeline.stages):
        found += [read for one in part.fed_by for read in _unshared(one, hosts)]
        # A shard after a combination shares all that feeds it.
        if _hosts_of(part) == hosts:
            found = []
        elif isinstance(part, tf_stages.Read):
            found.append(part)
    return found


def undropped(settings: ReadSettings) -> ReadSettings:
    """Return settings that yield the last batch though it is short.

    Batches that are dropped before other stages stay so: what these count is the batches.
    """
    if settings.drop_remainder:
        return replace(settings, drop_remainder=False)
    pipeline = stages_of(settings)
    stages = list(pipeline.stages)
    # Maps and prefetches at the end do not change batches.
    kept = dropwhile(lambda at: isinstance(stages[at], _HANDS_ON), reversed(range(len(stages))))
    last = next(kept, None)
    stage = None if last is None else stages[last]
    if last is None or not isinstance(stage, tf_stages.Batch) or not stage.drop_remainder:
        return settings
    stages[last] = replace(stage, drop_remainder=False)
    return replace(settings, stages=replace(pipeline, stages=tuple(stages)))


_HANDS_ON = (tf_stages.Map, tf_stages.Prefetch, tf_stages.WithOptions)
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
    **keywords: Unpack[OrderSettings],
) -> ResumePlan:
    """Return how a job of `hosts` hosts resumes with `to_hosts`: exactly once, in another order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: those of the job, without a host; of stages a shard, or the host of a
            reader, may be that of any of the hosts.
        hosts: how many hosts it had.
        to_hosts: how many resume.
        consumed: how many examples each had yielded; one count for all, or a list of one for
            each.
        steps: how many batches, in place of `consumed`.
        mode: where the buffers had no seeds, "at-most-once" skips all that each host's buffer had
            read, and "at-least-once" reads the last of it again.
        risk: for "at-least-once": all hosts together lose fewer examples on average; 1e-6 if None.

    Returns:
        A ResumePlan, whose `hosts` say what each new host reads. What no host has yielded is
        split evenly, in the order of the files. Where hosts are in different epochs it resumes
        in the latest, and what others have left of earlier ones is shared as well. Of
        epochs that are mixed, as by a shuffle behind a repeat or in a mixture, all are shared.
        Padding, which another loader yields again, is no part of it.

    Raises:
        UsageError: a count past a host's end, as many counts as no host count, a host in the
            settings, stages that share nothing or among another number, files or stages that repeat
            without end, no such mode, a mode or risk as for `resume`, or more new hosts than files
            that they share, with epochs to follow.
        UnpredictableOrderError: the order is nondeterministic.

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
    # Each old host's own order; counts are positions in it.
    planned = old_orders(dataset, spec, settings, hosts, mode=mode, risk=risk)
    counts = _counts([p.order for p in planned], consumed, steps)
    first = planned[0].order
    # Readings of files are continued by arithmetic, everything else example by example.
    if first.has_readings:
        found = left_of_readings([p.of_reader for p in planned], counts, mode=mode, risk=risk)
    else:
        full = [one.with_settings(undropped(one.order.settings)).order for one in planned]
        found = left_by_example([one.order for one in planned], full, counts)
        settings = replace(first.settings, host=None, stages=settings.stages)
    last, follow = found.epochs[-1], found.num_further_epochs
    if first.has_readings:
        shares = rest_of_epoch.even_shares(found.reads, to_hosts)
        fields, sizes = _of_reader(planned[0], settings, found, to_hosts, mode)
        calls = fields["after_read"]
    else:
        # What the hosts have left is a list in no order; epochs that have not begun are read as
        # the pipeline of a new host has them.
        shares = _shares_of_sources(found.reads, to_hosts)
        calls, sizes = _calls_behind(settings), np.zeros(to_hosts, np.int64)
        follows = [ConcatenateCall(first_epoch=last + 1, last_epoch=last + follow)] * bool(follow)
        fields = {"mode": "exactly-once", "after_read": (*calls, *follows)}
        for index in range(to_hosts if follow else 0):
            one = planned[0].with_settings(as_host(settings, index, to_hosts, of=hosts))
            sizes[index] = num_after(one.order, last)
    own = np.array([share.num_examples for share in shares])
    # Epochs of the reader come before the batches, which may run from one into the next.
    # The last partial batch, of a list and of the epochs that follow it.
    dropped = _dropped(own + sizes if first.has_readings else own, calls)
    if not settings.reader.on_tf_data:
        advice = _of_library(settings, last, follow, to_hosts)
        fields |= {"after_read": (), "continued_by": "loader", "advice": advice}
    return rest_of_epoch.plan_of(
        planned[0],
        settings,
        **fields,
        consumed=sum(counts),
        epoch=last,
        remaining=found.reads.num_examples,
        remaining_total=int((own + sizes - dropped).sum()),
        num_further_epochs=follow,
        from_consumed=tuple(counts),
        hosts=shares,
        warnings=(*planned[0].warnings, *_warnings(settings, first, found, int(dropped.sum()))),
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
        sizes = settings.host_mode.host_reads(shared, to_hosts).num_examples * follow
    plan_mode: HostsMode = mode if unseeded else "exactly-once"
    fields = {
        "mode": plan_mode,
        "pending": None if settings.buffer is None or unseeded else found.pending,
        "unseeded": unseeded,
        "further_epochs": rest_of_epoch.further_epochs(whole, last, follow, seeded=not unseeded),
        "after_read": rest_of_epoch.calls_after_read(settings, plan_mode, last),
    }
    return fields, sizes


def _of_library(settings: ReadSettings, last: int, follow: int, to_hosts: int) -> tuple[str, ...]:
    """Return how a library that reads by index resumes with lists of examples."""
    rest = f"on each new host {OF_SUBSET}", "use no sampler: it would share and pad them again"
    first, end = settings.pass_index + last + 1, settings.pass_index + last + follow
    then = (
        f"then epochs {first} to {end} in full: the same loader on {to_hosts} hosts; where it "
        f"counts epochs (set_epoch, num_epochs), it begins with {first}"
    )
    return (*rest, then) if follow else rest


def _warnings(
    settings: ReadSettings, order: Order, found: LeftOver, num_dropped: int
) -> Iterator[str]:
    """Yield what is assumed of the hosts, and what becomes of what they have left."""
    host, epochs = order.settings.host, found.epochs
    if settings.stages and host is not None and host.count > 1:
        yield (
            f"assumed: the hosts share as --host-by {settings.host_by} does, since no stage "
            f"states it; state it with read(train, host=0/{host.count}) or shard({host.count}, 0)"
        )
    if len(epochs) > 1:
        yield (
            f"the hosts are in epochs {epochs[0]} to {epochs[-1]}: what is left of all of them is "
            "shared together"
        )
    if found.num_again:
        yield (
            f"{counted(found.num_again, 'example')} left out: padding, or already read by another "
            "host"
        )
    if not order.has_epochs:
        yield (
            "all epochs that are left are listed together, since a shuffle after repeat or a "
            "mixture mixes them; the weights of a mixture are not kept"
        )
    if num_dropped:
        lost = counted(num_dropped, "example")
        yield f"--drop-remainder: each new host drops its partial last batch, {lost} in all"


def _calls_behind(settings: ReadSettings) -> tuple[AfterRead, ...]:
    """Return the shuffles and batches of a pipeline, whose other stages chose what is listed."""
    calls: list[AfterRead] = []
    for stage in stages_of(settings).stages:
        if isinstance(stage, tf_stages.Shuffle):
            seed = stage.seed if isinstance(stage.seed, int) else None
            calls.append(ShuffleCall(buffer_size=stage.buffer, seed=seed))
        elif isinstance(stage, tf_stages.Batch):
            calls.append(BatchCall(batch_size=stage.size, drop_remainder=stage.drop_remainder))
        elif isinstance(stage, tf_stages.Unbatch):
            calls = [call for call in calls if not isinstance(call, BatchCall)]
    return tuple(calls)


def _shares_of_sources(reads: Reads, num_hosts: int) -> tuple[HostShare, ...]:
    """Return even shares in which each split has its part, spread over all of the share."""
    of_splits = [
        rest_of_epoch.even_shares(reads.select(rows), num_hosts)
        for _, rows in groups_of(reads.split)
    ]
    if len(of_splits) < 2:
        return rest_of_epoch.even_shares(reads, num_hosts)
    # The first hosts take what does not divide, so that every other source begins with the last.
    shares = [each if place % 2 == 0 else each[::-1] for place, each in enumerate(of_splits)]
    return tuple(
        HostShare(
            index=index, count=num_hosts, instructions=_spread([one.instructions for one in each])
        )
        for index, each in enumerate(zip(*shares, strict=True))
    )


def _spread(several: Sequence[Reads]) -> Reads:
    """Return the rows of several reads in turn, each as far in it as the others."""
    middles = [
        # Relative middle of each row within its source, from 0 to 1: sources are spread over the
        # whole share.
        (np.cumsum(reads.take) - reads.take / 2) / max(reads.num_examples, 1)
        for reads in several
    ]
    return joined(several).select(np.argsort(np.concatenate(middles), kind="stable"))


def _refuse_epochs(order: ReaderOrder, follow: int, to_hosts: int) -> None:
    """Refuse epochs to follow that TFDS does not share: of fewer files than hosts."""
    mode, num_files = order.settings.host_mode, len(order.reads)
    if not follow or not mode.refuses_files(num_files, to_hosts):
        return
    raise refused(
        "{to_hosts=}: {}, so no host could read the epochs that follow; use {} at most, or "
        "{epochs=} for the rest of this epoch alone",
        mode.refusal(to_hosts, num_idle=0, num_files=num_files),
        num_files,
        to_hosts=to_hosts,
        epochs=order.settings.epochs - follow,
    )


def _dropped(each: Int64s, calls: Sequence[AfterRead]) -> Int64s:
    """Return how many of its examples (int64[hosts]) each host drops, in no whole batch."""
    batch = next((one for one in reversed(calls) if isinstance(one, BatchCall)), None)
    drops = batch is not None and batch.drop_remainder
    # What does not fill a batch.
    return each % batch.batch_size if batch is not None and drops else np.zeros_like(each)


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
            counts.append(rest_of_epoch.consumed_examples(order, consumed=count, steps=steps))
        except UsageError as error:
            raise UsageError(f"host {index} of {len(orders)}: {error}") from None
    return counts
