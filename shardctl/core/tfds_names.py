"""File names as they stand in a tfds_id: base names, or more where files lie in several folders."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence

import numpy as np

from shardctl.core.dataset import Split
from shardctl.core.read_table import ReadTable
from shardctl.core.shard_files import ShardFiles


class TfdsNames:
    """What a `tfds_id` calls the files, given the file instructions that the reader is given.

    Where all of them lie in one folder, it is the base name; else the path from the deepest folder
    on in which they differ (TFDS core/reader.py, _get_tfds_id_prefixes, whose pattern takes the
    common end of the folders as it is, as this one does).

    >>> files = [ShardFiles(data_dir=f"/data/{day}/d", pattern="d-\\0", num_shards=1)
    ...          for day in ("mon", "tue")]
    >>> split = Split(name="train", shard_lengths=(2, 1), files=tuple(files))
    >>> TfdsNames(None, {}).of_split(split)
    ('d-00000', 'd-00000')
    """

    def __init__(self, table: ReadTable | None, splits: dict[int, Split]) -> None:
        folders: set[str] = set()
        if table is not None:
            for index, split in splits.items():
                shards = np.unique(table.shard[table.split == index])
                folders |= _folders(split, shards.tolist())
        self._pattern = _pattern(folders)

    def of_split(self, split: Split) -> tuple[str, ...]:
        """Return what each file of a split is called, in the order of its shards."""
        if self._pattern is None:
            return split.filenames
        names = (_path(part, name) for part in split.files for name in part)
        return tuple(self._pattern.sub(r"\1", name) for name in names)


def _pattern(folders: Iterable[str]) -> re.Pattern[str] | None:
    folders = set(folders)
    if len(folders) < 2:
        return None
    # By characters, as TFDS has it: no path is meant.
    ending = os.path.commonprefix([folder[::-1] for folder in folders])[::-1]  # noqa: RUF071
    try:
        return re.compile(rf".*\/([^/]+{ending}/[^/]+)")
    except re.error:  # here TFDS fails; the names are those that it means
        return re.compile(rf".*\/([^/]+{re.escape(ending)}/[^/]+)")


def _folders(split: Split, shards: Sequence[int]) -> set[str]:
    """Return the folders in which these shards (ascending) of a split lie."""
    folders: set[str] = set()
    first = 0
    for part in split.files:
        low, high = np.searchsorted(shards, [first, first + len(part)]).tolist()
        if low < high:
            # Most often the folder is the same for all; else each file says.
            one = part.names is None and "\0" not in posixpath.dirname(part.pattern)
            own = shards[low : low + 1] if one else shards[low:high]
            folders |= {posixpath.dirname(_path(part, part[shard - first])) for shard in own}
        first += len(part)
    return folders


def _path(part: ShardFiles, name: str) -> str:
    return name if part.data_dir is None else posixpath.join(part.data_dir, name)
