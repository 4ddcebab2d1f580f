"""Where did the hosts of a job stop, how far had each of them read, and what have they left?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import Reads, joined, reads_of
from shardctl.core.order.order import CHUNK_SIZE, Order
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import phrase, refused
from shardctl.core.progress import Progress
from shardctl.core.resume.resume_plan import MAX_HOSTS
from shardctl.core.resume.shared_rest import SharedRest
from shardctl.core.resume.unseeded_buffer import (
    DEFAULT_RISK,
    UnseededBuffer,
    check_risk,
    of_all_hosts,
)
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.core.settings.short_form import stages_of
from shardctl.core.stages import stages as tf_stages
from shardctl.core.stages.part import Part, Stage
from shardctl.core.stages.pipelines import parts_of, with_changed
from shardctl.core.stages.text import text_of_part
from shardctl.core.text import counted
from shardctl.planning.order import PlannedOrder, order_of
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.rest_of_epoch import (
    ResumePoint,
    inputs_read,
    order_to_resume,
    pending_inputs,
    reads_at,
    reads_of_codes,
    rest_of_reading,
    resume_point,
    without_seed,
)
from shardctl.planning.resume.resume import ids_at

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
    several = []
    for host in old:
        reads, reading = host.order.reads, host.order.reading(epoch)
        num_read, pending = num_read_of(host, epoch), pending_of(host, epoch)
        if host.order.settings.host_mode.reads_all:  # and every n-th example is its own
            behind = np.arange(num_read, host.order.epoch_size)
            own = reads_at(reads, reading, np.concatenate([behind, pending]))
        else:
            own = rest_of_reading(reads, reading, num_read)
            if len(pending):
                own = joined([own, reads_at(reads, reading, pending)])
        # A host's own runs first: in the order of the files the rows of all need no sort.
        several.append(own.runs())
        del reading
        host.order.forget_readings()
    return joined(several)


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
        instead=phrase("state fewer {epochs}, or a part of the spec"),
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

    >>> from shardctl.core.stages.text import text_of
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
