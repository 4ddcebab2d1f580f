"""Sort functions: the order in which file instructions are handed to the reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from shardctl.core.instructions.reads import Reads
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError

ShardKey = tuple[int, int]  # index of the split, index of the shard in it


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
    places = list(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    rank = _ranks(file_order, reads, set(places))
    missing = dict.fromkeys(place for place in places if place not in rank)
    if missing:
        left_out = (reads.dataset.splits[split].filename(shard) for split, shard in missing)
        raise UsageError(
            f"the file order leaves out {choices(left_out, 3)}; every file that is read needs "
            "a place"
        )
    keys = [rank[place] for place in places]
    return reads.select(np.argsort(np.array(keys, np.int64), kind="stable"))


def _ranks(names: Sequence[str], reads: Reads, read: set[ShardKey]) -> dict[ShardKey, int]:
    known = _known_files(reads)
    rank: dict[ShardKey, int] = {}
    for index, name in enumerate(names):
        place = _place_of(name, reads, known, read)
        if place is None:
            continue
        if place in rank:
            base = reads.dataset.splits[place[0]].filename(place[1])
            raise UsageError(f"the file order names {quoted(base)} twice; each file comes once")
        rank[place] = index
    return rank


def _known_files(reads: Reads) -> Mapping[str, list[ShardKey]]:
    """Return the places of all files of the dataset by base name."""
    known: dict[str, list[ShardKey]] = defaultdict(list)
    for split_index, split in enumerate(reads.dataset.splits):
        for shard, name in enumerate(split.filenames):
            known[name].append((split_index, shard))
    return known


def _place_of(
    name: str, reads: Reads, known: Mapping[str, list[ShardKey]], read: set[ShardKey]
) -> ShardKey | None:
    """Return which file a name means, None where several are called so and none of them is read."""
    places = known.get(name.rpartition("/")[2], [])
    if not places:
        raise UsageError(
            f"the file order names {quoted(name)}, which is not a file of {reads.dataset.title}; "
            f"it has, for one, {choices(sorted(known), 1)}"
        )
    if len(places) > 1:
        ends = [place for place in places if _path(reads, place).endswith(f"/{name.strip('/')}")]
        places = ends or places
    if len(places) > 1:
        places = [place for place in places if place in read]
    if len(places) > 1:
        raise UsageError(
            f"the file order: {quoted(name)} stands for {len(places)} files in several folders; "
            "write the end of the path, as in the tfds_id"
        )
    return places[0] if places else None


def _path(reads: Reads, place: ShardKey) -> str:
    data_dir, name = reads.dataset.splits[place[0]].location(place[1])
    return f"{data_dir}/{name}"
