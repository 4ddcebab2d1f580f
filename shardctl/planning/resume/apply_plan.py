"""Does a plan still fit its dataset, and which files of it are meant?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.named_files import NamedFiles
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.subsplit import Resolved
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.stages.readers import readers_of
from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.planning.file_formats import format_warnings, refuse_unreadable
from shardctl.planning.open_splits import refuse_open_splits
from shardctl.planning.pinned.pinned_sources import resolved_reading
from shardctl.planning.resume.same_dataset import check_same_dataset


def applied(plan: ResumePlan, dataset: Dataset, *, allow_version: bool = False) -> ResumePlan:
    """Return a plan, from a file as a rule, with its files found in the dataset as it is now.

    A plan that was made or found in this very dataset is returned as it is. With `allow_version` it
    may be one of another version or config whose files have the same names and lengths; the plan
    that is returned is then one for the dataset as it is now.

    Raises:
        DatasetError: the dataset is another one or has changed, and the text says how; or an
            instruction names a file that is not there or not read, or examples beyond it.
        UnpredictableOrderError: the plan is of an order that TFDS leaves open.
    """
    given, dataset = dataset, whole_dataset(plan, dataset)
    if plan.dataset is not dataset.identity:
        check_same_dataset(plan.dataset, dataset, "plan", allow_version=allow_version)
    if all(reads.files is dataset for reads in _all_reads(plan)):
        _checked_spec(plan, given)
        return plan
    if allow_version and plan.dataset.title != dataset.title:
        plan = replace(plan, dataset=dataset.identity)
    found = replace(
        plan,
        instructions=_found(plan.instructions, dataset),
        hosts=tuple(
            replace(host, instructions=_found(host.instructions, dataset)) for host in plan.hosts
        ),
        shared=plan.shared and plan.shared.of_files(_found(plan.shared.reads, dataset)),
    )
    said = format_warnings(dataset, _checked_spec(found, given).ranges)
    return replace(found, warnings=tuple(dict.fromkeys((*found.warnings, *said))))


def whole_dataset(plan: ResumePlan, dataset: Dataset) -> Dataset:
    """Return what a plan reads: where its readers name several datasets, these as one."""
    stages = plan.settings.stages
    if stages is None or all(read.data is None for read in readers_of(stages)):
        return dataset
    return resolved_reading(dataset, plan.spec, plan.settings).dataset


def _checked_spec(plan: ResumePlan, dataset: Dataset) -> Resolved:
    """Return the spec of a plan, checked: it has an order, and instructions read splits of it."""
    refuse_unreadable(dataset)
    resolved = resolved_reading(dataset, plan.spec, plan.settings)
    if not plan.from_seen:  # which counts from the start of no order
        refuse_open_splits(resolved)
    dataset = resolved.dataset
    names = [split.name for split in dataset.splits]
    read = {names.index(piece.split.name) for piece in resolved.ranges}
    for reads in _all_reads(plan):
        for index in distinct(reads.split).tolist():
            if index not in read:
                which = quoted(names[index]) if 0 <= index < len(names) else f"split {index}"
                raise DatasetError(
                    f"the plan reads files of {which}, which its spec {quoted(plan.spec)} does not"
                )
            _check_shards(reads.shard[reads.split == index], dataset.splits[index])
        _check_fit(reads)
    return resolved


def _check_fit(reads: Reads) -> None:
    """Check that the examples that rows read are in their files."""
    skip, take, lengths = reads.skip, reads.take, reads.examples_in_shard
    wrong = np.flatnonzero((skip < 0) | (take < 0) | (take > lengths - skip))
    if wrong.size:
        row = int(wrong[0])
        raise DatasetError(
            f"the plan skips {skip[row]} and takes {take[row]} of {quoted(reads.filename(row))}, "
            f"which has {lengths[row]} examples"
        )


def _check_shards(shard: Int64s, split: Split) -> None:
    outside = shard[(shard < 0) | (shard >= split.num_shards)]
    if outside.size:
        raise DatasetError(
            f"the plan reads shard {outside[0]} of {quoted(split.name)}, which has "
            f"{split.num_shards}"
        )


def _all_reads(plan: ResumePlan) -> Iterator[Reads]:
    yield plan.instructions
    if plan.shared is not None:
        yield plan.shared.reads
    yield from (host.instructions for host in plan.hosts)


def _found(reads: Reads, dataset: Dataset) -> Reads:
    """Return the same reads of a dataset whose layout is the one that the plan was made for."""
    files = reads.files
    if not isinstance(files, NamedFiles):
        if files.fingerprint != dataset.fingerprint:
            raise DatasetError(f"the plan's files are not those of {dataset.title}")
        return replace(reads, files=dataset)
    # `split` counts in the list of splits at the head of the plan's file.
    index_of = {split.name: index for index, split in enumerate(dataset.splits)}
    indices = np.array([index_of.get(name, -1) for name in reads.split_names], np.int64)
    split = indices[reads.split]
    shard = np.empty(len(reads), np.int64)
    for index in distinct(split).tolist():
        here = np.flatnonzero(split == index)
        one = dataset.splits[index]
        if files.shards is None:
            shard[here] = _shards_by_name(files.names_at(reads.shard[here]), one)
        else:
            shard[here] = files.shards[reads.shard[here]]
        _check_lengths(reads, here, shard[here], one)
    return replace(reads, files=dataset, split=split, shard=shard)


def _shards_by_name(names: list[str], split: Split) -> Int64s | list[int]:
    found = split.files[0].indices_of(names) if len(split.files) == 1 else None
    if found is not None and (found >= 0).all():
        return found
    places = {name: shard for shard, name in enumerate(split.filenames)}
    try:
        return [places[name] for name in names]
    except KeyError as error:
        raise DatasetError(
            f"the plan reads {quoted(error.args[0])}, which is not a file of {quoted(split.name)}"
        ) from None


def _check_lengths(reads: Reads, here: Int64s, shard: Int64s, split: Split) -> None:
    _check_shards(shard, split)
    lengths = split.lengths64()[shard]
    wrong = np.flatnonzero(lengths != reads.examples_in_shard[here])
    if wrong.size:
        row = int(here[wrong[0]])
        raise DatasetError(
            f"the plan says {reads.examples_in_shard[row]} examples of "
            f"{quoted(reads.filename(row))}, which has {lengths[wrong[0]]}"
        )
