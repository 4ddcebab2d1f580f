"""Which shards make up a split, how large is each, and how evenly do they share the examples?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from shardctl.base.arguments import checked
from shardctl.base.columns import Tabular
from shardctl.base.text import choices, counted, in_short
from shardctl.dataset.dataset import Dataset, DatasetLike, Split, as_dataset
from shardctl.errors import UsageError

BytesFrom = Literal["disk", "metadata"]

_PIECE = 1 << 14  # shards whose names are made at once


class Shard(NamedTuple):
    """One shard: its ids are [first_id, first_id + num_examples).

    `first_id` of an empty shard is where its ids would begin; `num_bytes` is the size of the file,
    None where it is not here. A tuple, since a million of these are made in a third of the time.
    """

    shard_index: int
    filename: str
    first_id: int
    num_examples: int
    num_bytes: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Balance:
    """How even the shards are, counted in examples; empty shards count.

    `imbalance` is max / mean, the load imbalance factor of parallel computing: 1.0 for shards of
    the same size, 2.0 where the largest holds twice its share. None without shards, and
    `imbalance` also without examples.
    """

    min: int | None
    max: int | None
    mean: float | None
    imbalance: float | None


@dataclass(frozen=True, kw_only=True)
class SplitLayout:
    """The shards of one split, and what they come to."""

    split: Split

    @property
    def bytes_from(self) -> BytesFrom | None:
        """The source of `num_bytes`, None where it is unknown.

        That is the files if each that holds examples is on this machine, else the metadata.
        """
        sizes = self.split.shard_bytes
        # Empty shards need no file.
        if sizes is not None and all(
            size is not None or not length
            for size, length in zip(sizes, self.split.shard_lengths, strict=True)
        ):
            return "disk"
        return None if self.split.num_bytes is None else "metadata"

    @cached_property
    def num_bytes(self) -> int | None:
        """Bytes of all shards: the sizes of the files, or else the total that the metadata states.

        The two differ by what a file format adds to its examples.
        """
        if self.bytes_from == "disk":
            return sum(size or 0 for size in self.split.shard_bytes or ())
        return self.split.num_bytes

    @cached_property
    def balance(self) -> Balance:
        """How evenly the shards share the examples.

        >>> SplitLayout(split=Split(name="train", shard_lengths=(3, 0, 5, 4))).balance
        Balance(min=0, max=5, mean=3.0, imbalance=1.6666666666666667)
        """
        lengths, total = self.split.shard_lengths, self.split.num_examples
        if not lengths:
            return Balance(min=None, max=None, mean=None, imbalance=None)
        return Balance(
            min=min(lengths),
            max=max(lengths),
            mean=total / len(lengths),
            imbalance=max(lengths) * len(lengths) / total if total else None,
        )

    @checked
    def shards(self, start: int = 0, stop: int | None = None) -> Iterator[Shard]:
        """Yield shards [start, stop), all of them by default."""
        start = max(start, 0)
        stop = self.split.num_shards if stop is None else min(stop, self.split.num_shards)
        # Columns are made in pieces: names of a million shards at once take memory.
        for first in range(start, stop, _PIECE):
            columns = self.columns(first, min(first + _PIECE, stop))
            yield from map(Shard._make, zip(*columns, strict=True))

    @checked
    def columns(self, start: int, stop: int) -> list[list[Any]]:
        """Return the fields of shards [start, stop) as columns.

        Raises:
            UsageError: there are no such shards.
        """
        if not 0 <= start <= stop <= self.split.num_shards:
            raise UsageError(f"shards {start} to {stop}: there are {self.split.num_shards}")
        sizes = self.split.shard_bytes
        return [
            list(range(start, stop)),
            self.split.filenames_between(start, stop),
            list(self.split.offsets[start:stop]),
            list(self.split.shard_lengths[start:stop]),
            [None] * (stop - start) if sizes is None else list(sizes[start:stop]),
        ]

    def __repr__(self) -> str:
        return repr(self.split).replace("<Split", "<SplitLayout", 1)


@dataclass(frozen=True, kw_only=True)
class Layout(Tabular):
    """The layout of some splits of a dataset, in the order asked."""

    dataset: Dataset
    splits: tuple[SplitLayout, ...]

    def __repr__(self) -> str:
        splits = [
            f"{s.split.name} of {counted(s.split.num_examples, 'example')} in "
            f"{counted(s.split.num_shards, 'shard')}"
            for s in self.splits
        ]
        return in_short(self, self.dataset.title, choices(splits, 4))


@checked
def layout(dataset: DatasetLike, *splits: str) -> Layout:
    """Return which shards make up a split, how large each is, and how even they are.

    Args:
        dataset: a reference as "mnist", a path, a list of these, or a Dataset.
        splits: names of splits, each shown once; all of them for no name or `all`.

    Returns:
        A Layout; `splits[0].shards()` yields the shards of the first split.

    Raises:
        UsageError: no such split, or a subsplit; the message lists the splits there are.

    >>> import shardctl
    >>> found = shardctl.layout("mnist", "test")
    >>> found
    <Layout mnist:3.0.1: test of 10,000 examples in 1 shard>
    >>> [shard.filename for shard in found.splits[0].shards()]
    ['mnist-test.tfrecord-00000-of-00001']
    """
    dataset = as_dataset(dataset)
    chosen = dataset.whole_splits(splits, "layout shows whole splits")
    return Layout(dataset=dataset, splits=tuple(SplitLayout(split=split) for split in chosen))
