"""The shards of splits as pictures: which is the largest, which are empty or missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted
from shardctl.dataset.dataset import Split
from shardctl.draw import quantities
from shardctl.draw.picture import OF_GROUPS, Bar, Paper, Picture, Series, bar_lines
from shardctl.order.shard_map import Bucket, buckets
from shardctl.verbs.layout.answer import Layout, SplitLayout

_MOST_SPLITS = 8
_LARGE = 1.1  # times the mean, above which a shard is highlighted
_CAPTION = "A longer bar is a shard that takes longer to read."
_HIGHLIGHTED = " Highlighted: shards over the mean by more than 10%, empty or missing."


def layout_pictures(layout: Layout, paper: Paper) -> tuple[Picture, ...]:
    """Return for each of the first splits bars of shards; one where none is highlighted."""
    splits = [one for one in layout.splits if one.split.num_examples] or layout.splits[:1]
    rest = len(splits) - _MOST_SPLITS
    more = (f"{counted(rest, 'more split')} not shown; name one to see it",) if rest > 0 else ()
    shown = splits[:_MOST_SPLITS]
    return tuple(
        _split(split, layout.dataset.title, paper, more if split is shown[-1] else ())
        for split in shown
    )


def _split(found: SplitLayout, dataset: str, paper: Paper, more: tuple[str, ...]) -> Picture:
    measures, name, num_shards = _measures(found.split), found.split.name, found.split.num_shards
    remarks = list(_remarks(measures)) if num_shards else []
    groups = buckets(measures[0].values, paper.num_rows(num_shards) if remarks else 1)
    series = [Series(one.name, [one.bar(group) for group in groups]) for one in measures]
    labels = [quantities.numbered(group.first, group.last) for group in groups]
    caption = _CAPTION + _HIGHLIGHTED * bool(remarks)
    caption += OF_GROUPS * (1 < len(groups) < num_shards)
    of = f"{counted(num_shards, 'shard')} of {series[0].bars[0].text} examples" if groups else ""
    return Picture(
        title=f"{name} in {dataset}: {counted(num_shards, 'shard')}",
        caption=caption,
        said=f"{name}: {'; '.join(remarks) or of or 'no shards'}.",
        marks=tuple(bar_lines(f"{name}: shard", labels, series, paper)),
        warnings=(*remarks, *more),
    )


@dataclass(frozen=True, kw_only=True)
class _Measure:
    """How large each shard is by its examples, or by its file: int64[n], bool[n].

    values: 0 where `known` is not set. lacking: which shards have none, and what that is called.
    """

    name: Literal["examples", "bytes"]
    values: Int64s
    known: NDArray[np.bool_]
    lacking: NDArray[np.bool_]
    lacks: str

    @cached_property
    def largest(self) -> int | None:
        """The first of the largest shards, None where it is no larger than others should be."""
        if np.ptp(self.values) <= 1 or self.over <= _LARGE:  # shards cut evenly differ by 1
            return None
        return int(self.values.argmax())

    @property
    def over(self) -> float:
        """The largest size over the mean."""
        return float(self.values.max() / self.values[self.known].mean())

    def bar(self, group: Bucket) -> Bar:
        """Return the bar of some shards, with words where one of them is highlighted."""
        here = slice(group.first, group.last + 1)
        known, lacking = self.values[here][self.known[here]], int(self.lacking[here].sum())
        largest = self.largest
        words = ["most"] if largest is not None and group.first <= largest <= group.last else []
        if lacking:
            all_of_them = lacking == group.last - group.first + 1
            words.append(self.lacks if all_of_them else f"{lacking:,} {self.lacks}")
        least, most = (int(known.min()), int(known.max())) if len(known) else (0, 0)
        between = quantities.counts_between if self.name == "examples" else quantities.bytes_between
        text = between(least, most) if len(known) else "-"
        return Bar(least, most, text, ", ".join(words))


def _measures(split: Split) -> list[_Measure]:
    lengths, sizes = split.lengths64(), split.shard_bytes
    known, empty = np.ones(len(lengths), np.bool_), np.equal(lengths, 0)
    found = [_Measure(name="examples", values=lengths, known=known, lacking=empty, lacks="empty")]
    if sizes is not None:
        known = np.fromiter((size is not None for size in sizes), np.bool_, len(sizes))
        # Files that are not here count as missing, unless the shard is empty.
        values, missing = np.fromiter((size or 0 for size in sizes), np.int64), ~(known | empty)
        found.append(
            _Measure(name="bytes", values=values, known=known, lacking=missing, lacks="missing")
        )
    return found


def _remarks(measures: Sequence[_Measure]) -> Iterator[str]:
    """Yield which shards are highlighted, each a sentence without its dot."""
    for one in measures:
        if one.largest is not None:
            most = int(one.values[one.largest])
            who = quantities.subject("shard", np.flatnonzero(one.values == most), "has", "have")
            how = f"the most: {counted(most, 'example')}"
            if one.name == "bytes":
                how = f"the largest file: {quantities.human_bytes(most)}"
            yield f"{who} {how} ({quantities.percent_over(one.over - 1)} over the mean)"
    for one in measures:
        if one.lacking.any():
            who = quantities.subject("shard", np.flatnonzero(one.lacking), "is", "are")
            yield f"{who} {one.lacks}"
