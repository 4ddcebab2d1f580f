"""The shards of splits as pictures: which is the largest, which are empty or missing."""

from __future__ import annotations

from shardctl.core.text import counted
from shardctl.planning.layout import Layout, SplitLayout
from shardctl.planning.shard_map import Bucket, buckets
from shardctl.rendering.text.picture import Bar, Paper, Picture, Series, bar_lines
from shardctl.rendering.text.quantities import bytes_between, counts_between, numbered
from shardctl.rendering.text.shards import Shards, told

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
    remarks = list(told(shards)) if num_shards else []
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
