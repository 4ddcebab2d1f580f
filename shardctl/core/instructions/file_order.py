"""Sort functions: the order in which file instructions are handed to the reader."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from shardctl.core.instructions.reads import ReadTable
from shardctl.core.text import choices, quoted
from shardctl.errors import UsageError

Place = tuple[int, int]  # index of the split, index of the shard in it


def sorted_rows(
    table: ReadTable, *, reverse: bool = False, file_order: tuple[str, ...] | None = None
) -> ReadTable:
    """Return the rows back to front, or as the files stand in a list, or as they are.

    This is what `ReadConfig.experimental_interleave_sort_fn` does to the list of file
    instructions. Rows of one file keep their order; the list may name more files of the dataset
    than are read, and must name every file that is. A name is a base name or the end of a path.

    Raises:
        UsageError: a name twice, a name that is no file of the dataset or several, a file left out.
    """
    if reverse:
        return table.select(slice(None, None, -1))
    if file_order is None:
        return table
    places = list(zip(table.split.tolist(), table.shard.tolist(), strict=True))
    rank = _ranks(file_order, table, set(places))
    missing = dict.fromkeys(place for place in places if place not in rank)
    if missing:
        left_out = (table.dataset.splits[split].filename(shard) for split, shard in missing)
        raise UsageError(
            f"the file order leaves out {choices(left_out, 3)}; every file that is read needs "
            "a place"
        )
    keys = [rank[place] for place in places]
    return table.select(np.argsort(np.array(keys, np.int64), kind="stable"))


def _ranks(names: Sequence[str], table: ReadTable, read: set[Place]) -> dict[Place, int]:
    known = _known_files(table)
    rank: dict[Place, int] = {}
    for index, name in enumerate(names):
        place = _place_of(name, table, known, read)
        if place is None:
            continue
        if place in rank:
            base = table.dataset.splits[place[0]].filename(place[1])
            raise UsageError(f"the file order names {quoted(base)} twice; each file comes once")
        rank[place] = index
    return rank


def _known_files(table: ReadTable) -> Mapping[str, list[Place]]:
    """Return the places of all files of the dataset by base name."""
    known: dict[str, list[Place]] = defaultdict(list)
    for split_index, split in enumerate(table.dataset.splits):
        for shard, name in enumerate(split.filenames):
            known[name].append((split_index, shard))
    return known


def _place_of(
    name: str, table: ReadTable, known: Mapping[str, list[Place]], read: set[Place]
) -> Place | None:
    """Return which file a name means, None where several are called so and none of them is read."""
    places = known.get(name.rpartition("/")[2], [])
    if not places:
        raise UsageError(
            f"the file order names {quoted(name)}, which is no file of {table.dataset.title}; "
            f"it has, for one, {choices(sorted(known), 1)}"
        )
    if len(places) > 1:
        ends = [place for place in places if _path(table, place).endswith(f"/{name.strip('/')}")]
        places = ends or places
    if len(places) > 1:
        places = [place for place in places if place in read]
    if len(places) > 1:
        raise UsageError(
            f"the file order: {quoted(name)} stands for {len(places)} files in several folders; "
            "write the end of the path, as in the tfds_id"
        )
    return places[0] if places else None


def _path(table: ReadTable, place: Place) -> str:
    data_dir, name = table.dataset.splits[place[0]].location(place[1])
    return f"{data_dir}/{name}"
