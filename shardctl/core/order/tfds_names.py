"""File names as they are in a tfds_id: base names, or more where files lie in several folders."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Sequence

from shardctl.core.arrays import Int64s, is_constant
from shardctl.core.dataset.dataset import Split, filenames_at
from shardctl.core.dataset.shard_names import shard_names
from shardctl.core.instructions.reads import Reads


class TfdsNames:
    """What a `tfds_id` calls the files, given the file instructions that the reader is given.

    Where all of them lie in one folder, it is the base name; else the path from the deepest folder
    on in which they differ (TFDS core/reader.py, _get_tfds_id_prefixes, whose pattern takes the
    common end of the folders as it is, as this one does).

    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = [ShardFiles(data_dir=f"/data/{day}/d", pattern="d-\\0", num_shards=1)
    ...          for day in ("mon", "tue")]
    >>> split = Split(name="train", shard_lengths=(2, 1), files=tuple(files))
    >>> TfdsNames(None, {}).of_split(split)
    ('d-00000', 'd-00000')
    """

    def __init__(self, reads: Reads | None, splits: dict[int, Split]) -> None:
        folders: set[str] = set()
        if reads is not None:
            for index, split in splits.items():
                folders |= _folders(split, _shards(reads, index))
        self.pattern = _pattern(folders)

    def of_split(self, split: Split) -> tuple[str, ...]:
        """Return what each file of a split is called, in the order of its shards."""
        if self.pattern is None:
            return split.filenames
        return tuple(self._called(part.data_dir, name) for part in split.files for name in part)

    @property
    def are_base_names(self) -> bool:
        """Whether every file is called by its base name."""
        return self.pattern is None

    def names(self, splits: Sequence[Split], split: Int64s, shard: Int64s) -> list[str]:
        """Return what the files of shards are called, given by their indices (int64[n] each)."""
        called = filenames_at if self.are_base_names else self.of_shards
        return shard_names(splits, split, shard, called)

    def of_shards(self, split: Split, shards: Sequence[int]) -> list[str]:
        """Return what the files of some shards are called."""
        if self.pattern is None:
            return filenames_at(split, shards)
        return [self.of_shard(split, shard) for shard in shards]

    def of_shard(self, split: Split, shard: int) -> str:
        """Return what the file of one shard is called."""
        if self.pattern is None:
            return split.filename(shard)
        data_dir, name = split.location(shard)
        return self._called(data_dir, name)

    def _called(self, data_dir: str | None, name: str) -> str:
        assert self.pattern is not None
        return self.pattern.sub(r"\1", _path(data_dir, name))


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


def _shards(reads: Reads, split: int) -> Int64s:
    """Return the shards (int64[n]) of a split that are read."""
    if is_constant(reads.split):
        return reads.shard if int(reads.split[0]) == split else reads.shard[:0]
    shards: Int64s = reads.shard[reads.split == split]
    return shards


def _folders(split: Split, shards: Int64s) -> set[str]:
    """Return the folders in which these shards (int64[n]) of a split lie."""
    folders: set[str] = set()
    first = 0
    for part in split.files:
        own = shards
        if len(split.files) > 1:
            own = shards[(shards >= first) & (shards < first + len(part))] - first
        # Most often the folder is the same for all files of a part; else each file says.
        if part.names is None and "\0" not in posixpath.dirname(part.pattern):
            own = own[:1]
        folders |= {posixpath.dirname(_path(part.data_dir, part[i])) for i in own.tolist()}
        first += len(part)
    return folders


def _path(data_dir: str | None, name: str) -> str:
    return name if data_dir is None else posixpath.join(data_dir, name)
