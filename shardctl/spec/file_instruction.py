"""File instructions: which examples to read from which file, as TFDS's reader takes them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from shardctl.base.arguments.checked import keep_fields
from shardctl.base.on_demand import OnDemand
from shardctl.base.tfds_rules import INT64_MAX
from shardctl.dataset.dataset import Split
from shardctl.errors import UsageError
from shardctl.spec.split_range import SplitRange

_PIECE = 1 << 14  # instructions made at once


@dataclass(frozen=True, kw_only=True, slots=True)
class FileInstruction:
    """Skip `skip` examples of a file, then take `take` (TFDS core/utils/shard_utils.py).

    `first_id` counts the first example that is read from the start of its split.
    """

    filename: str
    split: str
    skip: int
    take: int
    examples_in_shard: int
    first_id: int

    def __post_init__(self) -> None:
        if self._is_plain and self._fits:
            return  # soon, as there may be millions of them
        keep_fields(self)
        if not self._fits:
            raise UsageError(
                f"skip={self.skip} and take={self.take} do not fit "
                f"examples_in_shard={self.examples_in_shard} and first_id={self.first_id}"
            )

    @property
    def last_id(self) -> int:
        """The last example that is read, counted as the first is."""
        return self.first_id + self.take - 1

    @property
    def _is_plain(self) -> bool:
        numbers = type(self.skip) is type(self.take) is type(self.examples_in_shard) is int
        texts = type(self.filename) is type(self.split) is str
        return numbers and texts and type(self.first_id) is int

    @property
    def _fits(self) -> bool:
        fits = self.skip >= 0 <= self.take and self.skip + self.take <= self.examples_in_shard
        return fits and 0 <= self.first_id <= INT64_MAX - self.examples_in_shard + self.skip


def file_instructions(ranges: Sequence[SplitRange]) -> OnDemand[FileInstruction]:
    """Return the file instructions that read the ranges, in order, each made when it is asked for.

    Empty shards get none, as in TFDS (core/utils/shard_utils.py, get_file_instructions). The cost
    is that of the shards touched, after one search a range.

    Raises:
        DatasetError: examples are read of a split that names no files.

    >>> from shardctl.dataset.dataset import Split
    >>> from shardctl.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-train-\\0", num_shards=3)
    >>> split = Split.even(name="train", num_examples=10, num_shards=3, files=(files,))
    >>> for i in file_instructions([SplitRange(split=split, start=2, stop=8)]):
    ...     print(i.filename, i.skip, i.take, i.examples_in_shard, i.first_id)
    d-train-00000 2 1 3 2
    d-train-00001 0 4 4 3
    d-train-00002 0 1 3 7
    """
    for piece in ranges:
        if piece.num_examples:
            piece.split.check_named()
    touched = [piece.shards() for piece in ranges]
    counts = [num_read(piece.split, shards) for piece, shards in zip(ranges, touched, strict=True)]
    ends = list(accumulate(counts))

    def make(index: int) -> FileInstruction:
        number = bisect_right(ends, index)
        shards, place = touched[number], index - ends[number] + counts[number]
        if counts[number] < len(shards):  # shards without examples are left out
            lengths = ranges[number].split.shard_lengths
            shard = next(islice(filter(lengths.__getitem__, shards), place, None))
        else:
            shard = shards[place]
        return next(_of_shards(ranges[number], range(shard, shard + 1)))

    def make_all() -> Iterator[FileInstruction]:
        for piece, shards in zip(ranges, touched, strict=True):
            for start in range(0, len(shards), _PIECE):
                yield from _of_shards(piece, shards[start : start + _PIECE])

    return OnDemand(sum(counts), make, make_all)


def num_read(split: Split, shards: range) -> int:
    """Return how many of these shards of a split hold examples.

    >>> from shardctl.dataset.dataset import Split
    >>> num_read(Split(name="train", shard_lengths=(3, 0, 4)), range(1, 3))
    1
    """
    num_empty = split.num_empty_shards
    if num_empty:
        num_empty = split.shard_lengths[shards.start : shards.stop].count(0)
    return len(shards) - num_empty


def _of_shards(piece: SplitRange, shards: range) -> Iterator[FileInstruction]:
    split = piece.split
    run = slice(shards.start, shards.stop)
    for filename, length, offset in zip(
        split.filenames_between(shards.start, shards.stop),
        split.shard_lengths[run],
        split.offsets[run],
        strict=True,
    ):
        if not length:
            continue
        start = max(piece.start, offset)
        yield FileInstruction(
            filename=filename,
            split=split.name,
            skip=start - offset,
            take=min(piece.stop, offset + length) - start,
            examples_in_shard=length,
            first_id=start,
        )
