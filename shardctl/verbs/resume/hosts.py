"""How does a job resume with another number of hosts?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, distinct
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.order.file_formats import refuse_unreadable
from shardctl.order.order import CHUNK_SIZE, Order
from shardctl.order.plan_order import PlannedOrder, order_of
from shardctl.order.reader_order import ReaderOrder
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
from shardctl.saved.shared_rest import SharedRest
from shardctl.saved.unseeded_buffer import (
    DEFAULT_RISK,
    UnseededBuffer,
    check_risk,
    of_all_hosts,
)
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import stages_of
from shardctl.settings.table import ENDLESS
from shardctl.spec.host import Host, even_range
from shardctl.spec.host_reads import SharedReads
from shardctl.spec.reads import Reads, joined, reads_of
from shardctl.stages import stages as tf_stages
from shardctl.stages.part import Part, Stage
from shardctl.stages.pipelines import parts_of, with_changed
from shardctl.stages.stages import Batch, Shuffle, Unbatch
from shardctl.stages.text import text_of_part
from shardctl.verbs.resume.answer import (
    calls_after_read,
    further_epochs,
    ids_at,
)
from shardctl.verbs.resume.rest_of_epoch import (
    ResumePoint,
    consumed_examples,
    inputs_read,
    order_to_resume,
    pending_inputs,
    plan_of,
    reads_at,
    reads_of_codes,
    rest_of_reading,
    resume_point,
    without_seed,
)

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class OldHost:
    """One of the hosts that stopped, and where; `buffer` is one whose seed is not known.

    rest: of a run that was shared anew before, its part of what was left then; its epoch comes
        before those of `order`.
    """

    order: ReaderOrder
    point: ResumePoint
    buffer: UnseededBuffer | None = None
    rest: SharedRest | None = None

    @property
    def has_examples(self) -> bool:
        """Whether it reads anything of the epoch it is in."""
        return bool(self.order.epoch_size or self.point.remaining)

    def size_of(self, epoch: int) -> int:
        """Return how many examples of an epoch it reads."""
        if self.rest is not None and self.rest.epoch == epoch:
            return self.rest.size
        return self.order.epoch_size


@dataclass(frozen=True, kw_only=True)
class LeftOver:
    """What stopped hosts have left of `epochs`, as runs in the order of the files.

    num_further_epochs: how many whole epochs follow these.
    num_again: examples that hosts were to hand out once more than they are read, as padding.
    unseeded: where the seeds of buffers are not known, what is sure of them; pending: else what
        they held, as ids.
    """

    reads: Reads
    epochs: range
    num_further_epochs: int
    num_again: int = 0
    unseeded: UnseededBuffer | None = None
    pending: tuple[int | str, ...] = ()


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
    first = order_to_resume(partial(order_of, resolved), of_first, mode, risk)
    known = replace(first.order.settings, host=settings.host, stages=settings.stages)
    others = (as_host(known, index, hosts, of=hosts) for index in range(1, hosts))
    return [first, *map(first.with_settings, others)]


def stopped_hosts(
    orders: Sequence[ReaderOrder], counts: Sequence[int], *, mode: str, risk: float | None
) -> tuple[list[OldHost], UnseededBuffer | None]:
    """Return where hosts stopped; in a mode without a seed also what is sure of all their buffers.

    Raises:
        UsageError: a risk outside its range.
    """
    points = [resume_point(order, count) for order, count in zip(orders, counts, strict=True)]
    smallest, of_each = min(order.num_buffered or 1 for order in orders), None
    if mode == "at-least-once":
        risk = min(DEFAULT_RISK, smallest) if risk is None else risk
        check_risk(risk, smallest)
        # A host that had handed out nothing loses nothing.
        of_each = risk / max(sum(bool(point.emitted) for point in points), 1)
    found, buffers = [], []
    for order, point in zip(orders, points, strict=True):
        place = without_seed(order, point, mode, of_each)
        buffers += [] if place is None else [place.buffer]
        found.append(
            OldHost(order=order, point=point, buffer=None if place is None else buffers[-1])
        )
    return found, of_all_hosts(buffers, risk) if buffers else None


def left_of_readings(
    orders: Sequence[ReaderOrder], counts: Sequence[int], *, mode: str, risk: float | None
) -> LeftOver:
    """Return what is left where an epoch is a reading of files, of which no example is looked at.

    Raises:
        UsageError: a risk outside its range.
    """
    old, unseeded = stopped_hosts(orders, counts, mode=mode, risk=risk)
    found = left_of_hosts(old)
    if unseeded and not len(found.reads) and found.num_further_epochs:
        # What the buffers held was the rest of the epoch.
        epoch = found.epochs.stop
        old = [at_start_of(host, epoch) for host in old]
        found = left_of_hosts(old)
    pending: list[int | str] = []
    for host in [] if unseeded else old:
        epoch = host.point.epoch
        pending += ids_at(host.order, host.order.reading(epoch), pending_of(host, epoch))
        host.order.forget_readings()
    return replace(found, unseeded=unseeded, pending=tuple(pending))


def left_of_hosts(old: Sequence[OldHost]) -> LeftOver:
    """Return what hosts have left of the epochs that they are in."""
    epochs = epochs_of(old)
    left = left_of_epochs(old, epochs)
    check_left(left, old, epochs[-1])
    unfinished = any(host.point.remaining for host in old)
    follow = old[0].order.settings.epochs - epochs.stop if unfinished else 0
    return LeftOver(reads=left, epochs=epochs, num_further_epochs=follow)


def at_start_of(host: OldHost, epoch: int) -> OldHost:
    """Return a host that is to read an epoch from its start."""
    size = host.order.epoch_size
    point = ResumePoint(epoch=epoch, stream=epoch, emitted=0, remaining=size)
    return replace(host, point=point, buffer=None)


def num_read_of(host: OldHost, epoch: int) -> int:
    """Return how many examples of an epoch a host has got from the reader."""
    if host.point.epoch > epoch or not host.point.remaining:
        return host.order.epoch_size
    if host.point.epoch < epoch:
        return 0
    if host.buffer is not None:
        return host.buffer.first_read
    return inputs_read(host.order, host.point)


def pending_of(host: OldHost, epoch: int) -> Int64s:
    """Return the inputs of an epoch (int64[p]) that a host's buffer held."""
    if not _is_in(host, epoch) or host.buffer is not None:
        return np.empty(0, np.int64)
    return pending_inputs(host.order, host.point)


def epochs_of(old: Sequence[OldHost]) -> range:
    """Return the epochs that hosts are in; a host that has no examples is in none."""
    begun = [host.point.epoch for host in old if host.has_examples]
    if not begun:
        begun = [0 if old[0].rest is None else old[0].rest.epoch]
    return range(min(begun), max(begun) + 1)


def left_of_epochs(old: Sequence[OldHost], epochs: range) -> Reads:
    """Return what hosts have left of epochs, as runs in the order of the files, epoch by epoch.

    `epochs` are those that they are in, and end with that of the foremost.
    """
    return joined([_left_of_epoch(old, epoch).runs() for epoch in epochs])


def _left_of_epoch(old: Sequence[OldHost], epoch: int) -> Reads:
    rests = [host.rest for host in old if host.rest is not None and host.rest.epoch == epoch]
    if rests:
        emitted = [host.point.emitted if _is_in(host, epoch) else None for host in old]
        return joined([one.left(at).runs() for one, at in zip(rests, emitted, strict=True)])
    reads_all = old[0].order.settings.host_mode.reads_all
    return (_left_of_all if reads_all else _left)(old, epoch)


def _left(old: Sequence[OldHost], epoch: int) -> Reads:
    """Return what the hosts have left of one epoch, each of them reading its own rows."""
    several = []
    for host in old:
        reads, reading = host.order.reads, host.order.reading(epoch)
        own = [rest_of_reading(reads, reading, num_read_of(host, epoch))]
        if len(pending := pending_of(host, epoch)):
            own.append(reads_at(reads, reading, pending))
        # A host's own runs first: in the order of the files the rows of all need no sort.
        several.append(joined(own).runs())
        del reading
        host.order.forget_readings()
    return joined(several)


def _left_of_all(old: Sequence[OldHost], epoch: int) -> Reads:
    """Return what the hosts have left of one epoch, all of them reading the same rows.

    Host i of n has examples i, i + n, ... of the reading. From where the foremost host is on
    all are left; before that, and in the buffers, they are left one by one.
    """
    num_hosts, reads = len(old), old[0].order.reads
    reading = replace(old[0].order.reading(epoch), stride=1, phase=0)
    num_read = [num_read_of(host, epoch) for host in old]
    foremost, single = max(num_read), []
    for index, host in enumerate(old):
        between = np.arange(num_read[index], min(foremost, host.order.epoch_size))
        own = np.concatenate([between, pending_of(host, epoch)])
        single.append(own * num_hosts + index)
    rest = rest_of_reading(reads, reading, foremost * num_hosts)
    return joined([reads_at(reads, reading, np.concatenate(single)), rest])


def _is_in(host: OldHost, epoch: int) -> bool:
    return host.point.epoch == epoch and bool(host.point.remaining)


def check_left(left: Reads, old: Sequence[OldHost], epoch: int) -> None:
    """Check that what is left and what was handed out, or is passed by, add up to whole epochs."""
    expected = 0
    for host in old:
        if host.point.remaining:
            gone = host.point.emitted if host.buffer is None else host.buffer.first_read
            expected += sum(map(host.size_of, range(host.point.epoch, epoch + 1))) - gone
    if left.num_examples != expected:
        raise AssertionError(f"{left.num_examples} examples left, {expected} by count")


# What is left where an epoch is no reading of files that could be continued: stages and mixtures,
# and the loaders of other libraries. What each host hands out is looked at one by one.

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
        None,
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
    if not first.has_epochs:
        epochs = range(epochs.start, first.num_epochs)
    _check_countable(first, len(epochs))
    shape = (len(epochs), first.codes.num_codes)
    done, left = np.zeros(shape, np.int32), np.zeros(shape, np.int32)
    for order, undropped, count, stop in zip(orders, whole, counts, stops, strict=True):
        own = np.zeros(shape, np.int32)
        _count(order, count, epochs, own, progress)
        done += own
        if stop is None or count == order.num_examples:
            continue
        of_host = np.zeros(shape, np.int32)
        _count(undropped, undropped.num_examples, epochs, of_host, progress)
        begins = stop.start - epochs.start
        left[begins:] += np.maximum(of_host[begins:] - own[begins:], 0)
    times = np.zeros(first.codes.num_codes + 1, np.int32)
    rows = reads_of(first.dataset, first.ranges)
    starts = first.codes.first_codes(rows)
    np.add.at(times, starts, 1)
    np.subtract.at(times, starts + rows.take, 1)
    once = np.minimum(left, np.maximum(np.cumsum(times[:-1]) - done, 0))
    unfinished = any(n < order.num_examples for n, order in zip(counts, orders, strict=True))
    return LeftOver(
        reads=joined([_reads_of_counts(first, of_epoch) for of_epoch in once]),
        epochs=epochs,
        num_further_epochs=first.num_epochs - epochs.stop if unfinished else 0,
        num_again=int((left - once).sum()),
    )


def num_after(order: Order, epoch: int) -> int:
    """Return how many examples of later epochs than one an order hands out."""
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
    for start in range(0, stop, CHUNK_SIZE):
        yield start, order.epoch_of(np.arange(start, min(start + CHUNK_SIZE, stop)))


def _epochs_at(order: Order, count: int, progress: Progress) -> range | None:
    """Return the epochs that a host is in after so many examples; None if it has none at all."""
    if not order.num_examples:
        return None
    last, first = 0, order.num_epochs or 1
    for start, epochs in _in_pieces(order, order.num_examples):
        progress.advance(len(epochs))
        before, behind = epochs[: max(count - start, 0)], epochs[max(count - start, 0) :]
        if len(before):
            last = max(last, int(before.max()))
        if len(behind):
            first = min(first, int(behind.min()))
    if count == order.num_examples:
        return range(last, last + 1)
    return range(first, max(first, last) + 1)


def _count(order: Order, stop: int, epochs: range, counts: Int32s, progress: Progress) -> None:
    """Add up how often an order hands out each example of `epochs` before a position."""
    for start, found in _in_pieces(order, stop):
        progress.advance(len(found))
        here = (found >= epochs.start) & (found < epochs.stop)
        if here.any():
            codes = order.read(start, start + len(found))
            np.add.at(counts, (found[here] - epochs.start, codes[here]), 1)


def _reads_of_counts(order: Order, counts: Int32s) -> Reads:
    """Return what reads each example (int32[num_codes]) so often, as runs in the order of files."""
    levels = range(int(counts.max(initial=0)))
    found = [reads_of_codes(order, np.flatnonzero(counts > level)) for level in levels]
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
    counts = {_hosts_of(part): part for part in parts_of(pipeline)}
    counts.pop(None, None)
    unshared = _unshared(pipeline, hosts)
    if hosts not in counts and counts:
        count, part = counts.popitem()
        raise refused(
            "{stages}: {} is of {} hosts, and {hosts=} stopped; the two must be the same",
            text_of_part(part),
            count,
            hosts=hosts,
        )
    if not counts and unshared == [pipeline.source]:
        return
    if hosts > 1 and unshared:
        raise refused(
            "{stages}: every host reads all of {}, for nothing says that {hosts=} share it; "
            "state it, as in read(train, host=0/{}) or by shard({}, 0) behind it",
            text_of_part(unshared[0]),
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
    source = pipeline.source
    found: list[tf_stages.Read] = []
    if isinstance(source, tf_stages.Read):
        found = [] if _hosts_of(source) == hosts else [source]
    elif isinstance(source, tf_stages.Shared):
        found = _unshared(source.pipeline, hosts)
    elif isinstance(
        source, tf_stages.Zip | tf_stages.SampleFromDatasets | tf_stages.ChooseFromDatasets
    ):
        found = [read for one in source.inputs for read in _unshared(one, hosts)]
    for stage in pipeline.stages:
        if isinstance(stage, tf_stages.Concatenate):
            found += _unshared(stage.other, hosts)
        elif _hosts_of(stage) == hosts:
            found = []
    return found


def undropped(settings: ReadSettings) -> ReadSettings:
    """Return settings that hand out the last batch though it is short.

    Batches that are dropped before other stages stay so: what these count is the batches.
    """
    if settings.drop_remainder:
        return replace(settings, drop_remainder=False)
    pipeline = stages_of(settings)
    behind = list(takewhile(_hands_on, reversed(pipeline.stages)))
    before = pipeline.stages[: len(pipeline.stages) - len(behind)]
    if not before or not isinstance(before[-1], tf_stages.Batch) or not before[-1].drop_remainder:
        return settings
    last = replace(before[-1], drop_remainder=False)
    stages = (*before[:-1], last, *reversed(behind))
    return replace(settings, stages=replace(pipeline, stages=stages))


def _hands_on(stage: Stage) -> bool:
    return isinstance(stage, tf_stages.Map | tf_stages.Prefetch | tf_stages.WithOptions)


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
        yield (
            f"assumed: each host reads its own part, as --host-by {settings.host_by} has it, for "
            f"no stage says how they share; state it, as in read(train, host=0/{host.count}) or "
            f"shard({host.count}, 0)"
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
        yield f"--drop-remainder: each new host drops a last batch, {lost} in all"


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
            raise UsageError(f"host {index} of {len(orders)}: {error}") from None
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
