"""Sort functions: the order in which file instructions are handed to the reader."""

from __future__ import annotations

import numpy as np

from shardctl.core.quoting import choices, quoted
from shardctl.core.read_table import Int64s, ReadTable
from shardctl.errors import UsageError


def sorted_rows(
    table: ReadTable, *, reverse: bool = False, file_order: tuple[str, ...] | None = None
) -> ReadTable:
    """Return the rows back to front, or as the files stand in a list, or as they are.

    This is what `ReadConfig.experimental_interleave_sort_fn` does to the list of file
    instructions. Rows of one file keep their order; the list may name more files of the dataset
    than are read, and must name every file that is.

    Raises:
        UsageError: a name twice, a name that is no file of the dataset, a file left out.
    """
    if reverse:
        return table.select(slice(None, None, -1))
    if file_order is None:
        return table
    rank = _ranks(file_order)
    keys = np.empty(len(table), np.int64)
    for split in np.unique(table.split).tolist():
        keys[table.split == split] = _keys_of_split(table, split, rank)
    _refuse_strangers(table, rank)
    return table.select(np.argsort(keys, kind="stable"))


def _ranks(file_order: tuple[str, ...]) -> dict[str, int]:
    rank: dict[str, int] = {}
    for index, name in enumerate(file_order):
        base = name.rpartition("/")[2]
        if base in rank:
            raise UsageError(f"the file order names {quoted(base)} twice; each file comes once")
        rank[base] = index
    return rank


def _keys_of_split(table: ReadTable, split: int, rank: dict[str, int]) -> Int64s:
    filenames = table.dataset.splits[split].filenames
    shards = table.shard[table.split == split].tolist()
    missing = [filenames[shard] for shard in shards if filenames[shard] not in rank]
    if missing:
        raise UsageError(
            f"the file order leaves out {choices(dict.fromkeys(missing), 3)}; "
            "every file that is read needs a place"
        )
    return np.array([rank[filenames[shard]] for shard in shards], np.int64)


def _refuse_strangers(table: ReadTable, rank: dict[str, int]) -> None:
    known = {name for split in table.dataset.splits for name in split.filenames}
    strangers = [name for name in rank if name not in known]
    if strangers:
        raise UsageError(
            f"the file order names {quoted(strangers[0])}, which is no file of "
            f"{table.dataset.title}; it has, for one, {choices(sorted(known), 1)}"
        )
