"""File instructions as columns of numbers: plans over a million shards stay small and quick."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from shardctl.base import arrays
from shardctl.base.columns import Cell, Records
from shardctl.base.text import choices, quoted
from shardctl.dataset.dataset import Dataset, Split, filenames_at
from shardctl.errors import UsageError
from shardctl.spec.subsplit import FileInstruction, SplitRange


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedFiles:
    """The file of each instruction of a plan file, as it is written there.

    `lengths` (int64[n]) are the examples in each file. `shards` (int64[n]) are their indices in
    their splits, None where no two files of a split have the same base name.
    """

    split_names: tuple[str, ...]
    names: Sequence[str]
    lengths: arrays.Int64s
    shards: arrays.Int64s | None = None

    def names_at(self, places: arrays.Int64s) -> list[str]:
        """Return the names at places in any order; those of places one by one are quick."""
        run = arrays.run_of(places)
        if run is None:
            return [self.names[place] for place in places.tolist()]
        return list(self.names[run])


_OF_INSTRUCTION = [field.name for field in fields(FileInstruction)]


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
    part: arrays.Int64s
    split: arrays.Int64s
    shard: arrays.Int64s
    skip: arrays.Int64s
    take: arrays.Int64s

    def __len__(self) -> int:
        return len(self.take)

    def __iter__(self) -> Iterator[FileInstruction]:
        for filename, split, skip, take, length, first in self.records(_OF_INSTRUCTION).rows():
            yield FileInstruction(
                filename=filename,
                split=split,
                skip=skip,
                take=take,
                examples_in_shard=length,
                first_id=first,
            )

    def __eq__(self, other: object) -> bool:
        """Whether both read the same; one of them may know its files by name alone."""
        if not isinstance(other, Reads):
            return NotImplemented
        # Indices are compared only where both sides know them; names alone may still agree.
        own, others = self.shard_index, other.shard_index
        return (
            self._has_columns_of(other, "skip", "take", "examples_in_shard")
            and [*self._split_names_of_rows()] == [*other._split_names_of_rows()]
            and self.filenames() == other.filenames()
            and (own is None or others is None or np.array_equal(own, others))
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        return f"<{len(self)} file instructions, {self.num_examples} examples>"

    def reads_alike(self, other: Reads) -> bool:
        """Whether both have the same rows of the same dataset, whatever part they come from."""
        columns = ("take", "shard", "split", "skip")
        return self.files is other.files and self._has_columns_of(other, *columns)

    def _has_columns_of(self, other: Reads, *names: str) -> bool:
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

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

    @property
    def first(self) -> arrays.Int64s:
        """The id of the first example that each row reads, counted in its split, int64[n]."""
        # An id counts from the start of the split: the offset of the shard, and what is skipped of
        # it.
        first = self._of_shards(Split.offsets64)
        return first + self.skip if self.skip.any() else first

    @cached_property
    def examples_in_shard(self) -> arrays.Int64s:
        """Number of examples in the file of each row, int64[n]."""
        if isinstance(self.files, NamedFiles):
            return self.files.lengths[self.shard]
        return self._of_shards(Split.lengths64)

    @cached_property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits that `split` counts in."""
        if isinstance(self.files, NamedFiles):
            return self.files.split_names
        return tuple(split.name for split in self.files.splits)

    @property
    def shard_index(self) -> arrays.Int64s | None:
        """The index of each file in its split, None where the files' names alone are known."""
        if not isinstance(self.files, NamedFiles):
            return self.shard
        return None if self.files.shards is None else self.files.shards[self.shard]

    @cached_property
    def names_repeat(self) -> bool:
        """Whether a split that is read has two files of one base name, in several folders."""
        if isinstance(self.files, NamedFiles):
            return self.files.shards is not None
        return any(
            self.files.splits[index].names_repeat for index in arrays.distinct(self.split).tolist()
        )

    def filename(self, row: int) -> str:
        """Return the base name of the file of a row."""
        return self.filenames(row, row + 1)[0]

    def filenames(self, start: int = 0, stop: int | None = None) -> list[str]:
        """Return the base names of the files of rows [start, stop)."""
        shard = self.shard[start:stop]
        if isinstance(self.files, NamedFiles):
            return self.files.names_at(shard)
        return shard_names(self.files.splits, self.split[start:stop], shard)

    def _split_column(self) -> Cell:
        if len(self) and arrays.is_constant(self.split):
            return self.split_names[int(self.split[0])]
        return [*self._split_names_of_rows()]

    def cells(self, fields: Sequence[str]) -> list[Cell]:
        """Return fields of the rows as columns; `last_id` is the last example that is read.

        >>> train = Split.even(name="train", num_examples=10, num_shards=3)
        >>> whole = reads_of(Dataset(name="d", splits=(train,)),
        ...                  [SplitRange(split=train, start=0, stop=10)])
        >>> split, last = whole.cells(["split", "last_id"])
        >>> split, last
        ('train', array([2, 6, 9]))
        """
        return [_CELLS[field](self) for field in fields]

    def records(self, fields: Sequence[str]) -> Records:
        """Return the rows as mappings with these fields."""
        return Records(len(self), fields, lambda *rows: self.select(slice(*rows)).cells(fields))

    def select(self, rows: arrays.Int64s | slice) -> Reads:
        """Return the rows asked for, in the order asked for."""
        return replace(
            self,
            part=arrays.chosen(self.part, rows),
            split=arrays.chosen(self.split, rows),
            shard=self.shard[rows],
            skip=arrays.chosen(self.skip, rows),
            take=self.take[rows],
        )

    def trimmed(self, skip: arrays.Int64s, take: arrays.Int64s) -> Reads:
        """Return the same rows reading `take` examples after `skip` more of their own range."""
        # `take` must not exceed what the rows take; nothing checks that here.
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
        skip, take = rows.skip.copy(), rows.take.copy()  # these are slices of the columns
        cut = start - (int(self._ends[low]) - int(take[0]))
        skip[0] += cut
        take[0] -= cut
        take[-1] -= int(self._ends[high - 1]) - stop
        return replace(rows, skip=skip, take=take)

    def runs(self) -> Reads:
        """Return the rows in the order of the files, those that continue one another as one.

        Rows that read no example are left out; rows that read the same example stay two rows.
        """
        reads = self if self.take.all() else self.select(np.flatnonzero(self.take))
        if not (arrays.is_constant(reads.split) and arrays.is_ascending(reads.shard)):
            # By split, then shard, then skip: lexsort takes its first key last.
            keys = (
                reads.skip,
                reads.shard,
                *(() if arrays.is_constant(reads.split) else (reads.split,)),
            )
            reads = reads.select(np.lexsort(keys))
        # bool[rows - 1]: whether a row begins where the one before it in the same file ends.
        goes_on = reads.skip[:-1] + reads.take[:-1] == reads.skip[1:]
        goes_on &= np.diff(reads.shard) == 0
        goes_on &= np.diff(reads.split) == 0
        starts = np.concatenate([np.ones(min(1, len(reads)), bool), ~goes_on])
        if starts.all():
            return reads
        first = np.flatnonzero(starts)
        part, split, skip = (arrays.chosen(c, first) for c in (reads.part, reads.split, reads.skip))
        # Sums between consecutive starts: one for each run.
        take = np.add.reduceat(reads.take, first)
        del first  # as long as a column: the last one goes without it
        shard = reads.shard[starts]
        return Reads(files=reads.files, part=part, split=split, shard=shard, skip=skip, take=take)

    @cached_property
    def _ends(self) -> arrays.Int64s:
        return np.cumsum(self.take)

    def _split_names_of_rows(self) -> Iterator[str]:
        names = self.split_names
        return (names[index] for index in self.split.tolist())

    def _of_shards(self, values_of: Callable[[Split], arrays.Int64s]) -> arrays.Int64s:
        """Return the value of the file of each row, int64[n], of one a shard in each split."""
        splits, used = self.dataset.splits, arrays.distinct(self.split).tolist()
        if len(used) == 1:
            # A run of shards, as all but the first of most plans are, is a piece of the values.
            run = arrays.run_of(self.shard)
            return values_of(splits[used[0]])[self.shard if run is None else run]
        found = np.empty(len(self), np.int64)
        for index in used:
            here = np.flatnonzero(self.split == index)
            found[here] = values_of(splits[index])[self.shard[here]]
        return found


_CELLS: dict[str, Callable[[Reads], Cell]] = {
    "filename": Reads.filenames,
    "split": Reads._split_column,
    "skip": lambda reads: reads.skip,
    "take": lambda reads: reads.take,
    "examples_in_shard": lambda reads: reads.examples_in_shard,
    "first_id": lambda reads: reads.first,
    "shard_index": lambda reads: reads.shard_index,
    "last_id": lambda reads: reads.first + (reads.take - 1),
}


def reads_of(dataset: Dataset, ranges: Sequence[SplitRange]) -> Reads:
    """Return the file instructions that read the ranges, in order; empty shards get no row."""
    # Splits are found by name, since a Split does not know where in its dataset it is.
    index_of = {split.name: index for index, split in enumerate(dataset.splits)}
    several = [
        _of_range(dataset, part, index_of[piece.split.name], piece)
        for part, piece in enumerate(ranges)
    ]
    if several:
        return joined(several)
    none = np.empty(0, np.int64)
    return Reads(files=dataset, part=none, split=none, shard=none, skip=none, take=none)


def joined(several: Sequence[Reads]) -> Reads:
    """Return the rows of several reads of the same files, one after the other."""
    if any(reads.files is not several[0].files for reads in several):
        raise ValueError("reads of different files have no rows in common")
    if len(several) == 1:
        return several[0]
    names = ("part", "split", "shard", "skip", "take")
    columns = {name: [getattr(reads, name) for reads in several] for name in names}
    # Of one range, part and split are views of a single number; joined they may stay so.
    joined = {name: arrays.joined_constants(columns.pop(name)) for name in ("part", "split")}
    joined |= {name: np.concatenate(each) for name, each in columns.items()}
    return Reads(files=several[0].files, **joined)


def _of_range(dataset: Dataset, part: int, split_index: int, piece: SplitRange) -> Reads:
    # Empty shards between are among `touched`; the last line drops them.
    touched = piece.shards()
    run = slice(touched.start, touched.stop)
    take, skip = piece.split.lengths64()[run], np.zeros(len(touched), np.int64)
    if len(touched):
        # Only the first and the last file can be read in part.
        offsets = piece.split.offsets
        skip[0] = piece.start - offsets[touched.start]
        beyond = offsets[touched.stop] - piece.stop
        if skip[0] or beyond:
            take = take.copy()
            take[0] -= skip[0]
            take[-1] -= beyond
    reads = Reads(
        files=dataset,
        part=arrays.constant(part, len(touched)),
        split=arrays.constant(split_index, len(touched)),
        shard=np.arange(touched.start, touched.stop),
        skip=skip,
        take=take,
    )
    return reads if take.all() else reads.select(np.flatnonzero(take))


def shard_names(splits: Sequence[Split], split: arrays.Int64s, shard: arrays.Int64s) -> list[str]:
    r"""Return the base names of the files of shards, given by their indices (int64[n] each).

    >>> from shardctl.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-\0", num_shards=2)
    >>> train = Split(name="train", shard_lengths=(2, 1), files=(files,))
    >>> shard_names([train], np.array([0, 0]), np.array([1, 0]))
    ['d-00001', 'd-00000']
    """
    used, run = arrays.distinct(split), arrays.run_of(shard)
    if len(used) == 1 and run is not None:
        return splits[int(used[0])].filenames_between(run.start, run.stop)
    named = [splits[index] for index in used.tolist()]
    # Each file is named once, however many examples of it there are.
    # A number for each file of the splits that are used, so that one sort finds the distinct ones.
    starts = np.cumsum([0, *(each.num_shards for each in named)])
    places = starts[used.searchsorted(split)] + shard
    needed = arrays.distinct(places)
    # Where in `needed` the files of each split begin.
    cuts = needed.searchsorted(starts)
    names: list[str] = []
    for index, each in enumerate(named):
        own = needed[cuts[index] : cuts[index + 1]] - starts[index]
        run = arrays.run_of(own)
        if run is None:
            names += filenames_at(each, own.tolist())
        else:
            names += each.filenames_between(run.start, run.stop)
    return list(map(names.__getitem__, needed.searchsorted(places).tolist()))


# Sort functions: the order in which the reader gets the file instructions.


def sorted_rows(
    reads: Reads, *, reverse: bool = False, file_order: tuple[str, ...] | None = None
) -> Reads:
    """Return the rows back to front, or in the order of a list of files, or as they are.

    This is what `ReadConfig.experimental_interleave_sort_fn` does to the list of file
    instructions. Rows of one file keep their order; the list may name more files of the dataset
    than are read, and must name every file that is. A name is a base name or the end of a path.

    Raises:
        UsageError: a name twice, a name of no file or of several, a file left out.
    """
    if reverse:
        return reads.select(slice(None, None, -1))
    if file_order is None:
        return reads
    starts = np.cumsum([0, *(split.num_shards for split in reads.dataset.splits)])
    row_places: arrays.Int64s = starts[reads.split] + reads.shard
    # int64[rows]: which line of the list names the file of each row.
    keys = _ranks(file_order, reads, row_places)[row_places]
    missing = np.flatnonzero(keys < 0)
    if missing.size:
        # From the last row to the first, so that the first row of each file stays.
        first = {int(row_places[row]): row for row in missing[::-1].tolist()}  # of each file
        left_out = map(reads.filename, sorted(first.values()))
        raise UsageError(
            f"the file order leaves out {choices(left_out, 3)}; every file that is read needs "
            "a place"
        )
    # Which row each name stands for. If files come once, this sorts the rows without comparing.
    row_named = np.full(len(file_order), -1)
    row_named[keys] = np.arange(len(keys))
    rows = row_named[row_named >= 0]
    several = len(rows) < len(keys)  # of one file
    return reads.select(np.argsort(keys, kind="stable") if several else rows)


def _ranks(names: Sequence[str], reads: Reads, row_places: arrays.Int64s) -> arrays.Int64s:
    """Return which name stands for each file of the dataset, -1 for none.

    A file's place counts all files; `row_places` are those of the rows.

    Raises:
        UsageError: a name of no file or of several, or of one that has been named.
    """
    bases = [base for split in reads.dataset.splits if split.files for base in split.filenames]
    # Of files with one base name in several folders the last; `several` below has the others.
    last = {base: place for place, base in enumerate(bases)}
    found = [last.get(name.rpartition("/")[2], -1) for name in names]
    # The quick way, where every base name is there once and is named once. What follows finds out
    # which rule is broken, or what the end of a path means.
    if found and len(last) == len(bases) and min(found) >= 0 and len(set(found)) == len(found):
        quick = np.full(len(bases), -1)
        quick[found] = np.arange(len(found))
        return quick
    several: dict[str, list[int]] = defaultdict(list)
    for at, base in enumerate(bases):
        if last[base] != at:
            several[base].append(at)
    ranks, read = [-1] * len(bases), set[int]()
    for index, name in enumerate(names):
        base = name.rpartition("/")[2]
        place = last.get(base)
        if place is None:
            raise UsageError(
                f"the file order names {quoted(name)}, which is not a file of "
                f"{reads.dataset.title}; it has, for one, {choices(sorted(last), 1)}"
            )
        if base in several:
            read = read or set(row_places.tolist())
            chosen = _chosen(name, [*several[base], place], reads)
            # Still several: those that are read at all decide.
            chosen = chosen if len(chosen) == 1 else [place for place in chosen if place in read]
            if len(chosen) > 1:
                raise UsageError(
                    f"the file order: {quoted(name)} stands for {len(chosen)} files in several "
                    "folders; write the end of the path, as in the tfds_id"
                )
            if not chosen:  # of several files, none of which is read
                continue
            (place,) = chosen
        if ranks[place] >= 0:
            raise UsageError(f"the file order names {quoted(base)} twice; each file comes once")
        ranks[place] = index
    return np.array(ranks, np.int64)


def _chosen(name: str, places: list[int], reads: Reads) -> list[int]:
    """Return those of several files whose paths end as a name says, all of them if none does."""
    parts = [part for split in reads.dataset.splits for part in split.files]
    starts = np.cumsum([0, *map(len, parts)])
    found = []
    for place in places:
        number = int(np.searchsorted(starts, place, side="right")) - 1
        path = f"{parts[number].data_dir}/{parts[number][place - int(starts[number])]}"
        if path.endswith(f"/{name.strip('/')}"):
            found.append(place)
    return found or places
