"""Proof that a plan reads what is left, no more, no less, and in the same order.

The plan is taken as the list of instructions it is: another interleave is built over it, read to
the end, and compared with what the uninterrupted pipeline yields, as `simulate` has it.
All else that the plan says is compared with what it should say (`broken_promises`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, aligned, counting
from shardctl.base.phrase import refused
from shardctl.base.progress import Progress
from shardctl.base.text import printable
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.errors import UsageError
from shardctl.loaders.loader import LoaderCall
from shardctl.order.epoch_reading import EpochReading
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.order import NONE, Order
from shardctl.order.plan_order import order_of
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.sources import resolved_reading
from shardctl.saved.resume_plan import (
    UNSEEDED_MODES,
    PlanOrPath,
    ResumePlan,
    ShardCall,
    ShuffleCall,
    TakeCall,
    as_plan,
)
from shardctl.settings.read_settings import ReadSettings, with_any_buffer_seed
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import Resolved
from shardctl.tfdata.interleave import Interleave
from shardctl.verbs.resume.answer import resume_order, resume_unseen_of
from shardctl.verbs.resume.apply_plan import applied
from shardctl.verbs.resume.hosts import left_by_example, old_orders, resume_on_hosts, undropped
from shardctl.verbs.resume.rest_of_epoch import order_to_resume, without_dropping
from shardctl.verbs.resume.stopped_hosts import OldHost, num_read_of, stopped_hosts

_PIECE = 1 << 20
MAX_COUNTED = 1 << 30  # examples of the splits, which are counted one by one in 4 bytes each

Codes = Iterable[Int64s]


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What came out: how many of `compared` examples are lost, repeated, at another position.

    `moved` is None where there is no order to compare with: other hosts, a log, or a buffer without
    a seed. Of that one `lost` and `repeated` are the most that any seed comes to, and `allowed` is
    what the plan says of these two; elsewhere nothing may be lost or repeated. `broken` are the
    fields besides the instructions that say something else than the pipeline comes to; the
    instructions are then read as if those fields were right. Of the further epochs a plan lists the
    first `MAX_FURTHER_EPOCHS`, and no more are looked at.
    """

    compared: int
    lost: int
    repeated: int
    moved: int | None
    exact: bool
    broken: tuple[BrokenPromise, ...] = ()
    allowed: tuple[int, int] | None = None

    @property
    def holds(self) -> bool:
        """Whether the plan keeps its promises; one that is exactly-once may move examples."""
        lost, repeated = self.allowed or (0, 0)
        as_allowed = self.lost <= lost and self.repeated <= repeated
        return as_allowed and not self.broken and not (self.exact and self.moved)


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
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> plan = shardctl.resume("mnist", "train", consumed=1000)
    >>> shardctl.prove("mnist", plan)
    Proof(compared=59000, lost=0, repeated=0, moved=0, exact=True, broken=(), allowed=None)
    """
    dataset = as_dataset(dataset)
    plan = applied(as_plan(plan), dataset, allow_version=allow_version)
    if plan.from_seen and seen is None:
        raise refused("this plan was made from a log: give it again with {seen=CODES} to prove")
    # The plan is made again from its settings; fields are compared with it, and instructions are
    # read.
    anew = planned_anew(dataset, plan, seen=seen)
    proof = _read_to_its_end(dataset, with_reads_of(plan, anew), seen)
    return replace(proof, broken=broken_promises(plan, anew))


def _read_to_its_end(dataset: Dataset, plan: ResumePlan, seen: Int64sLike | None) -> Proof:
    if plan.from_seen:
        # The share of a host, read in whatever order, each example of it once.
        share = share_of(dataset, plan)
        # One flag for each example: what is left of the share.
        left = np.zeros(_num_counted(share), np.bool_)
        for codes in share.chunks(0, share.num_examples):
            left[codes] = True
        known = np.asarray(seen, np.int64)
        left[known[(known >= 0) & (known < len(left))]] = False
        return _counted(plan, share, [np.flatnonzero(left)], _all_lists(plan, share))
    if plan.from_consumed:
        return _prove_other_hosts(dataset, plan)
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    if plan.stop is not None:
        return _prove_loader(resolved, plan)
    # The order without dropping: partial batches are read too.
    planned = order_of(resolved, with_any_buffer_seed(without_dropping(plan.settings)))
    order, start, stop = planned.order, plan.consumed, plan.consumed + plan.remaining
    if plan.continued_by == "shardctl.tfds":
        # What is left by a pipeline built anew, and by the order from its start; of what has no
        # end the next examples.
        # An endless pipeline is compared for _PIECE examples.
        stop = stop if plan.has_end else start + _PIECE
        again = order_of(resolved, plan.settings).order
        whole = _looked_over(order, 0, stop)
        return _in_same_order(
            order, lambda: _behind(whole(), start), lambda: again.chunks(start, stop), stop - start
        )
    if plan.mode == "exact":
        end = next((call.count for call in plan.after_read if isinstance(call, TakeCall)), None)
        return _in_same_order(
            order,
            _looked_over(order, start, stop),
            lambda: _cut(_in_order(order, plan), end),
            plan.remaining,
        )
    reader = planned.of_reader
    if plan.unseeded is not None:
        # What is read, and what the buffer was to read from there on, whatever its seed is. What
        # lists the rest of an endless stream is a little longer, and is cut by `after_read`.
        end = plan.remaining if plan.is_one_stream else None
        read = _cut(_in_order(order, plan), end)
        return _counted(plan, order, inputs_of_plan(reader, plan), read)
    if plan.mode == "exact-order":
        # The buffer yields the rest in order if it holds what it held, and then gets what it was
        # to get. What it held may be listed in any order.
        num_held = plan.num_pending_instructions
        held, after = (plan.instructions.select(s) for s in np.s_[:num_held, num_held:])
        pending = order.codes.of_ids(plan.pending or ()) if num_held else NONE
        refilled = np.concatenate([NONE, *_read(held, order)])
        others = replace(plan, instructions=after, num_pending_instructions=0)
        fed = _in_same_order(
            order,
            lambda: chain([np.sort(pending)], _inputs_left(reader, plan)),
            lambda: chain([np.sort(refilled)], _in_order(order, others)),
            0,
        )
        return replace(fed, compared=plan.remaining)
    rest = _looked_over(order, start, stop)
    found = _counted(plan, order, rest(), _in_order(order, plan))
    return replace(found, moved=num_differing(rest(), _in_order(order, plan)))


def _looked_over(order: Order, start: int, stop: int) -> Callable[[], Iterator[Int64s]]:
    """Return what yields the codes at [start, stop), and reports how far that is."""
    progress = Progress("examples", stop - start, instead="prove fewer --epochs")
    return lambda: progress.over(order.chunks(start, stop), len)


def _in_same_order(
    order: Order, expected: Callable[[], Codes], read: Callable[[], Codes], compared: int
) -> Proof:
    """Compare streams position by position; where any differ, each example is counted as well."""
    # Where positions agree, every example comes once; only otherwise is it counted.
    moved = num_differing(expected(), read())
    lost, repeated = left_and_excess(order, expected(), read()) if moved else (0, 0)
    return Proof(compared=compared, lost=lost, repeated=repeated, moved=moved, exact=True)


def _counted(plan: ResumePlan, order: Order, expected: Codes, read: Codes) -> Proof:
    """Return the proof of a plan without an order, by what is left and what came too often.

    Without a seed that is besides what the buffer loses and repeats at most.
    """
    lost, repeated = left_and_excess(order, expected, read)
    buffer = plan.unseeded
    allowed = (0, 0) if buffer is None else (buffer.most_lost, buffer.most_repeated)
    return Proof(
        compared=plan.remaining,
        lost=allowed[0] + lost,
        repeated=allowed[1] + repeated,
        moved=None,
        exact=False,
        allowed=None if buffer is None else allowed,
    )


def _prove_loader(resolved: Resolved, plan: ResumePlan) -> Proof:
    """Make the calls of a plan in a loader that begins anew, and compare what comes to the end.

    What it lists of the epoch is compared with that as well.
    """
    order, count = order_of(resolved, plan.settings).order, plan.remaining_total
    count = count if plan.has_end else _PIECE
    start, stop = plan.consumed, plan.consumed + count
    expected = _looked_over(order, start, stop)
    found = [_in_same_order(order, expected, lambda: _as_called(resolved, plan, count), count)]
    if plan.lists_rest:
        found.append(
            _in_same_order(
                order,
                lambda: _of_epoch(order, start, plan.epoch),
                lambda: _read(plan.instructions, order),
                count,
            )
        )
    # Both must hold; the worse of the two is reported.
    return max(found, key=lambda proof: (proof.lost + proof.repeated, proof.moved))


def _of_epoch(order: Order, start: int, epoch: int) -> Iterator[Int64s]:
    """Yield the codes of an epoch from a position on, whatever comes between them."""
    for positions in counting(start, order.num_examples):
        yield order.codes_at(positions[order.epoch_of(positions) == epoch])


def _as_called(resolved: Resolved, plan: ResumePlan, count: int) -> Iterator[Int64s]:
    """Yield the examples of a loader behind the calls of a plan: which epoch, what to skip."""
    given = Counter[str]()
    # Calls by the library: arguments of one name are added up.
    for call in plan.after_read:
        given.update(call.arguments if isinstance(call, LoaderCall) else {})
    first, batches, start = given["epoch"] + given["count"], given["batches"], given["examples"]
    settings, chain = replace(plan.settings, pass_index=first), plan.settings.stages
    if chain is not None and any(one.name == "load_state_dict" for one in chain.stages):
        from shardctl.loaders.streaming import continued

        # It continues from another state, whose epoch is the first of those that are left.
        left = plan.settings.epochs - (plan.stop.epoch if plan.stop else 0)
        chain = continued(chain, {n: of for n, of in given.items() if n != "count"})
        settings = replace(plan.settings, stages=chain, epochs=left)
        given.clear()
    order = order_of(resolved, settings).order
    if batches:
        at_end = batches == order.num_steps
        start += order.num_examples if at_end else order.positions_in_step(batches).start
    if "sample_in_epoch" in given:  # a state of Streaming counts the samples of all ranks
        from shardctl.loaders.streaming import Work

        assert isinstance(order, LoaderOrder)
        work = Work(order.config)
        start = given["sample_in_epoch"] // (work.nodes * work.ranks)
    yield from order.chunks(start, min(start + count, order.num_examples))


def _prove_other_hosts(dataset: Dataset, plan: ResumePlan) -> Proof:
    """Compare what the new hosts read with what the old ones, or their buffers, were to read."""
    consumed, unseeded = plan.from_consumed, plan.unseeded
    risk, mode = (None, "exactly-once") if unseeded is None else (unseeded.risk, plan.mode)
    # Old hosts as they were, with the mode and risk by which the plan was made.
    old = partial(old_orders, dataset, plan.spec, hosts=len(consumed), mode=mode, risk=risk)
    planned = old(settings=plan.settings)
    stopped = [one.order for one in planned]
    expected: Codes
    first = stopped[0]
    if unseeded is not None:
        readers = [one.of_reader for one in planned]
        hosts, _ = stopped_hosts(readers, consumed, mode=mode, risk=risk)
        expected = chain.from_iterable(_to_read(host, plan.epoch) for host in hosts)
    else:
        whole = [one.order for one in old(settings=undropped(plan.settings))]
        first = whole[0]
        if first.has_readings:
            # Of a host that was done only what a dropped batch would have held was left.
            expected = chain.from_iterable(
                order.chunks(count, (plan.epoch + 1) * order.epoch_size)
                for order, own, count in zip(whole, stopped, consumed, strict=True)
                if count < own.num_examples
            )
        else:
            expected = _read(left_by_example(stopped, whole, consumed).reads, first)
    return _counted(plan, first, expected, _all_lists(plan, first))


def _to_read(host: OldHost, last: int) -> Iterator[Int64s]:
    """Yield what a host had not read of its epochs up to the last of a plan."""
    for epoch in range(host.point.epoch, last + 1):
        start = num_read_of(host, epoch)
        if start < host.order.epoch_size:
            reading = host.order.reading(epoch)
            yield from reading.chunks(start, reading.num_examples)
    host.order.forget_readings()


def inputs_of_plan(order: ReaderOrder, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield what the buffer of a plan without a seed reads of the epoch that the plan begins in."""
    if plan.remaining:
        reading = order.reading(order.stream_of(plan.epoch)[0])
        stop = reading.num_examples
        if plan.is_one_stream:
            # Of one stream, the buffer reads ahead of the end by its size less one.
            stop = order.stream_size + (order.num_buffered or 1) - 1
        yield from reading.chunks(stop - plan.remaining, stop)


def _inputs_left(order: ReaderOrder, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield what the buffer is still to read, also what it reads beyond the end of the order."""
    if plan.shuffle is not None and plan.remaining:
        reading = order.reading(order.stream_of(plan.epoch)[0])
        yield from reading.chunks(plan.shuffle.num_read, plan.shuffle.num_elements)


def _in_order(order: Order, plan: ResumePlan) -> Iterator[Int64s]:
    """Yield the codes in the order in which a host gets them from the instructions of its plan.

    Where hosts share by `ds.shard`, what a buffer held is the host's own and read before.
    """
    settings, reads, num_held = plan.settings, plan.instructions, plan.num_pending_instructions
    stride, phase = settings.host_mode.stride_and_phase(settings.host)
    # `ds.shard` must not be applied to what the buffer held: that is this host's own.
    parts = [(reads, stride, phase)]
    if stride > 1 and num_held:
        held, rest = reads.select(slice(0, num_held)), reads.select(slice(num_held, None))
        parts = [(held, 1, 0), (rest, stride, phase)]
    for part, every, first in parts:
        yield from _read(part, order, plan.cycle_length, settings.block, every, first)


def _all_lists(plan: ResumePlan, order: Order) -> Iterator[Int64s]:
    """Yield what all lists of a plan read, in whatever order."""
    for reads in (plan.instructions, *(host.instructions for host in plan.hosts)):
        yield from _read(reads, order)


def _read(
    reads: Reads, order: Order, cycle: int = 1, block: int = 1, stride: int = 1, phase: int = 0
) -> Iterator[Int64s]:
    """Yield the codes that file instructions read, by default one after the other."""
    reading = EpochReading(
        interleave=Interleave(reads.take, cycle_length=cycle, block_length=block),
        row_codes=order.codes.first_codes(reads),
        stride=stride,
        phase=phase,
    )
    yield from reading.chunks(0, reading.num_examples)


# Streams of examples compared with each other: position by position, and by number.


def _behind(chunks: Codes, start: int) -> Iterator[Int64s]:
    """Yield what some chunks hold behind their first `start` codes."""
    for chunk in chunks:
        yield chunk[start:]
        start = max(start - len(chunk), 0)


def _cut(chunks: Codes, size: int | None) -> Iterator[Int64s]:
    """Yield the first `size` codes of some chunks, None for all."""
    for chunk in chunks:
        yield chunk[:size]
        size = None if size is None else size - len(chunk)
        if size is not None and size <= 0:
            return


def num_differing(expected: Codes, actual: Codes) -> int:
    """Return at how many positions two streams differ; what one has beyond the other differs."""
    return sum(
        int(np.count_nonzero(left != right)) if len(left) == len(right) else len(left) + len(right)
        for left, right in aligned(expected, actual)
    )


def _num_counted(order: Order) -> int:
    """Return how many examples there are to count, or refuse to."""
    size = order.codes.num_codes
    if size > MAX_COUNTED:
        raise refused(
            "{prove} counts every example of the splits; {:,} are more than {:,}", size, MAX_COUNTED
        )
    return size


def left_and_excess(order: Order, expected: Codes, read: Codes) -> tuple[int, int]:
    """Return how many examples that are expected do not come, and how many come too often.

    Raises:
        UsageError: too many examples to count.
    """
    # Expected ones add, read ones subtract: what is above 0 is lost, below 0 repeated.
    counts = np.zeros(_num_counted(order), np.int32)
    for chunk in expected:
        np.add.at(counts, chunk, 1)  # `+= 1` would count a repeated code once
    for chunk in read:
        np.subtract.at(counts, chunk, 1)
    return int(counts[counts > 0].sum()), -int(counts[counts < 0].sum())


# Does a plan say what the pipeline comes to? What it promises, field by field.
#
# All of a plan but its file instructions follows from where the pipeline stopped; it is planned
# anew from that, and compared. The instructions are read to their end instead (`prove`).

# Settings are what is planned anew with, instructions are read, and which dataset it may be is
# known to `applied`; the others promise nothing.
_NOT_COMPARED = frozenset(
    {"dataset", "settings", "instructions", "given", "refs", "warnings", "assumptions", "advice"}
)
_NAMES = {"reader_state": "reader"}  # of fields that plan files call otherwise


@dataclass(frozen=True, kw_only=True)
class BrokenPromise:
    """A field of a plan, by its name in a plan file, with what it says and what it should say."""

    name: str
    promised: str
    found: str

    def __str__(self) -> str:
        return f"{self.name}: the plan says {self.promised}, the pipeline comes to {self.found}"


def planned_anew(
    dataset: Dataset, plan: ResumePlan, *, seen: Int64sLike | None = None
) -> ResumePlan:
    """Return the plan that is made today of the pipeline and the place that a plan names.

    Of a plan of the unseen `seen` is the log; without it, all that the instructions leave out.

    Raises:
        UsageError: no pipeline stops there: the place is past its end, or settings contradict; or
            the plan is of a run that was shared anew.
        UnpredictableOrderError: the order is nondeterministic.
    """
    if plan.stretches:
        raise UsageError(
            "this plan is for one host of a run that was shared again, and cannot be proven alone; "
            "Position.set_states takes the states of all hosts"
        )
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    risk = None if plan.unseeded is None else plan.unseeded.risk
    mode: Any = None if plan.mode == "exact" else plan.mode
    if plan.from_seen:
        to_hosts = len(plan.hosts) or None
        log = np.asarray(left_out(dataset, plan) if seen is None else seen, np.int64)
        return resume_unseen_of(resolved, plan.settings, seen=log, to_hosts=to_hosts)
    if plan.from_consumed:
        return resume_on_hosts(
            dataset,
            plan.spec,
            plan.settings,
            hosts=len(plan.from_consumed),
            to_hosts=max(len(plan.hosts), 1),
            consumed=plan.from_consumed,
            mode=mode if mode in UNSEEDED_MODES else "exactly-once",
            risk=risk,
        )
    # Under other rules than the plan's it may be a mode of another kind of order.
    planned = order_to_resume(partial(order_of, resolved), plan.settings, mode, risk)
    anew = resume_order(planned, consumed=plan.consumed, mode=mode, risk=risk)
    shuffles = any(isinstance(call, ShuffleCall) for call in plan.after_read)
    if plan.mode != "exact-order" or shuffles:
        return anew
    # In exact order 0.2.0 listed neither what the buffer held nor the call of the buffer.
    calls = [call for call in anew.after_read if not isinstance(call, ShuffleCall)]
    calls = [replace(c, skip_instructions=0) if isinstance(c, ShardCall) else c for c in calls]
    return replace(anew, num_pending_instructions=0, after_read=tuple(calls))


def broken_promises(plan: ResumePlan, anew: ResumePlan) -> tuple[BrokenPromise, ...]:
    """Return where a plan says something else than the same plan made anew.

    >>> from dataclasses import replace
    >>> from shardctl.dataset.dataset import Split
    >>> from shardctl.verbs.resume.answer import resume
    >>> train = Split.even(name="train", num_examples=9, num_shards=3)
    >>> plan = resume(Dataset(name="d", splits=(train,)), "train", consumed=4)
    >>> print(*broken_promises(replace(plan, remaining=6), plan))
    remaining: the plan says 6, the pipeline comes to 5
    """
    broken = [
        found
        for one in fields(plan)
        if one.name not in _NOT_COMPARED
        for found in _differing(
            _NAMES.get(one.name, one.name), getattr(plan, one.name), getattr(anew, one.name)
        )
    ]
    if anew.hosts and len(plan.instructions):  # which no host reads
        broken.append(_broken("file_instructions", len(plan.instructions), 0))
    if plan.lists_rest < anew.lists_rest and anew.read_config is None:
        broken.append(_broken("file_instructions", "too many", len(anew.instructions)))
    return tuple(broken)


def with_reads_of(plan: ResumePlan, anew: ResumePlan) -> ResumePlan:
    """Return what a plan reads among the fields of the plan made anew."""
    return replace(anew, instructions=plan.instructions, hosts=plan.hosts)


def share_of(dataset: Dataset, plan: ResumePlan) -> ReaderOrder:
    """Return an order of all that a plan of the unseen may read: the share of its host."""
    settings = ReadSettings(
        host=plan.settings.host,
        host_by=plan.settings.host_by,
        reverse=plan.settings.reverse,
        file_order=plan.settings.file_order,
    )
    # No order_of: a log has no order, so a nondeterministic one does not matter.
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    return ReaderOrder(resolved.dataset, resolved.ranges, settings)


def left_out(dataset: Dataset, plan: ResumePlan) -> Int64s:
    """Return the codes of the share that no instruction of a plan of the unseen reads."""
    order = share_of(dataset, plan)
    # Sorted or not, what no list reads counts as seen.
    read = np.concatenate([np.empty(0, np.int64), *_all_lists(plan, order)])
    return np.setdiff1d(order.read(0, order.num_examples), read)


def _differing(name: str, said: object, found: object) -> Iterator[BrokenPromise]:
    """Yield the innermost parts of two values that differ; `name` is what they are parts of."""
    if isinstance(said, Reads) and isinstance(found, Reads):
        # Of a share only the size; all shares together are read.
        name = name.replace("instructions", "num_examples")
        said, found = said.num_examples, found.num_examples
    parts, others = _parts(said), _parts(found)
    # The same type and parts: the difference is further inside.
    if type(said) is type(found) and parts and parts.keys() == others.keys():
        for part, value in parts.items():
            yield from _differing(f"{name}{part}", value, others[part])
    elif said != found or type(said) is not type(found):
        yield _broken(name, said, found)


def _parts(value: object) -> dict[str, object]:
    if isinstance(value, tuple):
        return {f"[{index}]": one for index, one in enumerate(value)}
    if not is_dataclass(value):
        return {}
    return {f".{field.name}": getattr(value, field.name) for field in fields(value)}


def _broken(name: str, said: object, found: object) -> BrokenPromise:
    if isinstance(said, tuple) and isinstance(found, tuple):
        said, found = f"{len(said):,} entries", f"{len(found):,}"
    return BrokenPromise(name=name, promised=_shown(said), found=_shown(found))


def _shown(value: object) -> str:
    if value is None or value == ():
        return "nothing"
    if is_dataclass(value):
        return f"{len(fields(value))} fields"
    return printable(str(value), 80)
