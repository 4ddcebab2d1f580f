"""What is left to read when only a log says what was seen?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from shardctl.base.arguments import checked
from shardctl.base.arrays import Int64s, Int64sLike, distinct
from shardctl.base.phrase import option, refused
from shardctl.dataset.dataset import Dataset, DatasetLike, as_dataset
from shardctl.order.epoch_reading import own_rows, sorted_reads
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.file_formats import as_read_by, refuse_open_hosts, refuse_unreadable
from shardctl.order.sources import resolved_reading, spec_as_given
from shardctl.saved.resume_plan import ResumePlan, settings_as_planned
from shardctl.settings.read_settings import (
    ReadSettings,
    SettingsLike,
    as_settings,
)
from shardctl.settings.short_form import short_form, stages_of
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import Resolved, SplitRange
from shardctl.stages.pipelines import parts_of
from shardctl.stages.stages import Filter, Opaque, Shard, Skip, Take
from shardctl.stages.text import text_of_part
from shardctl.verbs.resume.answer import calls_after_read
from shardctl.verbs.resume.hosts import even_shares


@checked
def resume_unseen(
    dataset: DatasetLike,
    spec: str | None = None,
    settings: SettingsLike | None = None,
    *,
    seen: Int64sLike,
    to_hosts: int | None = None,
) -> ResumePlan:
    """Return the instructions for every example of a spec that a log does not have, each once.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        spec: what is read, a subsplit as TFDS writes it; None is `train`, else the only split.
        settings: of these a host counts, which reads what is left of its own share. They need not
            fix an order: the files are read in theirs. Another loader reads the subset that
            is left, which it mixes by its own rule.
        seen: int64[n], ids, in any order and any number of times; codes of an `Order` where the
            spec reads several splits.
        to_hosts: how many hosts share what is left; None for one reader.

    Returns:
        A ResumePlan of what is left.

    Raises:
        UsageError: a host of `ds.shard` or of another loader, whose share only the order tells; a
            bad spec.
        UnpredictableOrderError: a host of files, where TFDS leaves the order of the splits open.

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
) -> ResumePlan:
    """Return the plan for what is not seen of a spec that is resolved, see `resume_unseen`."""
    resolved, settings = as_read_by(resolved, settings), short_form(settings)
    dataset, codes, on_tf_data = resolved.dataset, codes_of(resolved), settings.reader.on_tf_data
    if on_tf_data:
        refuse_unreadable(dataset)
    if settings.host is not None:
        refuse_open_hosts(resolved, settings.host_mode, settings.host.count)
    reads = _each_once(_share(dataset, resolved.ranges, settings), codes)
    firsts = codes.first_codes(reads)
    # No two rows read the same example, so only the last that begins at or before a seen one can
    # read it; `inside` leaves out what none reads, such as the examples of other hosts.
    own = distinct(np.asarray(seen, np.int64))
    row = np.searchsorted(firsts, own, side="right") - 1
    inside = row >= 0
    inside[inside] = own[inside] - firsts[row[inside]] < reads.take[row[inside]]
    left = _without(reads, firsts, own[inside])
    num_seen = int(np.count_nonzero(inside))
    nothing = left.select(slice(0, 0))
    return ResumePlan(
        dataset=dataset.identity,
        spec=spec_as_given(resolved, settings),
        mode="exactly-once",
        settings=settings_as_planned(settings, ordered=dataset.ordered),
        consumed=num_seen,
        epoch=0,
        remaining=left.num_examples,
        remaining_total=left.num_examples,
        instructions=left if to_hosts is None else nothing,
        from_seen=True,
        hosts=() if to_hosts is None else even_shares(left, to_hosts),
        continued_by="file_instructions" if on_tf_data else "loader",
        after_read=(
            calls_after_read(settings, "exactly-once", settings.epochs) if on_tf_data else ()
        ),
        advice=() if on_tf_data else _OF_SUBSET,
        warnings=tuple(_warnings(resolved, settings, len(own) - num_seen)),
    )


_OF_SUBSET = (
    "give the loader a subset of these examples, by their indices (torch.utils.data.Subset, "
    "Dataset.select) or by their files: its own rule mixes them anew, so they come in another "
    "order than the rest of the epoch would have had",
    "later epochs are of the whole dataset again, as the loader counts them",
)


def codes_of(resolved: Resolved) -> ExampleCodes:
    """Return the codes of the examples of the splits that a resolved spec reads."""
    dataset, ranges = resolved.dataset, resolved.ranges
    names = [piece.split.name for piece in ranges]
    return ExampleCodes(dataset, names, reads_of(dataset, ranges))


def _share(dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings) -> Reads:
    host, in_modes = settings.host, settings.reader.shares_in_modes
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
        yield f"{num_outside:,} of the seen examples lie outside of what is read of {resolved.spec}"
    # What stages leave out counts as unseen, for a log does not have it.
    cuts = (
        p for p in parts_of(stages_of(settings)) if isinstance(p, Take | Skip | Filter | Opaque)
    )
    for stage in islice(cuts, 1):
        yield (
            f"{text_of_part(stage)} leaves out examples, which no log has: they count as unseen, "
            "and the stages are to leave them out again"
        )
