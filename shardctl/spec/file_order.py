"""Sort functions: the order in which file instructions are handed to the reader."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import choices, quoted
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.spec.reads import Reads

_FEW_PARTS = 8  # whose names are looked up as a column


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
    row_places: Int64s = starts[reads.split] + reads.shard
    keys = _ranks(file_order, reads, row_places)[row_places]
    missing = np.flatnonzero(keys < 0)
    if missing.size:
        left_out = (reads.filename(row) for row in _first_rows(row_places, missing))
        raise UsageError(
            f"the file order leaves out {choices(left_out, 3)}; every file that is read needs "
            "a place"
        )
    row_named = np.full(len(file_order), -1)
    row_named[keys] = np.arange(len(keys))
    rows = row_named[row_named >= 0]
    several = len(rows) < len(keys)  # of one file
    return reads.select(np.argsort(keys, kind="stable") if several else rows)


def _first_rows(row_places: Int64s, rows: Int64s) -> list[int]:
    """Return of rows, ascending, the first of each file."""
    first = np.unique(row_places[rows], return_index=True)[1]
    found: list[int] = rows[np.sort(first)].tolist()
    return found


def _ranks(names: Sequence[str], reads: Reads, row_places: Int64s) -> Int64s:
    """Return which name stands for each file of the dataset, -1 for none.

    A file's place counts all files; `row_places` are those of the rows.

    Raises:
        UsageError: a name of no file or of several, or of one that has been named.
    """
    parts = [part for split in reads.dataset.splits for part in split.files]
    if (found := _ranks_by_pattern(names, parts)) is not None:
        return found
    bases = [path.rpartition("/")[2] for path in itertools.chain.from_iterable(parts)]
    last = {base: place for place, base in enumerate(bases)}
    several: dict[str, list[int]] = defaultdict(list)
    if len(last) < len(bases):
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


def _ranks_by_pattern(names: Sequence[str], parts: Sequence[ShardFiles]) -> Int64s | None:
    """Return what `_ranks` does where file names tell their index and each name is of one file."""
    if len(parts) > _FEW_PARTS:
        return None
    slashed = "/" in "".join(names)
    bases = [name.rpartition("/")[2] for name in names] if slashed else names
    ranks = np.full(sum(map(len, parts)), -1)
    start = num_found = 0
    for part in parts:
        if (found := part.indices_of(bases)) is None:
            return None
        rows = np.flatnonzero(found >= 0)
        ranks[start + found[rows]] = rows
        start += len(part)
        num_found += len(rows)
    places = np.flatnonzero(ranks >= 0)
    every = np.bincount(ranks[places], minlength=len(names)).all()
    return ranks if num_found == len(names) == len(places) and every else None


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
