"""Does a plan still fit its dataset, and which files of it are meant?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.identity import DatasetIdentity, SplitSize, differences
from shardctl.core.instructions.instruction_columns import InstructionColumns
from shardctl.core.instructions.reads import ReadTable
from shardctl.core.resume.resume_plan import ResumePlan
from shardctl.core.text import choices, quoted
from shardctl.errors import DatasetError


def applied(plan: ResumePlan, dataset: Dataset) -> ResumePlan:
    """Return a plan, from a file as a rule, with its files found in the dataset as it is today.

    Raises:
        DatasetError: the dataset is another one or has changed, and the text says how; or an
            instruction names a file that is not there.
    """
    if plan.dataset.fingerprint != dataset.fingerprint:
        changes = what_changed(plan.dataset, dataset.identity)
        raise DatasetError(
            f"the plan was made for another state of {plan.dataset.title}: {'; '.join(changes)}"
        )
    return replace(
        plan,
        instructions=_found(plan.instructions, dataset),
        hosts=tuple(
            replace(host, instructions=_found(host.instructions, dataset)) for host in plan.hosts
        ),
    )


def what_changed(then: DatasetIdentity, now: DatasetIdentity) -> list[str]:
    """Return what a dataset's layout has changed in, in words.

    >>> train = SplitSize(name="train", num_examples=60000, num_shards=1)
    >>> then = DatasetIdentity(name="mnist", config=None, version="3.0.1", file_format="tfrecord",
    ...                        data_dir=None, fingerprint="a", ordered=False, splits=(train,))
    >>> now = replace(then, fingerprint="b", splits=(replace(train, num_shards=2),))
    >>> what_changed(then, now)
    ['train had 60,000 examples in 1 shard, now 60,000 in 2']
    """
    changes = []
    if then.title != now.title:
        changes.append(f"it is {quoted(now.title)} now")
    if then.file_format != now.file_format:
        changes.append(f"its files are {now.file_format}, they were {then.file_format}")
    splits = [found for found in differences(then, now) if found.split is not None]
    if gone := [found.split for found in splits if found.now is None]:
        changes.append(f"split {choices(gone, 3)} is gone")
    if added := [found.split for found in splits if found.then is None]:
        changes.append(f"split {choices(added, 3)} is new")
    changes += [
        f"{found.split} had {_size(old)}, now {new.num_examples:,} in {new.num_shards:,}"
        for found in splits
        if isinstance(old := found.then, SplitSize) and isinstance(new := found.now, SplitSize)
    ]
    if not changes and [s.name for s in then.splits] != [s.name for s in now.splits]:
        changes.append("its splits stand in another order")
    return changes or ["the lengths or names of its files changed, the totals did not"]


def table_of(columns: InstructionColumns, dataset: Dataset) -> ReadTable:
    """Return instructions, their files found, as rows of a dataset."""
    split = _split_indices(columns, dataset)
    first = columns.skip.copy()
    for index in np.unique(split).tolist():
        here = np.flatnonzero(split == index)
        offsets = np.array(dataset.splits[index].offsets, np.int64)
        first[here] += offsets[columns.shard[here]]
    return ReadTable(
        dataset=dataset,
        part=np.zeros_like(split),
        split=split,
        shard=columns.shard,
        skip=columns.skip,
        take=columns.take,
        first=first,
    )


def _size(split: SplitSize) -> str:
    shards = "1 shard" if split.num_shards == 1 else f"{split.num_shards:,} shards"
    return f"{split.num_examples:,} examples in {shards}"


def _split_indices(columns: InstructionColumns, dataset: Dataset) -> Int64s:
    places = {split.name: index for index, split in enumerate(dataset.splits)}
    indices = np.array([places.get(name, -1) for name in columns.split_names], np.int64)
    return indices[columns.split] if len(columns) else np.empty(0, np.int64)


def _found(columns: InstructionColumns, dataset: Dataset) -> InstructionColumns:
    if not len(columns):
        return columns
    split = _split_indices(columns, dataset)
    shard = columns.shard.copy()
    for index in np.unique(split).tolist():
        here = np.flatnonzero(split == index)
        one = dataset.splits[index]
        if not columns.names_repeat:
            shard[here] = _shards_by_name(columns, here, one)
        _check_lengths(columns, here, shard[here], one)
    return replace(columns, shard=shard)


def _shards_by_name(columns: InstructionColumns, here: Int64s, split: Split) -> list[int]:
    places = {name: shard for shard, name in enumerate(split.filenames)}
    names = columns.filenames
    try:
        return [places[names[row]] for row in here.tolist()]
    except KeyError as error:
        raise DatasetError(
            f"the plan reads {quoted(error.args[0])}, which is no file of {quoted(split.name)}"
        ) from None


def _check_lengths(columns: InstructionColumns, here: Int64s, shard: Int64s, split: Split) -> None:
    outside = shard[(shard < 0) | (shard >= split.num_shards)]
    if outside.size:
        raise DatasetError(
            f"the plan reads shard {outside[0]} of {quoted(split.name)}, which has "
            f"{split.num_shards}"
        )
    lengths = np.array(split.shard_lengths, np.int64)[shard]
    wrong = np.flatnonzero(lengths != columns.examples_in_shard[here])
    if wrong.size:
        row = int(here[wrong[0]])
        raise DatasetError(
            f"the plan says {columns.examples_in_shard[row]} examples of "
            f"{quoted(columns.filenames[row])}, which has {lengths[wrong[0]]}"
        )
