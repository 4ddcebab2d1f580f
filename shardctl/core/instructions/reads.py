"""File instructions as columns, for orders and plans over a million shards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.file_instruction import FileInstruction
from shardctl.core.instructions.named_files import NamedFiles
from shardctl.core.instructions.split_range import SplitRange

_PIECE = 1 << 16  # rows made into Python values at once
_FEW = 1000  # up to this many files are named one by one; for more all names of a split are made


@dataclass(frozen=True, kw_only=True, eq=False)
class Reads:
    """A list of file instructions as columns, each int64[n]; iterating gives `FileInstruction`s.

    files: the dataset that is read; of a plan file the files that it names, until they are found in
        a dataset (`planning.resume.apply_plan.applied`).
    part: which range of the spec a row comes from.
    split, shard: the index of its split, and that of its file among the split's; among
        `NamedFiles` that in their list.
    skip, take: those of the file instruction.

    >>> train = Split.even(name="train", num_examples=10, num_shards=3)
    >>> reads = reads_of(Dataset(name="d", splits=(train,)),
    ...                  [SplitRange(split=train, start=2, stop=8)])
    >>> reads.shard.tolist(), reads.skip.tolist(), reads.take.tolist(), reads.first.tolist()
    ([0, 1, 2], [2, 0, 0], [1, 4, 1], [2, 3, 7])
    """

    files: Dataset | NamedFiles
    part: Int64s
    split: Int64s
    shard: Int64s
    skip: Int64s
    take: Int64s

    def __len__(self) -> int:
        return len(self.take)

    def __iter__(self) -> Iterator[FileInstruction]:
        columns = (self.split, self.skip, self.take, self.examples_in_shard, self.first)
        for start in range(0, len(self), _PIECE):
            part = slice(start, start + _PIECE)
            for filename, split, skip, take, length, first in zip(
                self.filenames(start, start + _PIECE),
                *(column[part].tolist() for column in columns),
                strict=True,
            ):
                yield FileInstruction(
                    filename=filename,
                    split=self.split_names[split],
                    skip=skip,
                    take=take,
                    examples_in_shard=length,
                    first_id=first,
                )

    def __eq__(self, other: object) -> bool:
        """Whether both read the same; one of them may know its files by name alone."""
        if not isinstance(other, Reads):
            return NotImplemented
        return (
            len(self) == len(other)
            and np.array_equal(self.skip, other.skip)
            and np.array_equal(self.take, other.take)
            and np.array_equal(self.examples_in_shard, other.examples_in_shard)
            and [*self._split_names_of_rows()] == [*other._split_names_of_rows()]
            and self.filenames() == other.filenames()
            and (
                self.shard_index is None
                or other.shard_index is None
                or np.array_equal(self.shard_index, other.shard_index)
            )
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        return f"<{len(self)} file instructions, {self.num_examples} examples>"

    @property
    def num_examples(self) -> int:
        """Number of examples that all rows read."""
        return int(self.take.sum())

    @property
    def dataset(self) -> Dataset:
        """The dataset that is read.

        Raises:
            ValueError: the files are known by name alone, as a plan file has them.
        """
        if isinstance(self.files, NamedFiles):
            raise ValueError("these files are known by name alone: find them in a dataset first")
        return self.files

    @cached_property
    def first(self) -> Int64s:
        """The id of the first example that each row reads, counted in its split, int64[n]."""
        return self._of_shards(lambda split: split.offsets) + self.skip

    @cached_property
    def examples_in_shard(self) -> Int64s:
        """Number of examples in the file of each row, int64[n]."""
        if isinstance(self.files, NamedFiles):
            return self.files.lengths[self.shard]
        return self._of_shards(lambda split: split.shard_lengths)

    @cached_property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits that `split` counts in."""
        if isinstance(self.files, NamedFiles):
            return self.files.split_names
        return tuple(split.name for split in self.files.splits)

    @property
    def shard_index(self) -> Int64s | None:
        """The index of each file in its split, None where the files' names alone are known."""
        if not isinstance(self.files, NamedFiles):
            return self.shard
        return None if self.files.shards is None else self.files.shards[self.shard]

    @cached_property
    def names_repeat(self) -> bool:
        """Whether a split that is read has two files of one base name, in several folders."""
        if isinstance(self.files, NamedFiles):
            return self.files.shards is not None
        return any(self.files.splits[index].names_repeat for index in distinct(self.split).tolist())

    def filename(self, row: int) -> str:
        """Return the base name of the file of a row."""
        return self.filenames(row, row + 1)[0]

    def filenames(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the base names of the files of rows [start, stop)."""
        shard = self.shard[start:stop]
        if isinstance(self.files, NamedFiles):
            names = self.files.names
            return [names[index] for index in shard.tolist()]
        return filenames_of(self.files, self.split[start:stop], shard)

    def select(self, rows: Int64s | slice) -> Reads:
        """Return the rows asked for, in the order asked for."""
        return Reads(
            files=self.files,
            part=self.part[rows],
            split=self.split[rows],
            shard=self.shard[rows],
            skip=self.skip[rows],
            take=self.take[rows],
        )

    def trimmed(self, skip: Int64s, take: Int64s) -> Reads:
        """Return the same rows reading `take` examples after `skip` more of their own range."""
        return replace(self, skip=self.skip + skip, take=take)

    def between(self, start: int, stop: int) -> Reads:
        """Return what reads examples [start, stop), counted through the rows one after the other.

        >>> train = Split.even(name="train", num_examples=10, num_shards=3)
        >>> whole = reads_of(Dataset(name="d", splits=(train,)),
        ...                  [SplitRange(split=train, start=0, stop=10)])
        >>> part = whole.between(2, 6)
        >>> part.shard.tolist(), part.skip.tolist(), part.take.tolist()
        ([0, 1], [2, 0], [1, 3])
        """
        if start >= stop:
            return self.select(slice(0, 0))
        # Rows that end at `start` or begin at `stop` have no part in it; the first and the last of
        # the others are cut.
        low = int(np.searchsorted(self._ends, start, side="right"))
        high = int(np.searchsorted(self._ends, stop, side="left")) + 1
        rows = self.select(slice(low, high))
        skip = np.zeros_like(rows.take)
        take = rows.take.copy()  # a slice of this one's column
        skip[0] = start - (int(self._ends[low]) - int(take[0]))
        take[0] -= skip[0]
        take[-1] -= int(self._ends[high - 1]) - stop
        return rows.trimmed(skip, take)

    def runs(self) -> Reads:
        """Return the rows in the order of the files, those that continue one another as one.

        Rows that read no example are left out; rows that read the same example stay two rows.
        """
        reads = self.select(np.flatnonzero(self.take))
        # By split, then shard, then skip: lexsort takes its first key last.
        reads = reads.select(np.lexsort((reads.skip, reads.shard, reads.split)))
        if not len(reads):
            return reads
        continues = (
            (reads.split[1:] == reads.split[:-1])
            & (reads.shard[1:] == reads.shard[:-1])
            & (reads.skip[1:] == reads.skip[:-1] + reads.take[:-1])
        )
        starts = np.flatnonzero(np.concatenate([[True], ~continues]))
        return replace(reads.select(starts), take=np.add.reduceat(reads.take, starts))

    @cached_property
    def _ends(self) -> Int64s:
        return np.cumsum(self.take)

    def _split_names_of_rows(self) -> Iterator[str]:
        names = self.split_names
        return (names[index] for index in self.split.tolist())

    def _of_shards(self, values_of: Callable[[Split], Sequence[int]]) -> Int64s:
        """Return the value of the file of each row, int64[n], of one a shard in each split."""
        splits, used = self.dataset.splits, distinct(self.split).tolist()
        if len(used) == 1:
            return _chosen(values_of(splits[used[0]]), self.shard)
        found = np.empty(len(self), np.int64)
        for index in used:
            here = np.flatnonzero(self.split == index)
            found[here] = _chosen(values_of(splits[index]), self.shard[here])
        return found


def _chosen(values: Sequence[int], indices: Int64s) -> Int64s:
    """Return the values at indices, int64[n]."""
    if len(indices) < len(values) // 4:  # an array of a million costs more than a few look-ups
        return np.array([values[index] for index in indices.tolist()], np.int64)
    return np.fromiter(values, np.int64, len(values))[indices]


def reads_of(dataset: Dataset, ranges: Sequence[SplitRange]) -> Reads:
    """Return the file instructions that read the ranges, in order; empty shards get no row."""
    index_of = {split.name: index for index, split in enumerate(dataset.splits)}
    pieces = [_columns(i, index_of[p.split.name], p) for i, p in enumerate(ranges)]
    if not pieces:
        pieces = [np.empty((5, 0), np.int64)]
    part, split, shard, skip, take = np.concatenate(pieces, axis=1)
    return Reads(files=dataset, part=part, split=split, shard=shard, skip=skip, take=take)


def joined(several: Sequence[Reads]) -> Reads:
    """Return the rows of several reads of the same files, one after the other."""
    if any(reads.files is not several[0].files for reads in several):
        raise ValueError("reads of different files have no rows in common")
    return Reads(
        files=several[0].files,
        part=np.concatenate([reads.part for reads in several]),
        split=np.concatenate([reads.split for reads in several]),
        shard=np.concatenate([reads.shard for reads in several]),
        skip=np.concatenate([reads.skip for reads in several]),
        take=np.concatenate([reads.take for reads in several]),
    )


def filenames_of(dataset: Dataset, split: Int64s, shard: Int64s) -> list[str]:
    """Return the base names of the files of shards, given by their indices (int64[n] each)."""
    splits = dataset.splits
    if len(shard) and (split == split[0]).all() and (np.diff(shard) == 1).all():
        # A run of shards, as all but the first of most plans are.
        return splits[int(split[0])].filenames_between(int(shard[0]), int(shard[-1]) + 1)
    places = zip(split.tolist(), shard.tolist(), strict=True)
    if len(shard) < _FEW:
        return [splits[s].filename(i) for s, i in places]
    names = {index: splits[index].filenames for index in distinct(split).tolist()}
    return [names[s][i] for s, i in places]


def _columns(part: int, split_index: int, piece: SplitRange) -> Int64s:
    # Only the offsets of the shards touched become an array: a split may have a million.
    touched = piece.shards()
    offsets = np.array(piece.split.offsets[touched.start : touched.stop + 1], np.int64)
    if not len(touched):
        return np.empty((5, 0), np.int64)
    starts = np.maximum(offsets[:-1], piece.start)
    take = np.minimum(offsets[1:], piece.stop) - starts
    rows = np.flatnonzero(take)
    shard = np.arange(touched.start, touched.stop, dtype=np.int64)[rows]
    same = np.full(len(rows), part, np.int64), np.full(len(rows), split_index, np.int64)
    return np.stack([*same, shard, (starts - offsets[:-1])[rows], take[rows]])
