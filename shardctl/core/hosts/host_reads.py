"""What every host reads of a spec split among hosts: a column a quantity, a value a host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import EqualByItems, Int64s
from shardctl.core.dataset.dataset import Split
from shardctl.core.instructions.reads import Reads, joined
from shardctl.core.instructions.split_range import SplitRange


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


def reads_of_even_splits(reads: Reads, ranges: Sequence[SplitRange], num_hosts: int) -> HostReads:
    """Return what hosts read of the ranges, each of which `tfds.even_splits` splits among them.

    >>> from shardctl.core.dataset.dataset import Dataset
    >>> from shardctl.core.instructions.reads import reads_of
    >>> train = Split.even(name="train", num_examples=12, num_shards=3)
    >>> whole = [SplitRange(split=train, start=0, stop=12)]
    >>> reads = reads_of(Dataset(name="d", splits=(train,)), whole)
    >>> even = reads_of_even_splits(reads, whole, 2)
    >>> even.num_examples.tolist(), even.num_read.tolist(), even.num_shared_files
    ([6, 6], [6, 8], 1)
    """
    return reads_of_rows(*_evenly_split(reads, ranges, num_hosts), num_hosts)


def reads_by_files(reads: Reads, num_hosts: int) -> HostReads:
    """Return what hosts read that are given the rows in turn, as `instructions.shard(n, i)` does.

    With fewer rows than hosts, which TFDS refuses, the last hosts read nothing.
    """
    return reads_of_rows(reads, np.arange(len(reads), dtype=np.int64) % num_hosts, num_hosts)


def reads_of_rows(reads: Reads, host: Int64s, num_hosts: int) -> HostReads:
    """Return what hosts read where each row is read by `host` (int64[rows]) alone."""
    hosts, files = host, _file_numbers(reads)
    if _reads_a_split_twice(reads):  # then a host may have one file in two instructions
        num_files_in_all = int(files.max()) + 1
        distinct = np.unique(hosts * num_files_in_all + files)
        hosts, files = distinct // num_files_in_all, distinct % num_files_in_all
    return HostReads(
        num_examples=_sum_by(host, reads.take, num_hosts),
        num_read=_sum_by(host, reads.skip + reads.take, num_hosts),
        num_bytes=_num_bytes(reads, host, num_hosts),
        num_files=np.bincount(hosts, minlength=num_hosts),
        num_instructions=np.bincount(host, minlength=num_hosts),
        num_shared_files=int((np.bincount(files) > 1).sum()) if len(files) else 0,
    )


def num_examples_by_files(take: Int64s, num_hosts: int) -> Int64s:
    """Return how many examples hosts get (int64[num_hosts]) that are given the rows in turn.

    >>> num_examples_by_files(np.array([5, 3, 4]), 2).tolist()
    [9, 3]
    """
    rounds = np.pad(take, (0, -len(take) % num_hosts)).reshape(-1, num_hosts)  # a file a host
    num_examples: Int64s = rounds.sum(axis=0)
    return num_examples


def reads_of_all(reads: Reads, num_hosts: int) -> HostReads:
    """Return what hosts read that read all rows and keep every n-th example of them."""
    one = reads_of_rows(reads, np.zeros(len(reads), np.int64), 1)
    kept = (reads.num_examples - np.arange(num_hosts) + num_hosts - 1) // num_hosts
    num_bytes = one.num_bytes
    # All hosts are alike: one value stands for all, in no memory.
    return HostReads(
        num_examples=np.maximum(kept, 0),
        num_read=np.broadcast_to(one.num_read, num_hosts),
        num_bytes=None if num_bytes is None else np.broadcast_to(num_bytes, num_hosts),
        num_files=np.broadcast_to(one.num_files, num_hosts),
        num_instructions=np.broadcast_to(one.num_instructions, num_hosts),
        num_shared_files=int(one.num_files[0]) if num_hosts > 1 else 0,
    )


def even_bounds(piece: SplitRange, num_hosts: int) -> Int64s:
    """Return where each host's part of a range begins and the last ends, int64[num_hosts + 1].

    The columns of `even_range`, without a dropped remainder.

    >>> train = Split.even(name="train", num_examples=11, num_shards=1)
    >>> even_bounds(SplitRange(split=train, start=0, stop=11), 3).tolist()
    [0, 4, 8, 11]
    """
    each, remainder = divmod(piece.num_examples, num_hosts)
    index = np.arange(num_hosts + 1, dtype=np.int64)
    return piece.start + each * index + np.minimum(index, remainder)


def _evenly_split(
    reads: Reads, ranges: Sequence[SplitRange], num_hosts: int
) -> tuple[Reads, Int64s]:
    """Return rows cut where one host's part ends and the next begins, and the host of each."""
    pieces, hosts = [reads.select(slice(0, 0))], [np.empty(0, np.int64)]
    for part, piece in enumerate(ranges):
        rows = np.flatnonzero(reads.part == part)
        if not len(rows):
            continue
        first = reads.first[rows]
        ascending = np.argsort(first)  # a sort function may have moved them
        rows, first = rows[ascending], first[ascending]
        last = first + reads.take[rows]
        bounds = even_bounds(piece, num_hosts)
        start, stop = bounds[:-1], bounds[1:]
        begin = np.searchsorted(last, start, side="right")
        count = np.where(stop > start, np.searchsorted(first, stop, side="left") - begin, 0)
        host = np.repeat(np.arange(num_hosts, dtype=np.int64), count)
        row = np.arange(len(host)) + np.repeat(begin - np.cumsum(count) + count, count)
        start = np.maximum(start[host], first[row])
        take = np.minimum(stop[host], last[row]) - start
        pieces.append(reads.select(rows[row]).trimmed(start - first[row], take))
        hosts.append(host)
    return joined(pieces), np.concatenate(hosts)


def _reads_a_split_twice(reads: Reads) -> bool:
    _, rows = np.unique(reads.part, return_index=True)
    return len(np.unique(reads.split[rows])) < len(rows)


def _file_numbers(reads: Reads) -> Int64s:
    bases = np.cumsum([0, *(split.num_shards for split in reads.dataset.splits)])
    numbers: Int64s = bases[reads.split] + reads.shard
    return numbers


def _sum_by(host: Int64s, values: Int64s, num_hosts: int) -> Int64s:
    sums = np.zeros(num_hosts, np.int64)
    np.add.at(sums, host, values)  # bincount's weights are floats
    return sums


def _num_bytes(reads: Reads, host: Int64s, num_hosts: int) -> Int64s | None:
    """Return the bytes each host reads, int64[num_hosts].

    A file counts by the share of its examples that is read: of its size where every file of the
    split that holds examples is here, else of the bytes that the metadata states for the split.
    """
    total = np.zeros(num_hosts, np.int64)
    for index in np.unique(reads.split).tolist():
        split = reads.dataset.splits[index]
        here = reads.split == index
        hosts, num_read = host[here], (reads.skip + reads.take)[here]
        sizes = _disk_sizes(split)
        if sizes is not None:
            shard = reads.shard[here]
            lengths = np.array(split.shard_lengths, np.int64)
            total += _sum_by(hosts, _share(sizes[shard], num_read, lengths[shard]), num_hosts)
        elif split.num_bytes is not None:
            of_split = _sum_by(hosts, num_read, num_hosts)
            examples = np.full(num_hosts, split.num_examples)
            # Parts that overlap read more than there is, and `_share` needs a part of a whole.
            whole, rest = np.divmod(of_split, split.num_examples)
            num_bytes = np.full(num_hosts, split.num_bytes)
            total += whole * split.num_bytes + _share(num_bytes, rest, examples)
        else:
            return None
    return total


def _disk_sizes(split: Split) -> Int64s | None:
    if split.shard_bytes is None:
        return None
    pairs = zip(split.shard_bytes, split.shard_lengths, strict=True)
    if any(size is None and length for size, length in pairs):
        return None
    return np.array([size or 0 for size in split.shard_bytes], np.int64)


def _share(amount: Int64s, part: Int64s, whole: Int64s) -> Int64s:
    """Return amount * part / whole, halves rounded up, without overflow: part is within whole."""
    quotient, rest = np.divmod(amount, whole)
    fraction = np.floor(rest.astype(np.float64) * part / whole + 0.5).astype(np.int64)
    share: Int64s = quotient * part + fraction
    return share
