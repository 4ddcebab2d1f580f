"""File instructions as columns with their file names, for lists of a million of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.dataset import Split
from shardctl.core.instructions.reads import ReadTable


class PlannedRead(NamedTuple):
    """One file instruction as a plan file has it.

    `filename` is the base name; `shard_index` counts the file in its split, None where a plan file
    names the file alone, which is enough unless a split has two files of one name.
    """

    filename: str
    split: str
    skip: int
    take: int
    examples_in_shard: int
    shard_index: int | None


@dataclass(frozen=True, kw_only=True, eq=False)
class InstructionColumns:
    """A list of file instructions as columns, each int64[n].

    `split` counts in `split_names`; `shard` is the index of the shard in its split, -1 where a plan
    file gives the name of the file alone. `names_repeat` says that a split has two files of one
    base name, in several folders. Iterating gives a `PlannedRead` for each.
    """

    split_names: tuple[str, ...]
    filenames: Sequence[str]
    split: Int64s
    shard: Int64s
    skip: Int64s
    take: Int64s
    examples_in_shard: Int64s
    names_repeat: bool = False

    @classmethod
    def of_table(cls, table: ReadTable) -> InstructionColumns:
        """Return the rows of a table; the names of their files are made when they are asked for."""
        splits = table.dataset.splits
        lengths = np.empty(len(table), np.int64)
        used = np.unique(table.split).tolist()
        for index in used:
            here = np.flatnonzero(table.split == index)
            lengths[here] = np.array(splits[index].shard_lengths, np.int64)[table.shard[here]]
        return cls(
            split_names=tuple(split.name for split in splits),
            filenames=_TableFilenames(table),
            split=table.split,
            shard=table.shard,
            skip=table.skip,
            take=table.take,
            examples_in_shard=lengths,
            names_repeat=any(_names_repeat(splits[index]) for index in used),
        )

    def __len__(self) -> int:
        return len(self.take)

    def __iter__(self) -> Iterator[PlannedRead]:
        size = 1 << 16
        for start in range(0, len(self), size):
            part = slice(start, start + size)
            columns = (self.split, self.skip, self.take, self.examples_in_shard, self.shard)
            for name, split, skip, take, length, shard in zip(
                self.filenames[part], *(column[part].tolist() for column in columns), strict=True
            ):
                index = None if shard < 0 else shard
                yield PlannedRead(name, self.split_names[split], skip, take, length, index)

    def __eq__(self, other: object) -> bool:
        """Whether both read the same; one of them may know its files by name alone."""
        if not isinstance(other, InstructionColumns):
            return NotImplemented
        return len(self) == len(other) and all(
            one[:5] == two[:5] and (one[5] == two[5] or None in (one[5], two[5]))
            for one, two in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        return f"<{len(self)} file instructions, {self.num_examples} examples>"

    @property
    def num_examples(self) -> int:
        """Number of examples that all of them read."""
        return int(self.take.sum())

    def rows(self, start: int, stop: int) -> InstructionColumns:
        """Return the instructions [start, stop)."""
        part = slice(start, stop)
        return InstructionColumns(
            split_names=self.split_names,
            filenames=self.filenames[part],
            split=self.split[part],
            shard=self.shard[part],
            skip=self.skip[part],
            take=self.take[part],
            examples_in_shard=self.examples_in_shard[part],
            names_repeat=self.names_repeat,
        )


def _names_repeat(split: Split) -> bool:
    if len(split.files) == 1 and "\0" in split.files[0].pattern.rpartition("/")[2]:
        return False  # each name holds its own index
    return len(set(split.filenames)) < split.num_shards


class _TableFilenames(Sequence[str]):
    """Base names of the files of a table's rows."""

    def __init__(self, table: ReadTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        splits, table = self._table.dataset.splits, self._table
        if isinstance(index, int):
            return splits[int(table.split[index])].filename(int(table.shard[index]))
        split, shard = table.split[index], table.shard[index]
        if len(shard) and (split == split[0]).all() and (np.diff(shard) == 1).all():
            # A run of shards, as all but the first of most plans are.
            return splits[int(split[0])].filenames_between(int(shard[0]), int(shard[-1]) + 1)
        if len(shard) < 1000:
            return [
                splits[s].filename(i) for s, i in zip(split.tolist(), shard.tolist(), strict=True)
            ]
        names = {i: splits[i].filenames for i in np.unique(split).tolist()}
        return [names[s][i] for s, i in zip(split.tolist(), shard.tolist(), strict=True)]
