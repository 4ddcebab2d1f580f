"""The shards of splits as bars in a terminal: which is the largest, which are empty or missing."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted
from shardctl.planning.layout import Layout
from shardctl.planning.shard_map import Bucket, buckets
from shardctl.rendering.terminal.bars import Bar, Series, bar_lines, beside, num_rows
from shardctl.rendering.text.quantities import bytes_between, counts_between, numbered
from shardctl.rendering.text.shards import Shards, told
from shardctl.rendering.text.tables import Screen, paragraph

_MOST_SPLITS = 8

_WHAT_TO_SEE = "To see: bars of one length are shards that take equally long to read."
_OF_GROUPS = " Of a group of shards the full part is the least, the shaded part the most."


def shard_bars(layout: Layout, screen: Screen) -> Iterator[str]:
    """Yield for each split a bar a shard, or group of shards; where all are alike, one for all."""
    splits = [one.split for one in layout.splits if one.split.num_examples]
    grouped = any(num_rows(split.num_shards) < split.num_shards for split in splits)
    yield paragraph(_WHAT_TO_SEE + (_OF_GROUPS if grouped else ""), beside(screen))
    for split in splits[:_MOST_SPLITS]:
        yield "\n"
        yield paragraph(f"{split.name}:", beside(screen), style="bold")
        yield from _split(Shards(split), screen)
    if (rest := len(splits) - _MOST_SPLITS) > 0:
        yield "\n"
        yield paragraph(f"… {counted(rest, 'more split')}; name one to see it", beside(screen))


def _split(shards: Shards, screen: Screen) -> Iterator[str]:
    remarks = list(told(shards))
    rows = num_rows(len(shards.lengths)) if remarks else 1
    groups = buckets(shards.lengths, rows)
    labels = [numbered(group.first, group.last) for group in groups]
    series = [Series(heading="examples", bars=[_examples(shards, group) for group in groups])]
    if shards.sizes is not None:
        sizes = [_bytes(shards, group) for group in groups]
        series.append(Series(heading="bytes", bars=sizes))
    yield from bar_lines("shard", labels, series, screen)
    for remark in remarks:
        yield paragraph(remark, beside(screen), style="warning")


def _examples(shards: Shards, group: Bucket) -> Bar:
    least, most = int(group.min), int(group.max)
    words = shards.words(group.first, group.last, of_files=False)
    return Bar(
        least=least,
        most=most,
        text=counts_between(least, most),
        word=", ".join(words),
        look="warning" if words else "",
    )


def _bytes(shards: Shards, group: Bucket) -> Bar:
    known = shards.sizes_between(group.first, group.last)
    least, most = known or (0, 0)
    words = shards.words(group.first, group.last, of_files=True)
    is_wrong = shards.are_missing[group.first : group.last + 1].any()
    return Bar(
        least=least,
        most=most,
        text="-" if known is None else bytes_between(least, most),
        word=", ".join(words),
        look="error" if is_wrong else "warning" if words else "",
    )
