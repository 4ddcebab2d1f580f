"""The file instructions of one host, sorted, and which of them reads an example."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from shardctl.base.arrays import Int64s, distinct, is_ascending, is_constant
from shardctl.base.text import counted, quoted
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.reads import Reads, reads_of, sorted_rows
from shardctl.spec.subsplit import SplitRange


def sorted_reads(dataset: Dataset, ranges: Sequence[SplitRange], settings: ReadSettings) -> Reads:
    """Return what TFDS's reader is given, sorted: the host's part of an even split, else all.

    Hosts of `InputContext` are given the same files, and take theirs in `own_rows`.
    """
    reads = reads_of(dataset, settings.host_mode.ranges(ranges, settings.host))
    return sorted_rows(reads, reverse=settings.reverse, file_order=settings.file_order)


def own_rows(reads: Reads, settings: ReadSettings) -> Reads:
    """Return what the host reads of its sorted file instructions: all, or every n-th by files.

    Raises:
        UsageError: fewer file instructions than hosts of `InputContext`, which TFDS refuses.
    """
    host, mode = settings.host, settings.host_mode
    if host is None:
        return reads
    if mode.refuses_files(len(reads), host.count):
        raise UsageError(
            f"--host '{host}' by {mode.word}: {len(reads)} file instructions for {host.count} "
            "hosts, TFDS needs one a host at least; split examples with --host-by even"
        )
    own = mode.own_instructions(len(reads), host)
    if own == slice(None):
        return reads
    # Rows and not a slice, which would keep the rows of all hosts in memory.
    return reads.select(np.arange(*own.indices(len(reads))))


class RowLookup:
    """Which rows read an example; a sum that overlaps has several for one.

    `first_codes` (int64[rows]) is the code of the first example that each row reads.
    """

    def __init__(self, reads: Reads, first_codes: Int64s) -> None:
        self._take = reads.take
        self._first_codes = first_codes
        # Within a part of the spec no two rows read the same example.
        self._parts: list[tuple[Int64s | None, Int64s]] = []
        if (len(reads) == 1 or is_constant(reads.part)) and is_ascending(first_codes):
            self._parts.append((None, first_codes))  # every row, as it is
            return
        for part in distinct(reads.part).tolist():
            rows = np.flatnonzero(reads.part == part)
            rows = rows[np.argsort(first_codes[rows])]
            self._parts.append((rows, first_codes[rows]))

    def rows_of(self, codes: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Return (which query, row, offset in what the row reads), int64[r] each, for codes."""
        found = [np.empty((3, 0), np.int64)]
        for rows, starts in self._parts:
            # Only the last row that begins at or before a code can read it; -1 where none does.
            place = np.searchsorted(starts, codes, side="right") - 1
            row = np.maximum(place, 0)
            if rows is not None:
                row = rows[row]
            offset = codes - self._first_codes[row]
            inside = np.flatnonzero((place >= 0) & (offset < self._take[row]))
            found.append(np.stack([inside, row[inside], offset[inside]]))
        query, row, offset = np.concatenate(found, axis=1)
        return query, row, offset


# Do `tf.data.Dataset.list_files` and the reader of TFDS come to one order over counted files?


def listing_warnings(
    dataset: Dataset, ranges: Iterable[SplitRange], settings: ReadSettings
) -> Iterator[str]:
    """Yield where a script that lists the files of a dataset reads them in another order.

    Files without metadata are mostly read so, and `list_files(..).interleave(TFRecordDataset, ..)`
    is the order of TFDS's reader over the same files but for two things: it sorts the paths by
    their bytes, and it gives a file without examples its turn.
    """
    if not dataset.is_counted:
        return
    splits = {piece.split.name: piece.split for piece in ranges}
    for split in splits.values():
        out_of_order = None if settings.file_order is not None else _first_unsorted(split)
        if out_of_order is not None:
            before, after = out_of_order
            yield (
                f"{split.name}: files are in the order of their numbers, {quoted(before)} before "
                f"{quoted(after)}; tf.data's list_files and sorted() have them the other way "
                "round: a list in their order, as --file-order FILE, is what such a script reads"
            )
        if split.num_empty_shards:
            number = split.num_empty_shards
            has = "has" if number == 1 else "have"
            yield (
                f"{split.name}: {counted(number, 'file')} {has} no examples; TFDS's reader passes "
                "by such files, tf.data's list_files gives each its turn, so that its order is "
                "another: move them away"
            )


def _first_unsorted(split: Split) -> tuple[str, str] | None:
    """Return the first two files in a row whose paths are not sorted by their bytes, if any are.

    Numbers of one width, as all names made of a pattern have, are.
    """
    for part in split.files:
        last = None
        for name in part.names or ():
            if last is not None and os.fsencode(last) > os.fsencode(name):
                return last, name
            last = name
    return None
