"""The files of one split as hosts meet them: which hold what, and bytes of what is read."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from shardctl.core.arrays import Int64s, last_not_above
from shardctl.core.dataset.dataset import Split


class SplitFiles:
    """The files of a split: which holds an example, how many hold any, what reading them takes.

    `base` is the number of the split's first file among the files with examples of all splits.
    """

    def __init__(self, split: Split, base: int = 0) -> None:
        self.split = split
        self.offsets = split.offsets64()
        self._base = base

    @property
    def num_files(self) -> int:
        """Number of files with examples."""
        return self.split.num_shards - self.split.num_empty_shards

    @property
    def knows_bytes(self) -> bool:
        """Whether it is known how many bytes are read."""
        return self.split.num_bytes is not None or self.sizes is not None

    def shards_of(self, ids: Int64s) -> Int64s:
        """Return the shards that hold examples, int64[q] each."""
        return last_not_above(self.offsets, ids)

    def numbers_of(self, shards: Int64s) -> Int64s:
        """Return the numbers of files with examples, int64[q] each, counted over all splits."""
        return self._base + (shards if self._ranks is None else self._ranks[shards])

    @cached_property
    def sizes(self) -> Int64s | None:
        """The size of each file that holds examples, int64[num_shards], None where one is unknown.

        That of the others, which nobody opens, is 0.
        """
        split = self.split
        if split.shard_bytes is None:
            return None
        pairs = zip(split.shard_bytes, split.shard_lengths, strict=True)
        sizes = [size if length else 0 for size, length in pairs]
        return None if None in sizes else np.array(sizes, np.int64)

    def bytes_of(self, shards: Int64s, num_read: Int64s) -> Int64s:
        """Return the bytes of the first so many examples of files whose sizes are known."""
        assert self.sizes is not None
        return _share(self.sizes[shards], num_read, self.split.lengths64()[shards])

    def bytes_between(self, first: Int64s, last: Int64s, stop: Int64s) -> Int64s:
        """Return the bytes of files [first, last], each whole but for the last, read up to `stop`.

        `stop` is the id behind the last example; int64[q] each.
        """
        whole = self._sums[last] - self._sums[first]
        return whole + self.bytes_of(last, stop - self.offsets[last])

    def stated_bytes(self, num_read: Int64s) -> Int64s:
        """Return the bytes of so many examples, by what the metadata states for the split."""
        assert self.split.num_bytes is not None
        # Parts that overlap read more than there is, and `_share` needs a part of a whole.
        whole, rest = np.divmod(num_read, self.split.num_examples)
        of_rest = _share(np.int64(self.split.num_bytes), rest, np.int64(self.split.num_examples))
        return whole * self.split.num_bytes + of_rest

    @cached_property
    def _ranks(self) -> Int64s | None:
        """How many files before each hold examples, None where all do."""
        if not self.split.num_empty_shards:
            return None
        return np.cumsum(self.split.lengths64() > 0) - 1

    @cached_property
    def _sums(self) -> Int64s:
        """The bytes of the files before each, int64[num_shards]; as all sums, modulo 2**64."""
        assert self.sizes is not None
        return np.cumsum(self.sizes) - self.sizes


def _share(amount: Int64s | np.int64, part: Int64s, whole: Int64s | np.int64) -> Int64s:
    """Return amount * part / whole, halves rounded up, without overflow: part is within whole."""
    quotient, rest = np.divmod(amount, whole)
    fraction = np.floor(rest.astype(np.float64) * part / whole + 0.5).astype(np.int64)
    share: Int64s = quotient * part + fraction
    return share
