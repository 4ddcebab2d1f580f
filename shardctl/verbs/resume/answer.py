"""Plans with which a pipeline resumes exactly where it stopped, or reads what a log lacks."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, islice
from typing import Any, Literal

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, counting, distinct
from shardctl.base.phrase import option, refused
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.loaders.loader import Stop, library_of
from shardctl.order.epoch_reading import own_rows, sorted_reads
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.loader_order import LoaderOrder
from shardctl.order.order import NONE, Order
from shardctl.order.plan_order import PlannedOrder, order_of, plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.resolved_spec import as_read_by, refuse_open_hosts, refuse_unreadable
from shardctl.order.sources import resolved_reading, spec_as_given, without_stages
from shardctl.order.staged import StagedOrder
from shardctl.saved import resume_plan
from shardctl.settings.keywords import OrderSettings, Unpack
from shardctl.settings.read_settings import ReadSettings, SettingsLike, as_settings
from shardctl.settings.short_form import short_form, stages_of
from shardctl.settings.table import ENDLESS
from shardctl.spec.reads import Reads, joined, reads_of
from shardctl.spec.subsplit import Resolved, SplitRange
from shardctl.stages import stages as tf_stages
from shardctl.stages.part import Stage
from shardctl.stages.pipelines import last_batch, parts_of, readers_of, sources_of
from shardctl.stages.stages import ByData, Opaque, Shard, Skip, Take
from shardctl.stages.text import text_of_part
from shardctl.verbs.resume import rest_of_epoch

BufferMode = Literal["exact-order", "exactly-once", "at-most-once", "at-least-once"]


@checked
def resume(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    consumed: int | None = None,
    steps: int | None = None,
    mode: BufferMode | None = None,
    risk: float | None = None,
    **keywords: Unpack[OrderSettings],
) -> resume_plan.ResumePlan:
    """Return how a pipeline resumes after `consumed` examples, or `steps` batches, of its order.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: those of the pipeline that stopped, of TFDS's reader or another loader.
        consumed: how many examples it had yielded, counted over all epochs.
        steps: how many batches, in place of `consumed`.
        mode: with a shuffle buffer: "exact-order" (the default: shardctl.tfds continues the same
            order) or "exactly-once" (what is left, in another order). Without the buffer's seed:
            "at-most-once" (skips all that the buffer had read) or "at-least-once" (reads the last
            buffers again).
        risk: for "at-least-once": fewer examples than this are lost on average; 1e-6 if None.

    Returns:
        A ResumePlan. Its `file_instructions` name every example that is left: first what the
        buffer held, then the open files from their positions, then the other files. `unseeded` says
        what is lost and repeated without a seed. `continued_by` says what resumes: file
        instructions, shardctl.tfds (other stages), or the loader's library, whose calls are in
        `after_read`.

    Raises:
        DatasetError: files that `as_dataset` does not read.
        UsageError: past the end of the order, not one of `consumed` and `steps`, `steps` without a
            batch size, no such mode, a mode without a seed where there is one, a risk that is not
            above 0 and at most the size of the buffer.
        UnpredictableOrderError: the order is nondeterministic.

    >>> import shardctl
    >>> settings = shardctl.ReadSettings(shuffle_seed=42, batch=256)
    >>> plan = shardctl.resume("imagenet2012", "train", settings, steps=1234)
    >>> plan.mode, plan.consumed, plan.remaining, plan.file_instructions[0].skip
    ('exact', 315904, 965263, 976)
    >>> settings = {"loader": "torch", "shuffle_seed": 5, "host": "0/2", "batch": 100, "pass": 3}
    >>> plan = shardctl.resume_loader("mnist", "train", settings, steps=40)  # its older name
    >>> plan.consumed, plan.remaining, [str(call) for call in plan.after_read]
    (4000, 26000, ['set_epoch(epoch=3)', 'skip(batches=40)'])
    """
    dataset, spec, settings = without_stages(as_dataset(dataset), spec, as_settings(settings))
    if settings.reader.on_tf_data:
        refuse_unreadable(dataset)
    planned = rest_of_epoch.order_to_resume(
        partial(plan_order, dataset, spec), settings, mode, risk
    )
    return resume_order(planned, consumed=consumed, steps=steps, mode=mode, risk=risk)


resume_loader = resume  # what another loader than TFDS's was resumed with
LoaderPlan = resume_plan.ResumePlan


def resume_order(
    planned: PlannedOrder,
    *,
    consumed: int | None = None,
    steps: int | None = None,
    mode: BufferMode | None = None,
    risk: float | None = None,
) -> resume_plan.ResumePlan:
    """Return how a pipeline of a known order resumes, see `resume`.

    In the modes without a seed it is an order of `order_to_resume`, whose seed means nothing.
    """
    # From here on the count is in examples, whatever it was given in.
    order = planned.order
    consumed = rest_of_epoch.consumed_examples(order, consumed=consumed, steps=steps)
    # Three ways to continue, by the kind of order.
    by = order.continued_by
    if by == "loader":
        made = _of_loader(order, consumed)
    elif by == "shardctl.tfds":
        made = _of_stages(order, consumed)
    else:
        made = _of_reader(planned.of_reader, consumed, mode, risk)
    by = made.setdefault("continued_by", by)
    return rest_of_epoch.plan_of(
        planned,
        made.pop("settings", order.settings),
        consumed=consumed,
        **made,
        warnings=(*planned.warnings, *rest_of_epoch.within_a_batch(order, consumed, by)),
    )


_END = 2**63 - 1


def _of_reader(
    order: ReaderOrder, consumed: int, asked: BufferMode | None, risk: float | None
) -> dict[str, Any]:
    """Return the fields of the plan with which TFDS's reader resumes.

    In exact order too the instructions list what the buffer held: shardctl.tfds puts that into the
    buffer again, and a reader of the instructions alone loses nothing.
    """
    settings, point = order.settings, rest_of_epoch.resume_point(order, consumed)
    mode: resume_plan.Mode = (asked or "exact-order") if order.num_buffered is not None else "exact"
    unknown = rest_of_epoch.without_seed(order, point, mode, risk)
    if mode == "exactly-once" and order.is_one_stream:
        raise refused(
            "{} and {buffer}: a stream without end has no rest to read exactly once; "
            "{mode=exact-order} continues it",
            ENDLESS,
        )
    # Without a seed, the plan starts at an example of the reading, not of the output.
    if unknown is not None:
        settings, point = replace(settings, buffer_seed=None), unknown.point
        num_read = unknown.num_read
    else:
        num_read = rest_of_epoch.inputs_read(order, point)
    reading = order.reading(point.stream)
    rest = rest_of_epoch.rest_of_reading(
        order.reads, reading, num_read if point.remaining else _END
    )
    state = rest_of_epoch.reader_state(order, point.stream, num_read)
    shuffle, pending, num_held = None, None, 0
    if order.num_buffered is not None and unknown is None:
        shuffle = rest_of_epoch.shuffle_state(order.replay(point.stream), point.emitted)
        inputs = rest_of_epoch.pending_inputs(order, point) if point.remaining else NONE
        # What the buffer held, as ids for people and as instructions for readers.
        pending = rest_of_epoch.ids_at(order, reading, inputs)
        if len(inputs):
            held = rest_of_epoch.reads_at(order.reads, reading, inputs)
            # Instructions of the buffer come first; `num_held` says how many they are.
            rest, num_held = joined([held, rest]), len(held)
    del reading
    # Readings hold arrays of all files; a plan does not need them any more.
    order.forget_readings()
    # Where the files repeat, their one stream holds all epochs.
    follow = order.num_streams - 1 - point.stream if consumed < order.num_examples else 0
    left_in_all = order.num_examples - consumed
    # Without a seed, what is read is not what is left: some examples are skipped, others read
    # again.
    if unknown is not None:
        left_in_all = point.remaining + follow * order.epoch_size
        if settings.drop_remainder and settings.batch is not None:
            left_in_all -= left_in_all % settings.batch
    return {
        "settings": settings,
        "mode": mode,
        "epoch": point.epoch,
        "remaining": point.remaining,
        "remaining_total": left_in_all,
        "instructions": rest,
        "num_pending_instructions": num_held,
        "pending": pending,
        "reader_state": state,
        "shuffle": shuffle,
        "unseeded": None if unknown is None else unknown.buffer,
        "further_epochs": rest_of_epoch.further_epochs(
            order, point.epoch, follow, seeded=unknown is None
        ),
        "num_further_epochs": follow,
        "after_read": rest_of_epoch.calls_after_read(
            settings,
            mode,
            point.epoch,
            take=point.remaining,
            num_own=num_held,
            num_shared=len(rest) - num_held if unknown is None else 1,
        ),
    }


# Pipelines with stages that settings do not say. What only cuts the reader's order, maps it and
# makes batches of it resumes by file instructions. All else shardctl.tfds builds again, advanced to
# its position; the plan says how far that is, in all and of each source.


def _of_stages(order: Order, consumed: int) -> dict[str, Any]:
    """Return the fields of the plan with which stages resume."""
    assert isinstance(order, StagedOrder)
    left = resume_plan.WITHOUT_END if order.is_endless else order.num_examples - consumed
    readers = readers_of(order.stages)
    counts = [consumed] if len(order.sources) == 1 else order.consumed(consumed)
    of_files = [isinstance(source, tf_stages.Read) for source in sources_of(order.stages)]
    return {
        "epoch": rest_of_epoch.epoch_at(order, consumed),
        "remaining": left,
        "remaining_total": left,
        "sources": tuple(
            resume_plan.ConsumedSource(data=read.data, spec=read.spec, consumed=count)
            for read, count in zip(readers, compress(counts, of_files), strict=True)
        ),
        **_by_instructions(order, consumed, left),
    }


_COMPARED = 64  # examples at both ends of a rest that are looked up in the pipeline's own order


def _by_instructions(order: StagedOrder, consumed: int, remaining: int) -> dict[str, Any]:
    """Return the fields of file instructions, none where these alone do not continue the plan.

    They do where the stages yield a piece of the reader's order, which each pass has alike.
    """
    # Only a plain reader of the dataset itself.
    settings, source, stages = order.settings, order.stages.source, order.stages.stages
    if not isinstance(source, tf_stages.Read) or source.data is not None or source.settings:
        return {}
    # A later pass of shuffled files has another order than pass 0, which the check below uses.
    shuffled = settings.shuffles_files and (
        settings.shuffle_seed is None or (settings.pass_index and settings.reshuffle is not False)
    )
    cached = settings.pass_index and any(isinstance(stage, tf_stages.Cache) for stage in stages)
    is_read_alike = not (shuffled or cached or settings.host_mode.reads_all)
    if not is_read_alike or settings.loop != "python" or order.is_endless or settings.is_endless:
        return {}
    reader, shape = next(iter(order.readers.values())), order.shape
    if not order.num_examples or shape is None or len(shape) > 1 or not all(map(_cuts, stages)):
        return {}
    # Where the first example stands in the reader's order.
    first = reader.positions_of(order.codes_at([0]))[1]
    if len(first) > 1:
        return {}  # where the same is read twice the piece may be another one
    # The piece [start, ...) of the reader's order is what the stages yield, if the check below
    # agrees.
    start = int(first[0]) + consumed
    # Both ends of the rest are what the pipeline yields there.
    head = np.arange(min(remaining, _COMPARED))
    places = np.unique(np.concatenate([head, remaining - 1 - head]))
    # Both ends are compared; between them, stages that only cut cannot deviate.
    if start + remaining > reader.num_examples or not np.array_equal(
        order.codes_at(consumed + places), reader.codes_at(start + places)
    ):
        return {}
    reading = reader.reading(0)
    calls: list[resume_plan.AfterRead] = []
    # Something follows in the reader's order: the list must be cut.
    if start + remaining < reading.num_examples:
        calls.append(resume_plan.TakeCall(count=remaining))
    if batch := last_batch(order.stages):
        calls.append(
            resume_plan.BatchCall(batch_size=batch.size, drop_remainder=batch.drop_remainder)
        )
    rest = rest_of_epoch.rest_of_reading(reader.reads, reading, start if remaining else _END)
    return {
        "instructions": replace(rest, files=order.dataset if remaining else order.reads.files),
        "reader_state": rest_of_epoch.reader_state(reader, 0, start),
        "continued_by": "file_instructions",
        "after_read": tuple(calls),
    }


def _cuts(stage: Stage) -> bool:
    """Whether a stage yields a piece of what it is given, in the same order."""
    if isinstance(stage, tf_stages.Repeat):
        return stage.count == 1
    if isinstance(stage, tf_stages.Shard):
        return stage.num_shards == 1
    return type(stage) in _CUTS


_CUTS = {
    *(tf_stages.Skip, tf_stages.Take, tf_stages.Batch, tf_stages.Unbatch, tf_stages.Map),
    *(tf_stages.Prefetch, tf_stages.Cache, tf_stages.AssertCardinality, tf_stages.WithOptions),
}


# Other loaders than TFDS's reader.

MOST_INSTRUCTIONS = 100_000  # that a plan lists
_MOST_EXAMPLES = 1 << 24  # left in an epoch, of which instructions are made


def _of_loader(order: Order, consumed: int) -> dict[str, Any]:
    """Return the fields of the plan with which the library of another loader resumes."""
    assert isinstance(order, LoaderOrder)
    stop = _stop(order, consumed)
    num_left, left = resume_plan.WITHOUT_END, None
    if not order.is_endless:
        num_left, left = _left(order, consumed, stop.epoch)
    # Examples to file instructions, as runs in the files.
    found = None if left is None else rest_of_epoch.reads_of_codes(order, order.codes_at(left))
    library = library_of(order.loader)
    advice = [*library.advice(order.config, stop)]
    if left is None or found is None or len(found) > MOST_INSTRUCTIONS:
        found = order.reads.select(slice(0, 0))
    if order.is_endless:
        advice.append(f"the chain has no end; simulate --skip {consumed} lists what follows")
    elif not len(found) and num_left:
        advice.append(
            f"more than {MOST_INSTRUCTIONS:,} runs of adjacent examples are left, too many for a "
            f"plan; simulate --skip {consumed} --take {num_left} lists the examples"
        )
    # The positions have gaps: examples of another epoch lie between them.
    if left is not None and len(left) and int(left[-1] - left[0]) + 1 > len(left):
        advice.append(
            f"worker processes end epoch {stop.epoch} one by one, so examples of the next epoch "
            "come between the listed ones; simulate lists all of them in order"
        )
    return {
        "epoch": stop.epoch,
        "remaining": num_left,
        "remaining_total": num_left if order.is_endless else order.num_examples - consumed,
        "instructions": found,
        "num_further_epochs": _further_epochs(order, stop) if num_left else 0,
        "after_read": library.calls(order.config, stop),
        "stop": stop,
        "advice": tuple(advice),
    }


def order_of_plan(plan: resume_plan.ResumePlan) -> LoaderOrder:
    """Return the order of a plan whose files are found in a dataset."""
    dataset = plan.instructions.dataset
    order = order_of(resolved_reading(dataset, plan.spec, plan.settings), plan.settings).order
    assert isinstance(order, LoaderOrder)
    # The settings of a plan name a version, of which nothing is assumed any more.
    return order.assuming(text for text in plan.assumptions if text not in order.assumptions)


def _further_epochs(order: LoaderOrder, stop: Stop) -> int:
    """Return how many epochs follow that of the stop: as settings say, or as a chain goes on."""
    if order.config.stages is None:
        return order.settings.epochs - 1 - stop.epoch
    return 0 if order.is_endless else rest_of_epoch.epoch_at(order, order.num_examples) - stop.epoch


def _stop(order: LoaderOrder, consumed: int) -> Stop:
    epoch = rest_of_epoch.epoch_at(order, consumed)
    # By halves: epochs come one after the other.
    positions = range(min(consumed + 1, order.num_examples))
    # Bisection over positions by their epochs.
    first = bisect_left(positions, epoch, key=lambda at: int(order.epoch_of([at])[0]))
    done, in_batch = rest_of_epoch.steps_before(order, consumed)
    before, _ = rest_of_epoch.steps_before(order, first)
    return Stop(
        consumed=consumed,
        epoch=epoch,
        in_epoch=consumed - first,
        steps=done,
        steps_in_epoch=None if done is None or before is None else done - before,
        in_batch=in_batch,
    )


def _left(order: LoaderOrder, consumed: int, epoch: int) -> tuple[int, Int64s | None]:
    """Return how much of an epoch is left, and its positions, None where these are very many.

    Batches of several worker processes may end an epoch in turn, so that it ends by and by.
    """
    pieces = [NONE]
    num_left = 0
    for positions in counting(consumed, order.num_examples):
        epochs = order.epoch_of(positions)
        here = positions[epochs == epoch]
        num_left += len(here)
        if num_left <= _MOST_EXAMPLES:
            pieces.append(here)
        # A later epoch in every position of the piece: the epoch is over.
        if int(epochs.min()) > epoch:
            break
    return num_left, np.concatenate(pieces) if num_left <= _MOST_EXAMPLES else None


# Plans of what a log of the examples seen leaves over.


@checked
def resume_unseen(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    seen: Int64sLike,
    to_hosts: int | None = None,
    **keywords: Unpack[OrderSettings],
) -> resume_plan.ResumePlan:
    """Return the instructions for every example of a spec that a log does not have, each once.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings, keywords: of these a host counts, which reads what is left of its share. They need
            not fix an order. Another loader reads the subset that is left, shuffled by its own
            rule.
        seen: int64[n], ids, in any order and any number of times; codes of an `Order` where the
            spec reads several splits.
        to_hosts: how many hosts share what is left; None for one reader.

    Returns:
        A ResumePlan of what is left.

    Raises:
        UsageError: a host of `ds.shard` or of another loader, whose share depends on the order; a
            bad spec.
        UnpredictableOrderError: a host of files, where the order of the splits is nondeterministic.

    >>> import shardctl
    >>> plan = shardctl.resume_unseen("mnist", "train", seen=[4, 1, 4])
    >>> [(read.skip, read.take) for read in plan.file_instructions]
    [(0, 1), (2, 2), (5, 59995)]
    """
    settings = as_settings(settings)
    resolved = resolved_reading(as_dataset(dataset), spec, settings)
    return resume_unseen_of(resolved, settings, seen=seen, to_hosts=to_hosts)


def resume_unseen_of(
    resolved: Resolved, settings: ReadSettings, *, seen: Int64sLike, to_hosts: int | None = None
) -> resume_plan.ResumePlan:
    """Return the plan for what is not seen of a spec that is resolved, see `resume_unseen`."""
    resolved, settings = as_read_by(resolved, settings), short_form(settings)
    dataset, codes, on_tf_data = resolved.dataset, codes_of(resolved), settings.reader.on_tf_data
    if on_tf_data:
        refuse_unreadable(dataset)
    if settings.host is not None:
        refuse_open_hosts(resolved, settings.host_mode, settings.host.count)
    # Rows without overlap, in the order of the files.
    reads = _each_once(_share(dataset, resolved.ranges, settings), codes)
    firsts = codes.first_codes(reads)
    # No two rows read the same example, so only the last that begins at or before a seen one can
    # read it; `inside` leaves out what none reads, such as the examples of other hosts.
    own = distinct(np.asarray(seen, np.int64))
    row = np.searchsorted(firsts, own, side="right") - 1
    inside = row >= 0
    inside[inside] = own[inside] - firsts[row[inside]] < reads.take[row[inside]]
    # Seen examples are cut out of the rows that read them.
    left = _without(reads, firsts, own[inside])
    num_seen = int(np.count_nonzero(inside))
    nothing = left.select(slice(0, 0))
    return resume_plan.ResumePlan(
        dataset=dataset.identity,
        spec=spec_as_given(resolved, settings),
        mode="exactly-once",
        settings=resume_plan.settings_as_planned(settings, ordered=dataset.ordered),
        consumed=num_seen,
        epoch=0,
        remaining=left.num_examples,
        remaining_total=left.num_examples,
        instructions=left if to_hosts is None else nothing,
        from_seen=True,
        hosts=() if to_hosts is None else rest_of_epoch.even_shares(left, to_hosts),
        continued_by="file_instructions" if on_tf_data else "loader",
        after_read=(
            rest_of_epoch.calls_after_read(settings, "exactly-once", settings.epochs)
            if on_tf_data
            else ()
        ),
        advice=() if on_tf_data else (OF_SUBSET, _OF_LATER_EPOCHS),
        warnings=tuple(_warnings(resolved, settings, len(own) - num_seen)),
    )


OF_SUBSET = (
    "give the loader a subset of these examples, by index (torch.utils.data.Subset, "
    "Dataset.select, MapDataset.slice) or by file; it shuffles them again, so their order is new"
)
_OF_LATER_EPOCHS = "later epochs read the whole dataset again, as the loader counts them"


def codes_of(resolved: Resolved) -> ExampleCodes:
    """Return the codes of the examples of the splits that a resolved spec reads."""
    dataset, ranges = resolved.dataset, resolved.ranges
    names = [piece.split.name for piece in ranges]
    return ExampleCodes(dataset, names, reads_of(dataset, ranges))


def _share(dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings) -> Reads:
    host, in_modes = settings.host, settings.reader.on_tf_data
    sharded = any(isinstance(p, Shard) and p.num_shards > 1 for p in parts_of(stages_of(settings)))
    by_order = (
        host is not None and host.count > 1 and not (in_modes and not settings.host_mode.reads_all)
    )
    if sharded or by_order:
        by_host = option("host_by", settings.host_by) if in_modes else option("host")
        raise refused(
            "{seen} with {}: which examples are a host's own depends on the order that was read; "
            "gather the logs of all hosts and share the rest with {to_hosts=N}",
            by_host if by_order else "a shard among the --stages",
        )
    return own_rows(sorted_reads(dataset, ranges, settings), settings)


def _each_once(reads: Reads, codes: ExampleCodes) -> Reads:
    """Return the rows in the order of the files, without what an earlier row reads as well."""
    # Stable: rows that begin at the same example keep their order.
    reads = reads.select(np.argsort(codes.first_codes(reads), kind="stable"))
    if not len(reads):
        return reads
    firsts = codes.first_codes(reads)
    # Rows ascend, so all before a row together read up to the largest of their ends; the row skips
    # what it has of that.
    ends = np.maximum.accumulate(firsts + reads.take)
    skip = np.maximum(np.concatenate([[0], ends[:-1] - firsts[1:]]), 0)
    skip = np.minimum(skip, reads.take)
    trimmed = reads.trimmed(skip, reads.take - skip)
    return trimmed.select(np.flatnonzero(trimmed.take))


def _without(reads: Reads, firsts: Int64s, seen: Int64s) -> Reads:
    """Return the runs between the seen examples (int64[n], ascending, each read by a row)."""
    # A row without k of its examples falls into k + 1 runs, some of them empty; rows ascend, so
    # the k-th start belongs to the k-th end.
    starts = np.sort(np.concatenate([firsts, seen + 1]))
    ends = np.sort(np.concatenate([firsts + reads.take, seen]))
    kept = np.flatnonzero(ends > starts)
    starts, ends = starts[kept], ends[kept]
    row = np.searchsorted(firsts, starts, side="right") - 1
    return reads.select(row).trimmed(starts - firsts[row], ends - starts)


def _warnings(resolved: Resolved, settings: ReadSettings, num_outside: int) -> Iterator[str]:
    yield from resolved.warnings
    if num_outside:
        yield f"{num_outside:,} of the seen examples are not in {resolved.spec}"
    # What stages leave out counts as unseen, for a log does not have it.
    cuts = (
        p for p in parts_of(stages_of(settings)) if isinstance(p, Take | Skip | ByData | Opaque)
    )
    for stage in islice(cuts, 1):
        yield (
            f"{text_of_part(stage)} leaves out examples that no log has: they count as unseen, so "
            "leave them out again"
        )
