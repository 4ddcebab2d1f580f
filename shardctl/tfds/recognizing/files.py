"""The files of a reader -> the dataset they belong to, and the spec and settings that list them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import DATASET_INFO_FILENAME
from shardctl.errors import DatasetError
from shardctl.files.stores.anywhere import is_file
from shardctl.files.stores.remote_path import RemotePath, file_in, path_of, way_below
from shardctl.files.stores.stores import as_bytes, is_remote, store_of
from shardctl.readers.index.counting.counting import count_files
from shardctl.readers.index.counting.known import known_counts
from shardctl.readers.several_folders import merge_datasets
from shardctl.readers.tfds_metadata import dataset_in

PLAIN_SPLIT = "files"  # of record files without metadata
_MANY_PARTS = 8  # of a spec, from which on a list of files says it better


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one row reads: `take` records of a file after the first `skip` (None: to its end)."""

    path: str
    skip: int = 0
    take: int | None = None


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A list of pieces as a reader states it.

    spec: the subsplit. sorting: `reverse` or `file_order`, where the list is sorted otherwise.
    """

    dataset: Dataset
    spec: str
    sorting: tuple[tuple[str, Any], ...] = ()


def listed(pieces: Sequence[Piece], *, file_format: str, compression: str) -> Listed:
    """Return the dataset, spec and file order that list exactly these pieces.

    Raises:
        DatasetError: files that are not there or cannot be counted; a list that no spec says.
    """
    paths = [_whole(piece.path) for piece in pieces]
    dataset = _dataset_of_folders(paths)
    if dataset is None:
        dataset = _plain_dataset(paths, file_format, compression)
    places = _places(dataset)
    rows = [_row(dataset, places[path], piece) for path, piece in zip(paths, pieces, strict=True)]
    spec, sorting = _stated(dataset, rows)
    return Listed(dataset=dataset, spec=spec, sorting=sorting)


def _whole(path: str) -> str:
    """Return a path as it is the same in graphs and in datasets."""
    place = path_of(path)
    return str(place) if isinstance(place, RemotePath) else os.path.abspath(place)


@dataclass(frozen=True, kw_only=True)
class _Row:
    """The examples [start, stop) of a split, all of one shard."""

    split: int
    shard: int
    start: int
    stop: int


def _dataset_of_folders(paths: Sequence[str]) -> Dataset | None:
    """Return the TFDS dataset whose files these are, None where they are not all of one."""
    folders = list(dict.fromkeys(map(os.path.dirname, paths)))
    if not all(is_file(path_of(file_in(f, DATASET_INFO_FILENAME))) for f in folders):
        return None
    dataset = merge_datasets([dataset_in(path_of(folder)) for folder in folders])
    known = _places(dataset)
    return dataset if all(path in known for path in paths) else None


def _plain_dataset(paths: Sequence[str], file_format: str, compression: str) -> Dataset:
    """Return record files without metadata as a dataset of one split, in the order of their names.

    Raises:
        DatasetError: a file that is not here or damaged, or compressed otherwise than the script
            says.
    """
    names = sorted(set(paths), key=as_bytes)
    lengths = _counted(names, file_format, compression)
    folder = _common_folder(names)
    files = ShardFiles(
        data_dir=folder,
        names=tuple(way_below(path_of(folder), path_of(name)) for name in names),
        num_shards=len(names),
    )
    return Dataset(
        name=os.path.basename(folder) or "files",
        splits=(Split(name=PLAIN_SPLIT, shard_lengths=lengths, files=(files,)),),
        file_format=file_format,
        compression=compression or None,
        data_dir=folder,
        origin="record files",
    )


def _counted(names: Sequence[str], file_format: str, compression: str) -> tuple[int, ...]:
    """Return how many records files hold; those that are known from the user's cache folder."""
    files = []
    for name in names:
        file = store_of(name).status(name)
        if file is None:
            raise DatasetError(f"file {quoted(name, 200)} missing")
        files.append(file)
    with known_counts(cache=True, earlier=None) as known:
        counts = count_files(files, file_format, known)
    for place in sorted(counts.broken):
        damage = counts.broken[place].damage
        why = "cannot be counted" if damage is None else damage.text
        raise DatasetError(f"file {quoted(names[place], 200)} {why}")
    contents = [one for one in counts.contents if one is not None]
    for name, one in zip(names, contents, strict=True):
        found = one.compression
        if (found or "") != compression:
            said = f"is not compressed by {compression}, as the script reads it"
            if found is not None:
                said = (
                    f"is compressed by {found}, and the script reads it by {compression or 'none'}"
                )
            raise DatasetError(f"file {quoted(name, 200)} {said}")
    return tuple(one.num_records or 0 for one in contents)


def _common_folder(names: Sequence[str]) -> str:
    """Return the folder that all files lie in, or below.

    Raises:
        DatasetError: they lie in several places.
    """
    first = path_of(names[0])
    if not isinstance(first, RemotePath) and not any(map(is_remote, names)):
        return os.path.commonpath([os.path.dirname(name) for name in names])
    folder = first.parent
    while not all(name.startswith(f"{folder}/") for name in names):
        if folder == folder.parent:
            raise DatasetError(f"{quoted(names[0])} and {quoted(names[-1])} lie in two places")
        folder = folder.parent
    return str(folder)


def _places(dataset: Dataset) -> Mapping[str, tuple[int, int]]:
    """Return split and shard of every file, by its path."""
    places = {}
    for index, split in enumerate(dataset.splits):
        for shard in range(split.num_shards):
            folder, name = split.location(shard)
            places[_whole(os.path.join(folder or "", name))] = (index, shard)
    return places


def _row(dataset: Dataset, place: tuple[int, int], piece: Piece) -> _Row:
    split = dataset.splits[place[0]]
    length, offset = split.shard_lengths[place[1]], split.offsets[place[1]]
    skip = length if piece.skip < 0 else min(piece.skip, length)
    rest = length - skip
    take = rest if piece.take is None or piece.take < 0 else min(piece.take, rest)
    if not take:
        raise DatasetError(
            f"nothing is read of file {quoted(piece.path, 200)}, which takes a place in the "
            "interleave all the same; no spec says that"
        )
    return _Row(split=place[0], shard=place[1], start=offset + skip, stop=offset + skip + take)


def _stated(dataset: Dataset, rows: Sequence[_Row]) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Return the spec, and how its files are sorted, in the fewest words."""
    as_listed = list(_merged(rows))
    if len(as_listed) == 1:
        return _spec(dataset, as_listed), ()
    back_to_front = list(_merged(rows[::-1]))
    if len(back_to_front) < len(as_listed):
        return _spec(dataset, back_to_front), (("reverse", True),)
    if len(as_listed) > _MANY_PARTS:
        by_id = list(_merged(sorted(rows, key=lambda row: (row.split, row.start))))
        names = tuple(dataset.splits[row.split].filename(row.shard) for row in rows)
        if 2 * len(by_id) < len(as_listed) and len(set(names)) == len(names):
            return _spec(dataset, by_id), (("file_order", names),)
    return _spec(dataset, as_listed), ()


def _merged(rows: Sequence[_Row]) -> Iterator[_Row]:
    """Yield the ranges that TFDS cuts into exactly these rows."""
    here = rows[0]
    for row in rows[1:]:
        if (row.split, row.start) == (here.split, here.stop) and row.shard > here.shard:
            here = replace(here, stop=row.stop, shard=row.shard)
            continue
        yield here
        here = row
    yield here


def _spec(dataset: Dataset, ranges: Sequence[_Row]) -> str:
    parts = []
    for piece in ranges:
        split = dataset.splits[piece.split]
        start = "" if piece.start == 0 else str(piece.start)
        stop = "" if piece.stop == split.num_examples else str(piece.stop)
        parts.append(f"{split.name}[{start}:{stop}]" if start or stop else split.name)
    return "+".join(parts)
