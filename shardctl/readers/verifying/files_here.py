"""Which files of a dataset are here: in local folders, or behind URLs."""

from __future__ import annotations

import contextlib
import os

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.reads import Reads
from shardctl.files.stores.anywhere import answers, is_file
from shardctl.files.stores.remote_path import RemotePath, file_in, path_of
from shardctl.files.stores.stores import is_remote


def file_path(dataset: Dataset, split: int, shard: int) -> str | None:
    """Return where a shard's file lies, None where the dataset has no folder."""
    if not dataset.splits[split].files:
        return None
    folder, name = dataset.splits[split].location(shard)
    return None if folder is None else file_in(folder, name)


def exists(path: str) -> bool:
    """Return whether a file is there, in a local folder or behind a URL.

    Raises:
        DatasetError: the place behind the URL cannot be asked.
    """
    place = path_of(path)
    return is_file(place) if isinstance(place, RemotePath) else os.path.exists(place)


def first_file_here(reads: Reads) -> str | None:
    """Return the first file there is of those that rows read, None where there is none."""
    places = dict.fromkeys(zip(reads.split.tolist(), reads.shard.tolist(), strict=True))
    paths = (file_path(reads.dataset, split, shard) for split, shard in places)
    known = [path for path in paths if path is not None]
    with contextlib.closing(answers(exists, known, at_once=any(map(is_remote, known)))) as here:
        return next((path for path, found in zip(known, here, strict=True) if found), None)
