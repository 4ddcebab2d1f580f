"""How much each host reads of a spec that hosts share: arrays with one value for each host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shardctl.base.arrays import EqualByItems, Int64s, distinct
from shardctl.dataset.dataset import Split
from shardctl.spec.reads import Reads, reads_of
from shardctl.spec.subsplit import SplitRange


@dataclass(frozen=True, kw_only=True, eq=False)
class HostReads(EqualByItems):
    """The hosts' shares under one host mode; each column int64[num_hosts].

    num_examples: examples a host yields.
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

        >>> from shardctl.dataset.dataset import Dataset, Split
        >>> train = Split.even(name="train", num_examples=12, num_shards=3)
        >>> whole = [SplitRange(split=train, start=0, stop=12)]
        >>> shared = SharedReads(reads_of(Dataset(name="d", splits=(train,)), whole), whole)
        >>> even = shared.evenly(2)
        >>> even.num_examples.tolist(), even.num_read.tolist(), even.num_shared_files
        ([6, 6], [6, 8], 1)
        """
        # Hosts cut the ranges before TFDS makes file instructions, so the rows are made anew from
        # these, in the order of storage, whatever the sort function does later.
        whole = reads_of(self.reads.dataset, self.ranges)
        sizes = np.array([piece.num_examples for piece in self.ranges], np.int64)
        parts = np.minimum(sizes, num_hosts)  # of each range, those that hold anything
        # int64[parts of all ranges]: which range, and below which host, each part belongs to.
        piece = np.repeat(np.arange(len(sizes)), parts)
        host = np.arange(len(piece)) - (np.cumsum(parts) - parts)[piece]
        each, remainder = np.divmod(sizes, num_hosts)  # the first hosts have one more, `even_range`
        starts = (np.cumsum(sizes) - sizes)[piece] + each[piece] * host
        starts += np.minimum(host, remainder[piece])
        # All ranges lie on one line, which is cut where a part begins and where a file does.
        files = np.cumsum(whole.take) - whole.take
        cuts = distinct(np.concatenate([starts, files]))
        # int64[cuts]: the file instruction, and below the host, in which each piece between cuts
        # lies.
        row = np.searchsorted(files, cuts, side="right") - 1
        lengths = np.diff(cuts, append=whole.num_examples)
        rows = whole.select(row).trimmed(cuts - files[row], lengths)
        owner = host[np.searchsorted(starts, cuts, side="right") - 1]
        del whole, files, cuts, row, lengths  # there may be millions
        return self.by_rows(owner, num_hosts, rows)

    def by_files(self, num_hosts: int) -> HostReads:
        """Return what hosts read that are given the rows in turn, as `instructions.shard(n, i)`.

        With fewer rows than hosts, which TFDS refuses, the last hosts read nothing.
        """
        # Each reader begins again with host 0.
        turns = [np.arange(rows) % num_hosts for rows in self._rows_of_readers]
        return self.by_rows(np.concatenate(turns), num_hosts)

    def by_all(self, num_hosts: int) -> HostReads:
        """Return what hosts read that read all rows and keep every n-th example of them."""
        one = self.by_files(1)
        stops = np.cumsum(self._rows_of_readers)
        # ceil((size - i) / n) examples for host i of each reader; `last` counts down from n - 1 for
        # that.
        sizes = [int(part.sum()) for part in np.split(self.reads.take, stops[:-1])]
        last = np.arange(num_hosts)[::-1]
        num_bytes = one.num_bytes
        # All hosts are alike: one value stands for all, in no memory.
        return HostReads(
            num_examples=sum(((size + last) // num_hosts for size in sizes), np.zeros_like(last)),
            num_read=np.broadcast_to(one.num_read, num_hosts),
            num_bytes=None if num_bytes is None else np.broadcast_to(num_bytes, num_hosts),
            num_files=np.broadcast_to(one.num_files, num_hosts),
            num_instructions=np.broadcast_to(one.num_instructions, num_hosts),
            num_shared_files=int(one.num_files[0]) if num_hosts > 1 else 0,
        )

    def by_rows(self, host: Int64s, num_hosts: int, rows: Reads | None = None) -> HostReads:
        """Return what hosts read where each row is read by `host` (int64[rows]) alone."""
        rows = self.reads if rows is None else rows
        num_rows = np.bincount(host, minlength=num_hosts)
        # A host may have one file in two rows, and two hosts may have one file.
        # A number for each file of the dataset: those of a split follow those of the split before
        # it.
        bases = np.cumsum([0, *(split.num_shards for split in rows.dataset.splits)])
        file = bases[rows.split] + rows.shard
        # Only rows whose file is in several rows need the sort below; mostly there are few.
        several = np.flatnonzero(np.bincount(file)[file] > 1)
        # Each pair of a file and a host once, packed into one int64 and sorted by file.
        opened, who = np.divmod(distinct(file[several] * num_hosts + host[several]), num_hosts)
        # Rows whose file is there once are files; the others are counted by `who` instead.
        num_files = num_rows - np.bincount(host[several], minlength=num_hosts)
        return HostReads(
            num_examples=sum_by(host, rows.take, num_hosts),
            num_read=sum_by(host, rows.skip + rows.take, num_hosts),
            num_bytes=self._bytes_of(rows, host, num_hosts),
            num_files=num_files + np.bincount(who, minlength=num_hosts),
            num_instructions=num_rows,
            # A file that comes twice here is opened by two hosts.
            num_shared_files=len(distinct(opened[1:][opened[1:] == opened[:-1]])),
        )

    def _bytes_of(self, rows: Reads, host: Int64s, num_hosts: int) -> Int64s | None:
        """Return the bytes of rows up to where each ends, None where that of a split is unknown."""
        num_bytes = np.zeros(num_hosts, np.int64)
        for index, sizes in self._sizes.items():
            here = np.flatnonzero(rows.split == index)
            split, read = rows.dataset.splits[index], (rows.skip + rows.take)[here]
            # The size of a file counts up to where the row ends: what is skipped is read, too.
            if sizes is not None:
                shard = rows.shard[here]
                of_rows = _share(sizes[shard], read, split.lengths64()[shard])
                num_bytes += sum_by(host[here], of_rows, num_hosts)
            elif split.num_bytes is None:
                return None
            else:
                # Parts that overlap read more than there is, and `_share` needs a part of a whole.
                all_read = sum_by(host[here], read, num_hosts)
                whole, rest = np.divmod(all_read, split.num_examples)
                of_rest = _share(np.int64(split.num_bytes), rest, np.int64(split.num_examples))
                num_bytes += whole * split.num_bytes + of_rest
        return num_bytes

    @cached_property
    def _sizes(self) -> dict[int, Int64s | None]:
        """The sizes of the files of each split that is read, by its index in the dataset."""
        splits = self.reads.dataset.splits
        return {index: _sizes_of(splits[index]) for index in distinct(self.reads.split).tolist()}


def sum_by(host: Int64s, values: Int64s, num_hosts: int) -> Int64s:
    """Return the sum of the values of each host, int64[num_hosts].

    >>> sum_by(np.array([0, 1, 0]), np.array([5, 3, 4]), 2).tolist()
    [9, 3]
    """
    sums = np.zeros(num_hosts, np.int64)
    np.add.at(sums, host, values)  # bincount's weights are floats
    return sums


def _sizes_of(split: Split) -> Int64s | None:
    """Return the size of each file that holds examples, int64[num_shards], None if one is unknown.

    That of the others, which are never opened, is 0.
    """
    if split.shard_bytes is None:
        return None
    pairs = zip(split.shard_bytes, split.shard_lengths, strict=True)
    sizes = [size if length else 0 for size, length in pairs]
    return None if None in sizes else np.array(sizes, np.int64)


def _share(amount: Int64s | np.int64, part: Int64s, whole: Int64s | np.int64) -> Int64s:
    """Return amount * part / whole, halves rounded up, without overflow: part is within whole."""
    # amount = quotient * whole + rest, so the float product stays below whole * part.
    quotient, rest = np.divmod(amount, whole)
    fraction = np.floor(rest.astype(np.float64) * part / whole + 0.5).astype(np.int64)
    share: Int64s = quotient * part + fraction
    return share
