"""Does a plan read what is left, no more, no less, and in the same order?

The plan is taken as the list of instructions it is: an interleave of its own is built over it,
read to the end, and compared with what the uninterrupted pipeline hands out, as `simulate` has it.
All else that the plan says is compared with what it should say (`broken_promises`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from shardctl.core.arguments.checked import checked
from shardctl.core.arrays import Int64s, Int64sLike
from shardctl.core.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.interleave.interleave import Interleave
from shardctl.core.interleave.runs import Runs
from shardctl.core.loaders.stop import LoaderCall
from shardctl.core.order.epoch_reading import EpochReading
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.core.order.order import Order
from shardctl.core.order.reader_order import ReaderOrder
from shardctl.core.phrase import phrase
from shardctl.core.progress import Progress
from shardctl.core.resume.resume_plan import PlanOrPath, ResumePlan, TakeCall, as_plan
from shardctl.core.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.core.shuffle.buffer import ShuffleReplay
from shardctl.errors import UsageError
from shardctl.planning.order import PlannedOrder, order_of
from shardctl.planning.pinned_sources import resolved_reading
from shardctl.planning.resume.apply_plan import applied
from shardctl.planning.resume.promises import (
    BrokenPromise,
    broken_promises,
    planned_anew,
    share_of,
    with_reads_of,
    without_dropping,
)
from shardctl.planning.resume.staged import undropped
from shardctl.planning.resume.stopped_hosts import (
    OldHost,
    left_by_example,
    num_read_of,
    old_orders,
    stopped_hosts,
)

_PIECE = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What came out: how many of `compared` examples are lost, repeated, at another position.

    `moved` is None where there is no order to compare with: other hosts, a log, or a buffer without
    a seed. Of that one `lost` and `repeated` are the most that any seed comes to, and `allowed` is
    what the plan says of these two; elsewhere nothing may be lost or repeated. `broken` are the
    fields besides the instructions that say something else than the pipeline comes to; the
    instructions are then read as if those fields were right. Of the further epochs a plan lists the
    first `MAX_FURTHER_EPOCHS`, and no more are looked at. With `of_inputs` examples are counted as
    the buffer is given them, not as it hands them out: the files repeat without end, so that there
    is no rest to be read exactly once.
    """

    compared: int
    lost: int
    repeated: int
    moved: int | None
    exact: bool
    broken: tuple[BrokenPromise, ...] = ()
    allowed: tuple[int, int] | None = None
    of_inputs: bool = field(default=False, repr=False)

    @property
    def holds(self) -> bool:
        """Whether the plan keeps its promises; one that is exactly-once may move examples."""
        lost, repeated = self.allowed or (0, 0)
        if self.lost > lost or self.repeated > repeated:
            return False
        return not (self.broken or (self.exact and self.moved))


@checked
def prove(
    dataset: DatasetLike,
    plan: PlanOrPath,
    *,
    seen: Int64sLike | None = None,
    allow_version: bool = False,
) -> Proof:
    """Read a plan to resume to its end and compare it with the uninterrupted pipeline.

    Args:
        dataset: a reference, a path, a list of these, or a Dataset; the one that the plan was made
            for.
        plan: a ResumePlan, or the path of a plan file.
        seen: int64[n], the log that a plan of the unseen was made from.
        allow_version: take a plan of another version or config whose files are the same.

    Returns:
        A Proof: how many examples are lost, repeated or moved, and whether it `holds`.

    Raises:
        DatasetError: the dataset is not the one the plan was made for, or no reading of its files
            is what the plan says.
        UsageError: a plan of the unseen without `seen`, too many examples to count, or no pipeline
            of these settings stops there.
        UnpredictableOrderError: TensorFlow leaves the order open.

    >>> import shardctl
    >>> plan = shardctl.resume("mnist", "train", consumed=1000)
    >>> shardctl.prove("mnist", plan)
    Proof(compared=59000, lost=0, repeated=0, moved=0, exact=True, broken=(), allowed=None)
    """
    dataset = as_dataset(dataset)
    plan = applied(as_plan(plan), dataset, allow_version=allow_version)
    if plan.from_seen and seen is None:
        raise UsageError(
            phrase("this plan was made from a log: give it again with {seen=CODES} to prove")
        )
    anew = planned_anew(dataset, plan, seen=seen)
    proof = _read_to_its_end(dataset, with_reads_of(plan, anew), seen)
    return replace(proof, broken=broken_promises(plan, anew))


def _read_to_its_end(dataset: Dataset, plan: ResumePlan, seen: Int64sLike | None) -> Proof:
    if plan.from_seen:
        return _prove_unseen(dataset, plan, seen)
    if plan.from_consumed:
        return _prove_other_hosts(dataset, plan)
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    if plan.stop is not None:
        return _prove_loader(resolved, plan)
    planned = order_of(resolved, with_any_buffer_seed(without_dropping(plan.settings)))
    if plan.continued_by == "shardctl.tfds":
        return _prove_stages(planned, plan)
    order = planned.order
    if plan.mode == "exact":
        return _prove_exact(order, plan)
    order = planned.of_reader
    if plan.unseeded is not None:
        return _prove_unseeded(order, plan)
    if plan.mode == "exactly-once":
        return _prove_once(order, plan)
    proof = _in_same_order(
        order,
        lambda: _looked_over(order, plan.consumed, plan.consumed + plan.remaining),
        lambda: _through_buffer(order, plan),
        plan.remaining,
    )
    if plan.remaining and not proof.moved:
        fed = _in_same_order(
            order, lambda: _inputs_left(order, plan), lambda: _in_order(order, plan), 0
        )
        return replace(proof, moved=fed.moved)
    return proof


def _prove_exact(order: Order, plan: ResumePlan) -> Proof:
    """Read file instructions one after the other, as far as a `take` behind them goes."""
    start, stop = plan.consumed, plan.consumed + plan.remaining
    end = next((call.count for call in plan.after_read if isinstance(call, TakeCall)), None)
    if end is None and order.has_long_runs:
        progress = Progress(None, "examples", plan.remaining)
        left = progress.over(order.visits(start, stop), _num_in_runs)
        if not num_differing_in_runs(left, _visits_in_order(order, plan)):
            return Proof(compared=plan.remaining, lost=0, repeated=0, moved=0, exact=True)
    return _in_same_order(
        order,
        lambda: _looked_over(order, start, stop),
        lambda: _in_order(order, plan) if end is None else _cut(_in_order(order, plan), end),
        plan.remaining,
    )


def _prove_stages(planned: PlannedOrder, plan: ResumePlan) -> Proof:
    """Read what is left by a pipeline built anew, and compare it with the order from the start.

    Of what has no end, the next million examples are compared.
    """
    count = plan.remaining if plan.has_end else _PIECE
    start, stop = plan.consumed, plan.consumed + count
    again = order_of(planned.resolved, plan.settings).order
    return _in_same_order(
        planned.order,
        lambda: _behind(_looked_over(planned.order, 0, stop), start),
        lambda: again.chunks(start, stop),
        count,
    )


def _prove_loader(resolved: Resolved, plan: ResumePlan) -> Proof:
    """Make the calls of a plan in a loader that begins anew, and compare what comes to the end.

    What it lists of the epoch is compared with that as well.
    """
    order, count = order_of(resolved, plan.settings).order, plan.remaining_total
    stop = plan.consumed + count
    found = [
        _in_same_order(
            order,
            lambda: _looked_over(order, plan.consumed, stop),
            lambda: _as_called(resolved, plan),
            count,
        )
    ]
    if plan.lists_rest:
        listed = _in_same_order(
            order,
            lambda: _of_epoch(order, plan.consumed, plan.epoch),
            lambda: _read(plan.instructions, order),
            plan.remaining,
        )
        found.append(replace(listed, compared=count))
    return max(found, key=lambda proof: (proof.lost + proof.repeated, proof.moved))


def _as_called(resolved: Resolved, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield what a loader hands out behind the calls of a plan: which epoch, and what to skip."""
    told = Counter[str]()
    for call in plan.after_read:
        told.update(call.arguments if isinstance(call, LoaderCall) else {})
    first, batches, start = told["epoch"] + told["count"], told["batches"], told["examples"]
    order = order_of(resolved, replace(plan.settings, pass_index=first)).order
    if batches:
        at_end = batches == order.num_steps
        start += order.num_examples if at_end else order.positions_in_step(batches).start
    yield from order.chunks(start, min(start + plan.remaining_total, order.num_examples))


def _of_epoch(order: Order, start: int, epoch: int) -> Iterator[Int64s]:
    """Yield the codes of an epoch from a position on, whatever comes between them."""
    for begin in range(start, order.num_examples, _PIECE):
        positions = np.arange(begin, min(begin + _PIECE, order.num_examples))
        yield order.codes_at(positions[order.epoch_of(positions) == epoch])


def _looked_over(order: Order, start: int, stop: int) -> Iterator[Int64s]:
    """Yield the codes at [start, stop), and report how far that is."""
    progress = Progress(None, "examples", stop - start, instead=phrase("prove fewer {epochs}"))
    return progress.over(order.chunks(start, stop), len)


def _in_same_order(
    order: Order,
    expected: Callable[[], Iterable[Int64s]],
    read: Callable[[], Iterable[Int64s]],
    compared: int,
) -> Proof:
    """Compare streams position by position; where any differ, each example is counted as well."""
    moved = num_differing(expected(), read())
    lost = repeated = 0
    if moved:
        counts = Counts(order.codes)
        counts.add(expected())
        counts.remove(read())
        lost, repeated = counts.left(), counts.excess()
    return Proof(compared=compared, lost=lost, repeated=repeated, moved=moved, exact=True)


def _behind(chunks: Iterable[Int64s], start: int) -> Iterator[Int64s]:
    """Yield what some chunks hold behind their first `start` codes."""
    for chunk in chunks:
        yield chunk[start:]
        start = max(start - len(chunk), 0)


def _prove_once(order: ReaderOrder, plan: ResumePlan) -> Proof:
    counts = Counts(order.codes)
    progress = Progress(None, "examples", 2 * plan.remaining)
    stop = plan.consumed + plan.remaining
    if plan.is_one_stream and plan.remaining:
        # The files never end, and the buffer has read beyond the order: all it was given counts.
        reading = order.reading(0)
        counts.add(_chunks(reading, reading.num_examples))
        counts.remove(order.chunks(0, plan.consumed))
    else:
        counts.add(progress.over(order.chunks(plan.consumed, stop), len))
    counts.remove(_in_order(order, plan))
    first = _cut(_in_order(order, plan), plan.remaining)
    moved = num_differing(progress.over(order.chunks(plan.consumed, stop), len), first)
    return replace(_judged(plan, counts), moved=moved, of_inputs=plan.is_one_stream)


def _prove_unseeded(order: ReaderOrder, plan: ResumePlan) -> Proof:
    """Compare what is read with what the buffer was to read from there on, whatever its seed is."""
    counts = Counts(order.codes)
    progress = Progress(None, "examples", plan.remaining)
    counts.add(progress.over(inputs_of_plan(order, plan), len))
    read = _in_order(order, plan)
    # What lists the rest of an endless stream is a little longer, and is cut by `after_read`.
    counts.remove(_cut(read, plan.remaining) if plan.is_one_stream else read)
    return _judged(plan, counts)


def _judged(plan: ResumePlan, counts: Counts) -> Proof:
    """Return the proof of a plan without an order of its own, of what is left and came too often.

    Without a seed that is besides what the buffer loses and repeats at most.
    """
    buffer = plan.unseeded
    allowed = (0, 0) if buffer is None else (buffer.most_lost, buffer.most_repeated)
    return Proof(
        compared=plan.remaining,
        lost=allowed[0] + counts.left(),
        repeated=allowed[1] + counts.excess(),
        moved=None,
        exact=False,
        allowed=None if buffer is None else allowed,
    )


def inputs_of_plan(order: ReaderOrder, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield what the buffer of a plan without a seed reads of the epoch that the plan begins in."""
    if plan.remaining:
        reading = order.reading(order.stream_of(plan.epoch)[0])
        stop = reading.num_examples
        if plan.is_one_stream:
            stop = order.stream_size + (order.num_buffered or 1) - 1
        yield from _chunks(reading, stop, start=stop - plan.remaining)


def _cut(chunks: Iterable[Int64s], size: int) -> Iterator[Int64s]:
    """Yield the first `size` codes of some chunks."""
    for chunk in chunks:
        yield chunk[:size]
        size -= len(chunk)
        if size <= 0:
            return


def _prove_other_hosts(dataset: Dataset, plan: ResumePlan) -> Proof:
    """Compare what the new hosts read with what the old ones, or their buffers, were to read."""
    num_hosts, consumed = len(plan.from_consumed), plan.from_consumed

    def orders(settings: ReadSettings, risk: float | None = None) -> list[PlannedOrder]:
        mode = "exactly-once" if plan.unseeded is None else plan.mode
        return old_orders(dataset, plan.spec, settings, num_hosts, mode=mode, risk=risk)

    if plan.unseeded is not None:
        readers = [one.of_reader for one in orders(plan.settings, plan.unseeded.risk)]
        counts = Counts(readers[0].codes)
        old, _ = stopped_hosts(readers, consumed, mode=plan.mode, risk=plan.unseeded.risk)
        for host in old:
            counts.add(_to_read(host, plan.epoch))
        return _counted(plan, readers[0], counts)
    whole = [one.order for one in orders(undropped(plan.settings))]
    counts = Counts(whole[0].codes)
    if whole[0].has_readings:
        for order, count in zip(whole, consumed, strict=True):
            if not _is_over(plan, order, count):
                counts.add(order.chunks(count, (plan.epoch + 1) * order.epoch_size))
    else:
        stopped = [one.order for one in orders(plan.settings)]
        counts.add(_read(left_by_example(stopped, whole, consumed).reads, whole[0]))
    return _counted(plan, whole[0], counts)


def _to_read(host: OldHost, last: int) -> Iterator[Int64s]:
    """Yield what a host had not read of its epochs up to the last of a plan."""
    for epoch in range(host.point.epoch, last + 1):
        start = num_read_of(host, epoch)
        if start < host.order.epoch_size:
            reading = host.order.reading(epoch)
            yield from _chunks(reading, reading.num_examples, start=start)
    host.order.forget_readings()


def _is_over(plan: ResumePlan, order: Order, consumed: int) -> bool:
    """Whether a host was done: only what a dropped batch would have held was left."""
    total = order.num_examples
    if plan.settings.drop_remainder and plan.settings.batch is not None:
        total -= total % plan.settings.batch
    return consumed >= total


def _prove_unseen(dataset: Dataset, plan: ResumePlan, seen: Int64sLike | None) -> Proof:
    # The share of a host, read in whatever order, each example of it once.
    order = share_of(dataset, plan)
    counts = Counts(order.codes)
    counts.add(order.chunks(0, order.num_examples))
    counts.take_once()
    counts.drop(np.asarray(seen))
    return _counted(plan, order, counts)


def _counted(plan: ResumePlan, order: Order, counts: Counts) -> Proof:
    """Read all lists of a plan, in whatever order."""
    for reads in (plan.instructions, *(host.instructions for host in plan.hosts)):
        counts.remove(_read(reads, order))
    return _judged(plan, counts)


def _as_read(reads: Reads, order: Order, plan: ResumePlan, *, own: bool = False) -> EpochReading:
    """Return the reading of file instructions as the host of a plan reads them.

    own: whether they are of this host alone, so that it keeps all that they read.
    """
    stride, phase = plan.settings.host_mode.stride_and_phase(None if own else plan.settings.host)
    return EpochReading(
        interleave=Interleave(
            reads.take, cycle_length=plan.cycle_length, block_length=plan.settings.block
        ),
        row_codes=order.codes.first_codes(reads),
        stride=stride,
        phase=phase,
    )


def _chunks(reading: EpochReading, stop: int, start: int = 0) -> Iterator[Int64s]:
    for begin in range(start, stop, _PIECE):
        yield reading.codes(begin, min(begin + _PIECE, stop))


def _read(reads: Reads, order: Order) -> Iterator[Int64s]:
    """Yield the codes that file instructions read one after the other."""
    reading = EpochReading(
        interleave=Interleave(reads.take, cycle_length=1, block_length=1),
        row_codes=order.codes.first_codes(reads),
    )
    yield from _chunks(reading, reading.num_examples)


def _in_order(order: Order, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield the codes in the order in which a host gets them from the instructions of its plan."""
    for reading in _readings(order, plan):
        yield from _chunks(reading, reading.num_examples)


def _visits_in_order(order: Order, plan: ResumePlan) -> Iterator[Runs]:
    """Yield what `_in_order` does, as runs."""
    for reading in _readings(order, plan):
        yield from reading.runs(0, reading.num_examples)


def _num_in_runs(runs: Runs) -> int:
    return int(runs[1].sum())


def _readings(order: Order, plan: ResumePlan) -> Iterator[EpochReading]:
    """Yield what a host reads by its plan.

    Where hosts share by `ds.shard`, what a buffer held is the host's own and read before.
    """
    reads, num_held = plan.instructions, plan.num_pending_instructions
    if plan.settings.host is not None and plan.settings.host_mode.reads_all and num_held:
        yield _as_read(reads.select(slice(0, num_held)), order, plan, own=True)
        reads = reads.select(slice(num_held, None))
    yield _as_read(reads, order, plan)


def _inputs_left(order: ReaderOrder, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield what the buffer is still to read, also what it reads beyond the end of the order."""
    if plan.shuffle is not None:
        reading = order.reading(order.stream_of(plan.epoch)[0])
        yield from _chunks(reading, plan.shuffle.num_elements, start=plan.shuffle.num_read)


def _through_buffer(order: ReaderOrder, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield the codes that come out of the buffer when the plan feeds it on."""
    state = plan.shuffle
    if state is None or not plan.remaining:
        yield from _in_order(order, plan)
        return
    replay = ShuffleReplay(
        num_elements=state.num_elements, buffer_size=state.buffer_size, seeds=state.seeds
    )
    # Inputs before `num_read` were in the buffer when the pipeline stopped. The plan lists their
    # ids in the order read, so the k-th of their sorted positions has the k-th id.
    held = [
        chunk[chunk < state.num_read] for chunk in replay.chunks(state.emitted, state.num_elements)
    ]
    places = np.sort(np.concatenate(held))
    pending = np.array([order.codes.parse(str(name)) for name in plan.pending or ()], np.int64)
    rest = _as_read(plan.instructions, order, plan)
    num_fed = state.num_elements - state.num_read
    for chunk in replay.chunks(state.emitted, state.emitted + plan.remaining):
        codes = np.empty_like(chunk)
        old = chunk < state.num_read
        codes[old] = pending[np.searchsorted(places, chunk[old])]
        inputs = chunk - state.num_read
        come = ~old & (inputs < rest.num_examples)
        codes[come] = rest.codes_at(inputs[come])
        yield codes[old | come]
    yield from _chunks(rest, rest.num_examples, start=num_fed)


# Streams of examples compared with each other: position by position, and by number.

_FEW = 1 << 8  # runs that are looked at together where two streams have other ones
MAX_COUNTED = 1 << 30  # examples of the splits, which are counted one by one in 4 bytes each


def num_differing(expected: Iterable[Int64s], actual: Iterable[Int64s]) -> int:
    """Return at how many positions two streams differ; what one has beyond the other differs."""
    num_differing = 0
    left = right = np.empty(0, np.int64)
    ones, twos = filter(len, expected), filter(len, actual)  # an empty chunk is not the end
    while True:
        if not len(left):
            left = next(ones, left)
        if not len(right):
            right = next(twos, right)
        # The streams come in chunks of their own sizes; what both have by now is compared.
        common = min(len(left), len(right))
        if not common:
            break
        num_differing += int(np.count_nonzero(left[:common] != right[:common]))
        left, right = left[common:], right[common:]
    return num_differing + sum(map(len, (left, right, *ones, *twos)))


def num_differing_in_runs(expected: Iterable[Runs], actual: Iterable[Runs]) -> int:
    """Return at how many positions two streams differ, each told as runs, however they are cut.

    What one has beyond the other differs. Of runs that are alike no position is looked at.
    """
    num_differing, few = 0, _FEW
    left = right = (np.empty(0, np.int64), np.empty(0, np.int64))
    ones, twos = ((runs for runs in side if len(runs[0])) for side in (expected, actual))
    while True:
        if not len(left[0]):
            left = next(ones, left)
        if not len(right[0]):
            right = next(twos, right)
        common = min(len(left[0]), len(right[0]))
        if not common:
            break
        others = left[0][:common] != right[0][:common]
        others |= left[1][:common] != right[1][:common]
        alike = int(others.argmax()) if others.any() else common
        left, right = _codes_behind(left, alike), _codes_behind(right, alike)
        if alike == common:
            few = _FEW
            continue
        # Mostly one is cut where the other is not; where all differ, more and more are looked at.
        differing, left, right = _looked_at(left, right, few)
        num_differing += differing
        few *= 2
    rest = (left, right, *ones, *twos)
    return num_differing + sum(int(lengths.sum()) for _, lengths in rest)


def _codes_behind(runs: Runs, count: int) -> Runs:
    return runs[0][count:], runs[1][count:]


def _looked_at(left: Runs, right: Runs, count: int) -> tuple[int, Runs, Runs]:
    """Return how many positions differ within `count` runs of each, and the runs behind them."""
    ends = [np.cumsum(lengths[:count]) for _, lengths in (left, right)]
    stop = min(int(ends[0][-1]), int(ends[1][-1]))
    # Between two cuts of either both count on, so that all positions there differ or none.
    bounds = np.unique(np.concatenate(ends))
    bounds = bounds[bounds <= stop]
    starts = np.concatenate(([0], bounds[:-1]))
    codes = [_codes_at(runs, end, starts) for runs, end in zip((left, right), ends, strict=True)]
    differing = int((bounds - starts)[codes[0] != codes[1]].sum())
    return differing, _cut_at(left, ends[0], stop), _cut_at(right, ends[1], stop)


def _codes_at(runs: Runs, ends: Int64s, positions: Int64s) -> Int64s:
    """Return the codes at positions that ascend, counted from where the runs begin."""
    rows = np.searchsorted(ends, positions, side="right")
    codes: Int64s = runs[0][rows] + positions - ends[rows] + runs[1][rows]
    return codes


def _cut_at(runs: Runs, ends: Int64s, stop: int) -> Runs:
    """Return the runs behind the first `stop` codes."""
    row = int(np.searchsorted(ends, stop, side="right"))
    firsts, lengths = _codes_behind(runs, row)
    begun = stop - int(ends[row - 1]) if row else stop
    if begun and row < len(ends):
        firsts, lengths = firsts.copy(), lengths.copy()
        firsts[0] += begun
        lengths[0] -= begun
    return firsts, lengths


class Counts:
    """How often each example is still to come: below 0 where it came too often."""

    def __init__(self, codes: ExampleCodes) -> None:
        splits = codes.dataset.splits
        ends = [int(base) + s.num_examples for base, s in zip(codes.bases, splits, strict=True)]
        if max(ends) > MAX_COUNTED:
            raise UsageError(
                phrase(
                    "{prove} counts every example of the splits; {:,} are more than {:,}",
                    max(ends),
                    MAX_COUNTED,
                )
            )
        self._counts = np.zeros(max(ends), np.int32)

    def add(self, chunks: Iterable[Int64s]) -> None:
        """Expect these, codes as int64 arrays."""
        for chunk in chunks:
            np.add.at(self._counts, chunk, 1)  # `+= 1` would count a repeated code once

    def remove(self, chunks: Iterable[Int64s]) -> None:
        """Take note that these came."""
        for chunk in chunks:
            np.subtract.at(self._counts, chunk, 1)

    def take_once(self) -> None:
        """Count what comes several times as coming once."""
        np.minimum(self._counts, 1, out=self._counts)

    def drop(self, codes: Int64s) -> None:
        """Expect these no more, however often they are named; codes of no example are passed by."""
        self._counts[codes[(codes >= 0) & (codes < len(self._counts))]] = 0

    def left(self) -> int:
        """Return how many are still to come."""
        return int(self._counts[self._counts > 0].sum())

    def excess(self) -> int:
        """Return how many came that were not expected."""
        return -int(self._counts[self._counts < 0].sum())
