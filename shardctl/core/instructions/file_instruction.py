"""File instructions: which examples to read from which file, as TFDS's reader takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shardctl.core.arguments.checked import keep_fields
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.text import quoted
from shardctl.core.tfds_rules import INT64_MAX
from shardctl.errors import DatasetError, UsageError


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
    def _is_plain(self) -> bool:
        numbers = type(self.skip) is type(self.take) is type(self.examples_in_shard) is int
        texts = type(self.filename) is type(self.split) is str
        return numbers and texts and type(self.first_id) is int

    @property
    def _fits(self) -> bool:
        fits = self.skip >= 0 <= self.take and self.skip + self.take <= self.examples_in_shard
        return fits and 0 <= self.first_id <= INT64_MAX - self.examples_in_shard + self.skip

    @property
    def takes_all(self) -> bool:
        """Whether everything after the skipped examples is read, as TFDS names it."""
        return self.skip + self.take == self.examples_in_shard


def file_instructions(ranges: Sequence[SplitRange]) -> tuple[FileInstruction, ...]:
    """Return the file instructions that read the ranges, in order.

    Empty shards get none, as in TFDS (core/utils/shard_utils.py, get_file_instructions). The cost
    is that of the shards touched, after one search a range.

    >>> from shardctl.core.dataset.dataset import Split
    >>> from shardctl.core.dataset.shard_files import ShardFiles
    >>> files = ShardFiles(pattern="d-train-\\0", num_shards=3)
    >>> split = Split.even(name="train", num_examples=10, num_shards=3, files=(files,))
    >>> for i in file_instructions([SplitRange(split=split, start=2, stop=8)]):
    ...     print(i.filename, i.skip, i.take, i.examples_in_shard, i.first_id)
    d-train-00000 2 1 3 2
    d-train-00001 0 4 4 3
    d-train-00002 0 1 3 7
    """
    return tuple(instruction for piece in ranges for instruction in _of_range(piece))


def _of_range(piece: SplitRange) -> Iterator[FileInstruction]:
    split, offsets, lengths = piece.split, piece.split.offsets, piece.split.shard_lengths
    if piece.num_examples and not split.files:
        raise DatasetError(f"split {quoted(split.name)} names no files")
    touched = piece.shards()
    names = split.filenames_between(touched.start, touched.stop)
    for index, filename in zip(touched, names, strict=True):
        length = lengths[index]
        if not length:
            continue
        offset = offsets[index]
        start = max(piece.start, offset)
        yield FileInstruction(
            filename=filename,
            split=split.name,
            skip=start - offset,
            take=min(piece.stop, offset + length) - start,
            examples_in_shard=length,
            first_id=start,
        )
