"""The shards of splits as pictures: which is the largest, which are empty or missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.dataset.dataset import Split
from shardctl.draw.picture import Bar, Paper, Picture, Series, bar_lines
from shardctl.draw.quantities import (
    bytes_between,
    counts_between,
    human_bytes,
    numbered,
    percent_over,
    subject,
)
from shardctl.order.shard_map import Bucket, buckets
from shardctl.verbs.layout.answer import Layout, SplitLayout

_MOST_SPLITS = 8
_ALIKE = "bars of one length are shards that take equally long to read."
_OF_GROUPS = " Of a group of shards the full part is the least, the shaded part the most."


def layout_pictures(layout: Layout, paper: Paper) -> tuple[Picture, ...]:
    """Return for each of the first splits a bar a shard, or group; where all are alike, one."""
    splits = [one for one in layout.splits if one.split.num_examples] or layout.splits[:1]
    rest = len(splits) - _MOST_SPLITS
    more = (f"{counted(rest, 'more split')} not shown; name one to see it",) if rest > 0 else ()
    shown = splits[:_MOST_SPLITS]
    return tuple(
        _split(split, number, layout.dataset.title, paper, more if split is shown[-1] else ())
        for number, split in enumerate(shown)
    )


def _split(
    found: SplitLayout, number: int, dataset: str, paper: Paper, more: tuple[str, ...]
) -> Picture:
    shards, name, num_shards = Shards(found.split), found.split.name, found.split.num_shards
    remarks = list(remarks_on(shards)) if num_shards else []
    groups = buckets(shards.lengths, paper.num_rows(num_shards) if remarks else 1)
    series = [Series("examples", [_bar(shards, group, of_files=False) for group in groups])]
    if shards.sizes is not None:
        series.append(Series("bytes", [_bar(shards, group, of_files=True) for group in groups]))
    labels = [numbered(group.first, group.last) for group in groups]
    grouped = _OF_GROUPS if remarks and len(groups) < num_shards else ""
    return Picture(
        name=f"layout-{number}",
        title=f"{name} in {dataset}: {counted(num_shards, 'shard')}",
        caption=f"{_ALIKE}{grouped}",
        marks=tuple(bar_lines(f"{name}: shard", labels, series, paper)),
        warnings=(*remarks, *more),
    )


def _bar(shards: Shards, group: Bucket, *, of_files: bool) -> Bar:
    words = ", ".join(shards.words(group.first, group.last, of_files=of_files))
    if not of_files:
        least, most = int(group.min), int(group.max)
        return Bar(least, most, counts_between(least, most), words)
    known = shards.sizes_between(group.first, group.last)
    least, most = known or (0, 0)
    return Bar(least, most, "-" if known is None else bytes_between(least, most), words)


# What stands out among the shards of a split, said alike by bars and pictures.

Bools = NDArray[np.bool_]

_EVEN = 1  # example by which the shards of a split differ that is cut evenly


@dataclass(frozen=True)
class Shards:
    """The shards of a split that has some: int64[num_shards] and bool[num_shards]."""

    split: Split

    @cached_property
    def lengths(self) -> Int64s:
        """Examples of each shard."""
        return self.split.lengths64()

    @cached_property
    def sizes(self) -> Int64s | None:
        """Bytes of each shard's file, 0 where it is not known; None where none is."""
        sizes = self.split.shard_bytes
        if sizes is None:
            return None
        return np.fromiter((size or 0 for size in sizes), np.int64, len(sizes))

    @cached_property
    def are_empty(self) -> Bools:
        """Which shards hold no examples."""
        return np.equal(self.lengths, 0)

    @cached_property
    def are_known(self) -> Bools:
        """Of which shards the size of the file is known."""
        sizes = self.split.shard_bytes
        if sizes is None:
            return np.zeros(len(self.lengths), np.bool_)
        return np.fromiter((size is not None for size in sizes), np.bool_, len(sizes))

    @cached_property
    def are_missing(self) -> Bools:
        """Which shards hold examples, but have no file where the others have theirs."""
        if self.sizes is None:
            return self.are_known
        return ~(self.are_known | self.are_empty)

    @cached_property
    def largest(self) -> int | None:
        """The first shard with the most examples, None where all have as many, give or take one."""
        lengths = self.lengths
        return int(lengths.argmax()) if np.ptp(lengths) > _EVEN else None

    @cached_property
    def largest_file(self) -> int | None:
        """The first shard with the most bytes, None where all have as many or none is known."""
        sizes = self.sizes
        return None if sizes is None or not np.ptp(sizes) else int(sizes.argmax())

    def sizes_between(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the least and the most bytes of shards first..last, None where none is known."""
        if self.sizes is None:
            return None
        known = self.sizes[first : last + 1][self.are_known[first : last + 1]]
        return (int(known.min()), int(known.max())) if len(known) else None

    def words(self, first: int, last: int, *, of_files: bool) -> list[str]:
        """Return how shards first..last stand out, by their examples or by their files."""
        largest = self.largest_file if of_files else self.largest
        which, word = (self.are_missing, "missing") if of_files else (self.are_empty, "empty")
        words = ["most"] if largest is not None and first <= largest <= last else []
        if number := int(which[first : last + 1].sum()):
            words.append(word if number == last - first + 1 else f"{number:,} {word}")
        return words


def remarks_on(shards: Shards) -> Iterator[str]:
    """Yield which shards stand out, each a sentence without its dot."""
    lengths, largest = shards.lengths, shards.largest
    if largest is not None:
        who = subject("shard", np.flatnonzero(lengths == lengths[largest]), "has", "have")
        most, over = int(lengths[largest]), percent_over(_over_mean(lengths))
        yield f"{who} the most: {counted(most, 'example')} ({over} over the mean)"
    sizes, largest = shards.sizes, shards.largest_file
    if sizes is not None and largest is not None:
        who = subject("shard", np.flatnonzero(sizes == sizes[largest]), "has", "have")
        most, over = int(sizes[largest]), percent_over(_over_mean(sizes[shards.are_known]))
        yield f"{who} the largest file: {human_bytes(most)} ({over} over the mean)"
    for which, word in ((shards.are_empty, "empty"), (shards.are_missing, "missing")):
        if which.any():
            yield f"{subject('shard', np.flatnonzero(which), 'is', 'are')} {word}"


def _over_mean(values: Int64s) -> float:
    return float(values.max()) / float(values.mean()) - 1
