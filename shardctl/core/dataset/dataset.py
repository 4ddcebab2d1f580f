"""A dataset as its metadata describes it: splits, shards, lengths, file names."""

from __future__ import annotations

import itertools
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from shardctl.core.dataset.identity import DatasetIdentity, SplitSize, dataset_title
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.text import choices, quoted
from shardctl.core.tfds_rules import DEFAULT_FILE_FORMAT, INT64_MAX
from shardctl.errors import DatasetError, NotASplitError, UsageError


@dataclass(frozen=True, kw_only=True)
class Split:
    """One split: the number of examples in each of its shards, and the shards' files.

    `files` has one part per folder the split is spread over; `num_bytes` is the total the metadata
    states, None where it states none; `shard_bytes` the size in bytes of each file, None where the
    files are not here.

    >>> split = Split.even(name="train", num_examples=10, num_shards=3)
    >>> split.shard_lengths, split.offsets
    ((3, 4, 3), (0, 3, 7, 10))
    """

    name: str
    shard_lengths: tuple[int, ...]
    files: tuple[ShardFiles, ...] = ()
    num_bytes: int | None = None
    shard_bytes: tuple[int | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.shard_lengths and min(self.shard_lengths) < 0:
            raise DatasetError(
                f"split {quoted(self.name)}: shard length {min(self.shard_lengths)} is negative"
            )
        if self.num_examples > INT64_MAX:
            raise DatasetError(
                f"split {quoted(self.name)} has {self.num_examples} examples; "
                f"an int64 holds at most {INT64_MAX}"
            )
        if self.files and sum(map(len, self.files)) != self.num_shards:
            raise DatasetError(f"split {quoted(self.name)}: not one file name a shard")
        if self.shard_bytes is not None and len(self.shard_bytes) != self.num_shards:
            raise DatasetError(f"split {quoted(self.name)}: not one size in bytes a shard")

    @classmethod
    def even(
        cls,
        *,
        name: str,
        num_examples: int,
        num_shards: int,
        files: tuple[ShardFiles, ...] = (),
        num_bytes: int | None = None,
    ) -> Split:
        """Return a split with the boundaries TFDS writes: round(num_examples * i / num_shards).

        Source: TFDS core/utils/shard_utils.py, get_shard_boundaries (float division, then
        Python's round to even). Fewer examples than shards, which TFDS does not write, leave
        shards empty.

        Raises:
            DatasetError: examples and no shard to hold them, or a negative number of either.
        """
        if num_examples < 0 or num_shards < 0 or (num_examples and not num_shards):
            raise DatasetError(
                f"split {quoted(name)}: {num_examples} examples in {num_shards} shards"
            )
        ends = [round(num_examples * i / num_shards) for i in range(1, num_shards + 1)]
        lengths = tuple(b - a for a, b in itertools.pairwise(itertools.chain((0,), ends)))
        return cls(name=name, shard_lengths=lengths, files=files, num_bytes=num_bytes)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """First id of each shard, and at the end the number of examples; num_shards + 1 ints."""
        return tuple(itertools.accumulate(self.shard_lengths, initial=0))

    @property
    def num_examples(self) -> int:
        """Number of examples in all shards."""
        return self.offsets[-1]

    @property
    def num_shards(self) -> int:
        """Number of shards, empty ones included."""
        return len(self.shard_lengths)

    def shard_of(self, example_id: int) -> int:
        """Return the index of the shard that holds an id.

        >>> Split.even(name="train", num_examples=10, num_shards=3).shard_of(3)
        1
        """
        if not 0 <= example_id < self.num_examples:
            raise UsageError(
                f"id {example_id} is not in split {quoted(self.name)}; "
                f"its ids are 0 to {self.num_examples - 1}"
                if self.num_examples
                else f"id {example_id}: split {quoted(self.name)} is empty"
            )
        return bisect_right(self.offsets, example_id) - 1

    def location(self, shard_index: int) -> tuple[str | None, str]:
        """Return (data dir or None, path relative to it) of a shard's file."""
        for part in self.files:
            if shard_index < len(part):
                return part.data_dir, part[shard_index]
            shard_index -= len(part)
        raise IndexError(shard_index)

    def filename(self, shard_index: int) -> str:
        """Return the base name of a shard's file."""
        return self.location(shard_index)[1].rpartition("/")[2]

    @cached_property
    def filenames(self) -> tuple[str, ...]:
        """Base names of all shards' files, in shard order."""
        return tuple(self.filenames_between(0, self.num_shards))

    @cached_property
    def names_repeat(self) -> bool:
        """Whether two files, in several folders, have one base name."""
        if len(self.files) == 1 and "\0" in self.files[0].pattern.rpartition("/")[2]:
            return False  # each name holds its own index
        return len(set(self.filenames)) < self.num_shards

    def filenames_between(self, start: int, stop: int) -> list[str]:
        """Return the base names of the files of shards [start, stop)."""
        names: list[str] = []
        first = 0
        for part in self.files:
            names += part.between(max(start - first, 0), max(min(stop - first, len(part)), 0))
            first += len(part)
        if any("/" in part.pattern or part.names is not None for part in self.files):
            names = [name.rpartition("/")[2] for name in names]
        return names


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A dataset: what its metadata says, and where the files lie.

    `ordered` is TFDS's `disable_shuffling`; `data_dir` is None for a dataset that has no files
    here (a catalog entry, a layout file); `origin` says in a few words where the facts come from.
    """

    name: str
    splits: tuple[Split, ...]
    config: str | None = None
    version: str | None = None
    file_format: str = DEFAULT_FILE_FORMAT
    data_dir: str | None = None
    ordered: bool = False
    origin: str = "metadata"

    def __post_init__(self) -> None:
        if not self.splits:
            raise DatasetError(f"dataset {quoted(self.name)} has no splits")
        counts = Counter(split.name for split in self.splits)
        twice = [name for name, count in counts.items() if count > 1]
        if twice:
            raise DatasetError(f"dataset {quoted(self.name)} has split {quoted(twice[0])} twice")

    @property
    def in_several_folders(self) -> bool:
        """Whether the files of the splits lie in several folders, or are to."""
        folders = {part.data_dir for split in self.splits for part in split.files}
        return len(folders) > 1 or any(len(split.files) > 1 for split in self.splits)

    def split(self, name: str) -> Split:
        """Return a split by name.

        Raises:
            NotASplitError: no such split; the message lists those there are.
        """
        for split in self.splits:
            if split.name == name:
                return split
        known = choices(split.name for split in self.splits)
        raise NotASplitError(f"no split {quoted(name)} in {self.title}; it has: {known}", name)

    @property
    def title(self) -> str:
        """Name, config and version as TFDS writes them: `coco/2017:1.1.0`."""
        return dataset_title(self.name, self.config, self.version)

    @cached_property
    def identity(self) -> DatasetIdentity:
        """What tells this dataset from another; the fingerprint is computed for it."""
        return DatasetIdentity(
            name=self.name,
            config=self.config,
            version=self.version,
            file_format=self.file_format,
            data_dir=self.data_dir,
            fingerprint=self.fingerprint,
            ordered=self.ordered,
            splits=tuple(
                SplitSize(name=s.name, num_examples=s.num_examples, num_shards=s.num_shards)
                for s in self.splits
            ),
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the layout: split names, file names and lengths, in order.

        Neither the folder nor the reader takes part, so a copy on another machine, or a layout
        file that says the same, has the same fingerprint.
        """
        import hashlib  # 5 ms, and few commands show it

        digest = hashlib.sha256(b"shardctl layout 1\n")
        for split in self.splits:
            names = "\0".join(split.filenames_between(0, split.num_shards))
            text = f"{split.name}\0{split.num_shards}\0{names}\0\0"
            digest.update(text.encode("utf-8", "surrogatepass"))
            digest.update(_little_endian(split.shard_lengths))
        return f"sha256:{digest.hexdigest()}"


def _little_endian(values: tuple[int, ...]) -> bytes:
    """Return int64 values as 8 bytes each, the least significant first on every machine."""
    packed = array("q", values)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()
