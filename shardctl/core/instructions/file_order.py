"""Sort functions: the order in which file instructions are handed to the reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.instructions.reads import Reads
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError

_NOT_READ = -1  # the place of a name of several files of which none is read
_FEW_PARTS = 8  # for so many times the shards of a part its names are looked up as a column


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
    rank = _Names(file_order, reads, starts, row_places).ranks()
    keys = rank[row_places]
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


class _Names:
    """The names of a file order, and which files they stand for.

    A file's place counts all files of the dataset; `starts` is where those of each split begin.
    """

    def __init__(
        self, names: Sequence[str], reads: Reads, starts: Int64s, row_places: Int64s
    ) -> None:
        self._names = names
        self._dataset = reads.dataset
        self._starts = starts
        self._row_places = row_places
        slashed = "/" in "".join(names)
        self._bases = [name.rpartition("/")[2] for name in names] if slashed else names
        # Of long parts a column of the place of each name, -1 for none; of others a dict.
        self._columns: list[Int64s] = []
        self._by_name: dict[str, list[int]] = defaultdict(list)
        for start, part in self._parts():
            found = None
            if len(part) * _FEW_PARTS >= len(names):
                found = part.indices_of(self._bases)
            if found is not None:
                self._columns.append(np.where(found < 0, found, found + start))
                continue
            for place, path in enumerate(part, start):
                self._by_name[path.rpartition("/")[2]].append(place)

    def ranks(self) -> Int64s:
        """Return by place which name stands for a file, -1 for none.

        Raises:
            UsageError: a name of no file or of several, or of one that has been named.
        """
        counts, places = self._counted()
        unknown = np.flatnonzero(counts == 0)[:1].tolist()
        stop = unknown[0] if unknown else len(places)
        several = np.flatnonzero(counts[:stop] > 1).tolist()
        if several:
            read = np.zeros(int(self._starts[-1]), bool)
            read[self._row_places] = True
            for index in several:
                chosen = self._chosen(index, read)
                if len(chosen) > 1:
                    unknown, stop = [], index
                    break
                places[index] = chosen[0] if chosen else _NOT_READ
        ranks = self._ranks(places[:stop])
        if stop == len(places):
            return ranks
        if unknown:
            files = {path.rpartition("/")[2] for _, part in self._parts() for path in part}
            raise UsageError(
                f"the file order names {quoted(self._names[stop])}, which is not a file of "
                f"{self._dataset.title}; it has, for one, {choices(sorted(files), 1)}"
            )
        raise UsageError(
            f"the file order: {quoted(self._names[stop])} stands for {len(chosen)} files in "
            "several folders; write the end of the path, as in the tfds_id"
        )

    def _parts(self) -> Iterator[tuple[int, ShardFiles]]:
        """Yield the files of each folder of each split, and the place of the first."""
        for start, split in zip(self._starts.tolist(), self._dataset.splits, strict=False):
            ends = accumulate(map(len, split.files), initial=start)
            yield from zip(ends, split.files, strict=False)

    def _counted(self) -> tuple[Int64s, Int64s]:
        """Return of how many files each is the base name, and the place of one of them."""
        counts, places = np.zeros((2, len(self._names)), np.int64)
        for column in self._columns:
            counts += column >= 0
            np.copyto(places, column, where=column >= 0)
        if self._by_name:
            found = [self._by_name.get(base, ()) for base in self._bases]
            counts += np.fromiter(map(len, found), np.int64, len(found))
            for index, own in enumerate(found):
                if own:
                    places[index] = own[0]
        return counts, places

    def _chosen(self, index: int, read: np.ndarray[tuple[int], np.dtype[np.bool]]) -> list[int]:
        """Return the files that a name of several stands for, those that are read if it can."""
        places = [int(column[index]) for column in self._columns if column[index] >= 0]
        places += self._by_name.get(self._bases[index], ())
        end = f"/{self._names[index].strip('/')}"
        places = [place for place in places if self._path(place).endswith(end)] or places
        return places if len(places) == 1 else [place for place in places if read[place]]

    def _ranks(self, places: Int64s) -> Int64s:
        named = np.flatnonzero(places != _NOT_READ)
        chosen = places[named]
        ranks = np.full(int(self._starts[-1]), -1)
        ranks[chosen[::-1]] = named[::-1]  # so that the first name of a file stays
        again = named[ranks[chosen] != named]
        if again.size:
            split, shard = self._split_and_shard(int(places[again[0]]))
            base = self._dataset.splits[split].filename(shard)
            raise UsageError(f"the file order names {quoted(base)} twice; each file comes once")
        return ranks

    def _path(self, place: int) -> str:
        split, shard = self._split_and_shard(place)
        data_dir, name = self._dataset.splits[split].location(shard)
        return f"{data_dir}/{name}"

    def _split_and_shard(self, place: int) -> tuple[int, int]:
        split = int(np.searchsorted(self._starts, place, side="right")) - 1
        return split, place - int(self._starts[split])
