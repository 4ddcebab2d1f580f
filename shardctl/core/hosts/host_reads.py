"""What every host reads of a spec split among hosts: a column a quantity, a value a host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardctl.core.arrays import EqualByItems, Int64s, distinct, is_constant, last_not_above
from shardctl.core.dataset.dataset import Split
from shardctl.core.instructions.reads import Reads
from shardctl.core.instructions.split_range import SplitRange

_WIDTH = 1 << 10  # numbers that are added up side by side; of fewer each row costs a loop
_PIECE = 1 << 18  # parts of ranges that are cut at once


@dataclass(frozen=True, kw_only=True, eq=False)
class HostReads(EqualByItems):
    """The hosts' shares under one host mode; each column int64[num_hosts].

    num_examples: examples a host hands out.
    num_read: examples it takes from disk for that. A file is read from its start, so what an
        instruction skips is read as well (`tf.data` skips by reading), and `ds.shard` reads all.
    num_bytes: bytes of these, None where the sizes of the files are unknown.
    num_files: different files it opens.
    num_instructions: file instructions it is given.
    num_shared_files: files that more than one host opens.
    """

    num_examples: Int64s
    num_read: Int64s
    num_bytes: Int64s | None
    num_files: Int64s
    num_instructions: Int64s
    num_shared_files: int


class SharedReads:
    """The file instructions of some ranges, to be shared among any number of hosts.

    What is the same for every number of hosts is found once; then even splits take a search a
    host, and files that are given out in turn a sum over the rows.

    rows_of_readers: how many of the rows each of several readers has, which hosts share one by one;
        all are of one reader where there are none.
    """

    def __init__(
        self, reads: Reads, ranges: Sequence[SplitRange] = (), rows_of_readers: Sequence[int] = ()
    ) -> None:
        self.reads = reads
        self.ranges = ranges
        self._rows_of_readers = rows_of_readers or (len(reads),)

    @cached_property
    def num_examples(self) -> int:
        """Number of examples that are shared."""
        return self.reads.num_examples

    def evenly(self, num_hosts: int) -> HostReads:
        """Return what hosts read of the ranges, each of which `tfds.even_splits` splits among them.

        >>> from shardctl.core.dataset.dataset import Dataset, Split
        >>> from shardctl.core.instructions.reads import reads_of
        >>> train = Split.even(name="train", num_examples=12, num_shards=3)
        >>> whole = [SplitRange(split=train, start=0, stop=12)]
        >>> shared = SharedReads(reads_of(Dataset(name="d", splits=(train,)), whole), whole)
        >>> even = shared.evenly(2)
        >>> even.num_examples.tolist(), even.num_read.tolist(), even.num_shared_files
        ([6, 6], [6, 8], 1)
        """
        num_examples, num_read, num_bytes, num_instructions = np.zeros((4, num_hosts), np.int64)
        opened = [(_NONE, _NONE, _NONE)]  # host, first file, the one behind the last
        for files, starts, stops in self._ranges_of_splits:
            read_of_split = np.zeros(num_hosts, np.int64)
            step = max(1, _PIECE // num_hosts)
            for at in range(0, len(starts), step):
                bounds = even_bounds(starts[at : at + step], stops[at : at + step], num_hosts)
                part, host = np.nonzero(bounds[:, :-1] < bounds[:, 1:])
                start, stop = bounds[part, host], bounds[part, host + 1]
                first, last = files.shards_of(start), files.shards_of(stop - 1)
                low, high = files.numbers_of(first), files.numbers_of(last) + 1
                opened.append((host, low, high))
                np.add.at(num_examples, host, stop - start)
                np.add.at(read_of_split, host, stop - files.offsets[first])
                np.add.at(num_instructions, host, high - low)
                if files.sizes is not None:
                    np.add.at(num_bytes, host, files.bytes_between(first, last, stop))
            num_read += read_of_split
            if files.sizes is None and files.knows_bytes:
                num_bytes += files.stated_bytes(read_of_split)
        num_files = num_instructions
        host, low, high = (np.concatenate(columns) for columns in zip(*opened, strict=True))
        if self._reads_a_split_twice:
            host, low, high = _each_once(host, low, high)
            num_files = _sum_by(host, high - low, num_hosts)
        return HostReads(
            num_examples=num_examples,
            num_read=num_read,
            num_bytes=num_bytes if self._knows_bytes else None,
            num_files=num_files,
            num_instructions=num_instructions,
            num_shared_files=_num_in_several(low, high),
        )

    def by_files(self, num_hosts: int) -> HostReads:
        """Return what hosts read that are given the rows in turn, as `instructions.shard(n, i)`.

        With fewer rows than hosts, which TFDS refuses, the last hosts read nothing.
        """
        if len(self._rows_of_readers) > 1:
            turns = [np.arange(rows) % num_hosts for rows in self._rows_of_readers]
            return self.by_rows(np.concatenate(turns), num_hosts)
        return self._of_rows(
            num_hosts,
            hosts_of=lambda rows: rows % num_hosts,
            num_rows=(len(self.reads) + np.arange(num_hosts)[::-1]) // num_hosts,
            summed=lambda column: sums_in_turn(column, num_hosts),
        )

    def by_rows(self, host: Int64s, num_hosts: int) -> HostReads:
        """Return what hosts read where each row is read by `host` (int64[rows]) alone."""
        return self._of_rows(
            num_hosts,
            hosts_of=lambda rows: host[rows],
            num_rows=np.bincount(host, minlength=num_hosts),
            summed=lambda column: _sum_by(host, column, num_hosts),
        )

    def by_all(self, num_hosts: int) -> HostReads:
        """Return what hosts read that read all rows and keep every n-th example of them."""
        one = self._by_one
        last = np.arange(num_hosts)[::-1]
        none = np.zeros_like(last)
        kept: Int64s = sum(((size + last) // num_hosts for size in self._sizes_of_readers), none)
        num_bytes = one.num_bytes
        # All hosts are alike: one value stands for all, in no memory.
        return HostReads(
            num_examples=kept,
            num_read=np.broadcast_to(one.num_read, num_hosts),
            num_bytes=None if num_bytes is None else np.broadcast_to(num_bytes, num_hosts),
            num_files=np.broadcast_to(one.num_files, num_hosts),
            num_instructions=np.broadcast_to(one.num_instructions, num_hosts),
            num_shared_files=int(one.num_files[0]) if num_hosts > 1 else 0,
        )

    def _of_rows(
        self,
        num_hosts: int,
        *,
        hosts_of: Callable[[Int64s], Int64s],
        num_rows: Int64s,
        summed: Callable[[Int64s], Int64s],
    ) -> HostReads:
        """Return what hosts read of rows that belong to one of them each.

        `hosts_of` says whose some rows are, `num_rows` how many each has, and `summed` adds up a
        column by the hosts of its rows.
        """
        num_examples = summed(self.reads.take)
        num_read = num_examples.copy()
        np.add.at(num_read, hosts_of(self._skipping), self.reads.skip[self._skipping])
        num_bytes = np.zeros(num_hosts, np.int64)
        if self._sized is not None:
            num_bytes += summed(self._sized)
        for files, column in self._stated:
            num_bytes += files.stated_bytes(num_read if column is None else summed(column))
        # A host may have one file in two rows, and two hosts may have one file.
        rows, file = self._of_repeated_files
        hosts = hosts_of(rows)
        num_files, num_shared = num_rows, 0
        if len(rows):
            different = distinct(file * num_hosts + hosts)
            several, hosts_once = np.divmod(different, num_hosts)
            num_files = num_rows - np.bincount(hosts, minlength=num_hosts)
            num_files += np.bincount(hosts_once, minlength=num_hosts)
            num_shared = len(distinct(several[1:][several[1:] == several[:-1]]))
        return HostReads(
            num_examples=num_examples,
            num_read=num_read,
            num_bytes=num_bytes if self._knows_bytes else None,
            num_files=num_files,
            num_instructions=num_rows,
            num_shared_files=num_shared,
        )

    @cached_property
    def _sizes_of_readers(self) -> list[int]:
        stops = np.cumsum(self._rows_of_readers)
        return [int(part.sum()) for part in np.split(self.reads.take, stops[:-1])]

    @cached_property
    def _by_one(self) -> HostReads:
        return self.by_files(1)

    @cached_property
    def _files(self) -> dict[int, SplitFiles]:
        """The files of each split that is read, by its index in the dataset."""
        files: dict[int, SplitFiles] = {}
        base = 0
        for index in distinct(self.reads.split).tolist():
            files[index] = SplitFiles(self.reads.dataset.splits[index], base)
            base += files[index].num_files
        return files

    @cached_property
    def _ranges_of_splits(self) -> list[tuple[SplitFiles, Int64s, Int64s]]:
        """The files of each split that is read, and the starts and stops of its ranges."""
        found = []
        for files in self._files.values():
            own = [piece for piece in self.ranges if piece.split.name == files.split.name]
            starts, stops = ([getattr(piece, end) for piece in own] for end in ("start", "stop"))
            found.append((files, np.array(starts, np.int64), np.array(stops, np.int64)))
        return found

    @cached_property
    def _reads_a_split_twice(self) -> bool:
        return any(len(starts) > 1 for _, starts, _ in self._ranges_of_splits)

    @cached_property
    def _knows_bytes(self) -> bool:
        return all(files.knows_bytes for files in self._files.values())

    @cached_property
    def _skipping(self) -> Int64s:
        """The rows that do not begin with their file."""
        return _NONE if is_constant(self.reads.skip) else np.flatnonzero(self.reads.skip)

    @cached_property
    def _sized(self) -> Int64s | None:
        """The bytes that each row reads of a file whose size is known, None where none is."""
        if all(files.sizes is None for files in self._files.values()):
            return None
        num_bytes = np.zeros(len(self.reads), np.int64)
        for index, files in self._files.items():
            if files.sizes is not None:
                here = np.flatnonzero(self.reads.split == index)
                own = self.reads.select(here)
                num_bytes[here] = files.bytes_of(own.shard, own.skip + own.take)
        return num_bytes

    @cached_property
    def _stated(self) -> list[tuple[SplitFiles, Int64s | None]]:
        """The splits whose bytes are stated as a whole, and what each row reads of them.

        None where all that is read is of the one split.
        """
        reads = self.reads
        return [
            (
                files,
                None
                if len(self._files) == 1
                else np.where(reads.split == index, reads.skip + reads.take, 0),
            )
            for index, files in self._files.items()
            if files.sizes is None and files.knows_bytes
        ]

    @cached_property
    def _of_repeated_files(self) -> tuple[Int64s, Int64s]:
        """The rows of files that are in several rows, and a number of the file of each."""
        reads = self.reads
        bases = np.cumsum([0, *(split.num_shards for split in reads.dataset.splits)])
        file = bases[reads.split] + reads.shard
        rows = np.flatnonzero(np.bincount(file)[file] > 1)
        return rows, file[rows]


_NONE = np.empty(0, np.int64)


def sums_in_turn(column: Int64s, num_hosts: int) -> Int64s:
    """Return the sums (int64[num_hosts]) of hosts that are given numbers in turn.

    >>> sums_in_turn(np.array([5, 3, 4]), 2).tolist()
    [9, 3]
    """
    width = num_hosts * max(1, _WIDTH // num_hosts)
    whole = len(column) // width * width
    sums = column[:whole].reshape(-1, width).sum(axis=0)
    sums[: len(column) - whole] += column[whole:]
    by_host: Int64s = sums.reshape(-1, num_hosts).sum(axis=0)
    return by_host


def even_bounds(starts: Int64s, stops: Int64s, num_hosts: int) -> Int64s:
    """Return where each host's part of ranges begins and the last ends, int64[q, num_hosts + 1].

    The columns of `even_range`, without a dropped remainder.

    >>> even_bounds(np.array([0, 7]), np.array([11, 9]), 3).tolist()
    [[0, 4, 8, 11], [7, 8, 9, 9]]
    """
    sizes = stops - starts
    each: Int64s = sizes // num_hosts
    remainder: Int64s = sizes % num_hosts
    index: Int64s = np.arange(num_hosts + 1, dtype=np.int64)
    bounds: Int64s = np.minimum(index, remainder[:, None])  # one more for each of the first
    bounds += starts[:, None] + each[:, None] * index
    return bounds


def _sum_by(host: Int64s, values: Int64s, num_hosts: int) -> Int64s:
    sums = np.zeros(num_hosts, np.int64)
    np.add.at(sums, host, values)  # bincount's weights are floats
    return sums


def _each_once(host: Int64s, low: Int64s, high: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Return runs of files [low, high) of hosts, int64[q] each, cut so that those of one differ."""
    # The hosts' files are laid out on one line, where the runs of a host end before the next one's.
    begin = host * int(high.max(initial=0))
    order = np.argsort(begin + low, kind="stable")
    host, begin, low, high = host[order], begin[order], low[order], high[order]
    covered = np.maximum.accumulate(begin + high)
    low[1:] = np.maximum(low[1:], covered[:-1] - begin[1:])
    kept = low < high
    return host[kept], low[kept], high[kept]


def _num_in_several(low: Int64s, high: Int64s) -> int:
    """Return how many whole numbers are in more than one of the runs [low, high), int64[q]."""
    ends = np.concatenate([low, high])
    order = np.argsort(ends, kind="stable")
    inside = np.cumsum(np.where(order < len(low), 1, -1))
    return int(np.diff(ends[order])[inside[:-1] > 1].sum())


# The files of one split as hosts meet them: which hold what, and bytes of what is read.


class SplitFiles:
    """The files of a split: which holds an example, how many hold any, what reading them takes.

    `base` is the number of the split's first file among the files with examples of all splits.
    """

    def __init__(self, split: Split, base: int = 0) -> None:
        self.split = split
        self.offsets = split.offsets64()
        self._base = base

    @property
    def num_files(self) -> int:
        """Number of files with examples."""
        return self.split.num_shards - self.split.num_empty_shards

    @property
    def knows_bytes(self) -> bool:
        """Whether it is known how many bytes are read."""
        return self.split.num_bytes is not None or self.sizes is not None

    def shards_of(self, ids: Int64s) -> Int64s:
        """Return the shards that hold examples, int64[q] each."""
        return last_not_above(self.offsets, ids)

    def numbers_of(self, shards: Int64s) -> Int64s:
        """Return the numbers of files with examples, int64[q] each, counted over all splits."""
        return self._base + (shards if self._ranks is None else self._ranks[shards])

    @cached_property
    def sizes(self) -> Int64s | None:
        """The size of each file that holds examples, int64[num_shards], None where one is unknown.

        That of the others, which nobody opens, is 0.
        """
        split = self.split
        if split.shard_bytes is None:
            return None
        pairs = zip(split.shard_bytes, split.shard_lengths, strict=True)
        sizes = [size if length else 0 for size, length in pairs]
        return None if None in sizes else np.array(sizes, np.int64)

    def bytes_of(self, shards: Int64s, num_read: Int64s) -> Int64s:
        """Return the bytes of the first so many examples of files whose sizes are known."""
        assert self.sizes is not None
        return _share(self.sizes[shards], num_read, self.split.lengths64()[shards])

    def bytes_between(self, first: Int64s, last: Int64s, stop: Int64s) -> Int64s:
        """Return the bytes of files [first, last], each whole but for the last, read up to `stop`.

        `stop` is the id behind the last example; int64[q] each.
        """
        whole = self._sums[last] - self._sums[first]
        return whole + self.bytes_of(last, stop - self.offsets[last])

    def stated_bytes(self, num_read: Int64s) -> Int64s:
        """Return the bytes of so many examples, by what the metadata states for the split."""
        assert self.split.num_bytes is not None
        # Parts that overlap read more than there is, and `_share` needs a part of a whole.
        whole, rest = np.divmod(num_read, self.split.num_examples)
        of_rest = _share(np.int64(self.split.num_bytes), rest, np.int64(self.split.num_examples))
        return whole * self.split.num_bytes + of_rest

    @cached_property
    def _ranks(self) -> Int64s | None:
        """How many files before each hold examples, None where all do."""
        if not self.split.num_empty_shards:
            return None
        return np.cumsum(self.split.lengths64() > 0) - 1

    @cached_property
    def _sums(self) -> Int64s:
        """The bytes of the files before each, int64[num_shards]; as all sums, modulo 2**64."""
        assert self.sizes is not None
        return np.cumsum(self.sizes) - self.sizes


def _share(amount: Int64s | np.int64, part: Int64s, whole: Int64s | np.int64) -> Int64s:
    """Return amount * part / whole, halves rounded up, without overflow: part is within whole."""
    quotient, rest = np.divmod(amount, whole)
    fraction = np.floor(rest.astype(np.float64) * part / whole + 0.5).astype(np.int64)
    share: Int64s = quotient * part + fraction
    return share
