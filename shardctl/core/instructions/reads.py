"""File instructions as columns, for orders over a million shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.file_instruction import FileInstruction, SplitRange


@dataclass(frozen=True, kw_only=True)
class ReadTable:
    """A list of file instructions as columns, each int64[n].

    `part` is which range of the spec a row comes from, `split` the index of its split in the
    dataset, `shard` that of the shard in the split; `skip` and `take` are those of the file
    instruction, `first` the id of the first example read.
    """

    dataset: Dataset
    part: Int64s
    split: Int64s
    shard: Int64s
    skip: Int64s
    take: Int64s
    first: Int64s

    def __len__(self) -> int:
        return len(self.take)

    @property
    def num_examples(self) -> int:
        """Number of examples that all rows read."""
        return int(self.take.sum())

    def select(self, rows: Int64s | slice) -> ReadTable:
        """Return the rows asked for, in the order asked for."""
        return ReadTable(
            dataset=self.dataset,
            part=self.part[rows],
            split=self.split[rows],
            shard=self.shard[rows],
            skip=self.skip[rows],
            take=self.take[rows],
            first=self.first[rows],
        )

    def trimmed(self, skip: Int64s, take: Int64s) -> ReadTable:
        """Return the same rows reading `take` examples after `skip` more of their own range."""
        return ReadTable(
            dataset=self.dataset,
            part=self.part,
            split=self.split,
            shard=self.shard,
            skip=self.skip + skip,
            take=take,
            first=self.first + skip,
        )

    def file_instructions(self) -> tuple[FileInstruction, ...]:
        """Return the rows as file instructions."""
        splits = self.dataset.splits
        columns = (self.split, self.shard, self.skip, self.take, self.first)
        names = {index: splits[index].filenames for index in distinct(self.split).tolist()}
        return tuple(
            FileInstruction(
                filename=names[split][shard],
                split=splits[split].name,
                skip=skip,
                take=take,
                examples_in_shard=splits[split].shard_lengths[shard],
                first_id=first,
            )
            for split, shard, skip, take, first in zip(
                *(column.tolist() for column in columns), strict=True
            )
        )


def read_table(dataset: Dataset, ranges: Sequence[SplitRange]) -> ReadTable:
    """Return the file instructions of the ranges as columns; empty shards get no row.

    >>> from shardctl.core.dataset.dataset import Split
    >>> split = Split.even(name="train", num_examples=10, num_shards=3)
    >>> table = read_table(Dataset(name="d", splits=(split,)),
    ...                    [SplitRange(split=split, start=2, stop=8)])
    >>> table.shard.tolist(), table.skip.tolist(), table.take.tolist(), table.first.tolist()
    ([0, 1, 2], [2, 0, 0], [1, 4, 1], [2, 3, 7])
    """
    index_of = {split.name: index for index, split in enumerate(dataset.splits)}
    pieces = [_columns(i, index_of[p.split.name], p) for i, p in enumerate(ranges)]
    if not pieces:
        pieces = [np.empty((6, 0), np.int64)]
    part, split, shard, skip, take, first = np.concatenate(pieces, axis=1)
    return ReadTable(
        dataset=dataset, part=part, split=split, shard=shard, skip=skip, take=take, first=first
    )


def _columns(part: int, split_index: int, piece: SplitRange) -> Int64s:
    touched = piece.shards()
    offsets = np.array(piece.split.offsets[touched.start : touched.stop + 1], np.int64)
    if not len(touched):
        return np.empty((6, 0), np.int64)
    starts = np.maximum(offsets[:-1], piece.start)
    take = np.minimum(offsets[1:], piece.stop) - starts
    rows = np.flatnonzero(take)
    shard = np.arange(touched.start, touched.stop, dtype=np.int64)[rows]
    same = np.full(len(rows), part, np.int64), np.full(len(rows), split_index, np.int64)
    return np.stack([*same, shard, (starts - offsets[:-1])[rows], take[rows], starts[rows]])
