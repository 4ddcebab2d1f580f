"""The layout of a split in a few kilobytes: as it is where that is short, else as hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from shardctl.core.dataset.dataset import Dataset, Split

MAX_LAYOUT_CHARS = 30_000  # what the lengths and names of all splits may take as text
MAX_CHUNKS = 256  # digests for all the splits that do not fit
EVEN = "even"


@dataclass(frozen=True, kw_only=True)
class ShardHashes:
    """What is kept of too many shards: a digest for every `size` of them, names and lengths."""

    size: int
    digests: tuple[str, ...]

    @classmethod
    def of(cls, split: Split, size: int) -> ShardHashes:
        """Return the digests of a split's shards, `size` at a time."""
        return cls(size=size, digests=tuple(_chunk_digests(split, size)))


@dataclass(frozen=True, kw_only=True)
class PinnedSplit:
    """A split as a snapshot keeps it: `split` where the layout is kept as it is, else `hashes`.

    Only base names of files are kept: an order does not depend on folders.
    """

    name: str
    num_examples: int
    num_shards: int
    split: Split | None = None
    hashes: ShardHashes | None = None

    def hashed(self, size: int) -> ShardHashes | None:
        """Return the digests of chunks of `size` shards, None where others are all there is."""
        if self.split is not None:
            return ShardHashes.of(self.split, size)
        return self.hashes if self.hashes is not None and self.hashes.size == size else None


def pinned_layout(dataset: Dataset, names: Iterable[str]) -> tuple[PinnedSplit, ...]:
    """Return the layout of the named splits; those that would make a snapshot long are hashed.

    >>> small = Split(name="test", shard_lengths=(3, 4))
    >>> large = Split(name="train", shard_lengths=tuple(range(40_000)))
    >>> pinned = pinned_layout(Dataset(name="d", splits=(large, small)), ["train", "test"])
    >>> [(p.split is not None, p.hashes and len(p.hashes.digests)) for p in pinned]
    [(False, 157), (True, None)]
    """
    wanted = set(names)
    splits = [_with_base_names(split) for split in dataset.splits if split.name in wanted]
    room = MAX_LAYOUT_CHARS
    exact = []
    for split in splits:
        size = text_size(split, room)
        exact.append(size <= room)
        room -= size if exact[-1] else 0
    chunks = MAX_CHUNKS // max(1, exact.count(False)) or 1
    return tuple(
        PinnedSplit(
            name=split.name,
            num_examples=split.num_examples,
            num_shards=split.num_shards,
            split=split if fits else None,
            hashes=None if fits else ShardHashes.of(split, _chunk_size(split.num_shards, chunks)),
        )
        for split, fits in zip(splits, exact, strict=True)
    )


def text_size(split: Split, room: int) -> int:
    """Return about how many characters a layout takes; more than `room` is not counted out."""
    size = 0
    for part in split.files:
        size += len(part.pattern) + 20
        for name in part.names or ():
            size += len(name) + 4
            if size > room:
                return size
    if len(split.shard_lengths) > 1 and split.shard_lengths == even_lengths(split):
        return size + len(EVEN)
    for token in run_lengths(split.shard_lengths):
        size += len(token) + 1
        if size > room:
            break
    return size


def even_lengths(split: Split) -> Sequence[int]:
    """Return the lengths that TFDS would write for as many examples and shards."""
    return Split.even(
        name=split.name, num_examples=split.num_examples, num_shards=split.num_shards
    ).shard_lengths


def run_lengths(lengths: Sequence[int]) -> Iterator[str]:
    """Yield shard lengths as text, a run of the same length as one.

    >>> list(run_lengths([3, 3, 3, 5]))
    ['3x3', '5']
    """
    for length, run in groupby(lengths):
        count = sum(1 for _ in run)
        yield str(length) if count == 1 else f"{length}x{count}"


def _chunk_size(num_shards: int, max_chunks: int) -> int:
    size = 1
    while size * max_chunks < num_shards:
        size *= 2
    return size


def _chunk_digests(split: Split, size: int) -> Iterator[str]:
    lengths = np.array(split.shard_lengths, "<i8")
    for start in range(0, split.num_shards, size):
        stop = min(start + size, split.num_shards)
        # An order does not depend on names, which a split made in Python may be without.
        names = "\0".join(split.filenames_between(start, stop) if split.files else ())
        state = hashlib.sha256(f"{names}\0\0".encode("utf-8", "surrogatepass"))
        state.update(lengths[start:stop].tobytes())
        yield state.hexdigest()[:24]


def _with_base_names(split: Split) -> Split:
    files = tuple(
        replace(
            part,
            data_dir=None,
            pattern=part.pattern.rpartition("/")[2],
            names=part.names and tuple(name.rpartition("/")[2] for name in part.names),
        )
        for part in split.files
    )
    return Split(name=split.name, shard_lengths=split.shard_lengths, files=files)
