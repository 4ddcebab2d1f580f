"""Ranges of a split: what a spec resolves to, one for each part of its sum."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from shardctl.base.arguments.checked import keep_fields
from shardctl.dataset.dataset import Split


@dataclass(frozen=True, kw_only=True, slots=True)
class SplitRange:
    """The examples [start, stop) of one split."""

    split: Split
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not (type(self.start) is type(self.stop) is int):
            keep_fields(self)
        if not 0 <= self.start <= self.stop <= self.split.num_examples:
            keep_fields(self)
            raise ValueError(f"[{self.start}, {self.stop}) is not a range of {self.split.name}")

    @property
    def num_examples(self) -> int:
        """Number of examples in the range."""
        return self.stop - self.start

    def shards(self) -> range:
        """Return the indices of the shards the range touches, empty ones between included."""
        if self.start == self.stop:
            return range(0)
        offsets = self.split.offsets
        return range(bisect_right(offsets, self.start) - 1, bisect_left(offsets, self.stop))
