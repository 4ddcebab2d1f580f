"""The shards of splits as pictures: how many examples and bytes each has, which stand out."""

from __future__ import annotations

from collections.abc import Sequence

from shardctl.core.text import counted, first_upper
from shardctl.planning.layout import Layout, SplitLayout
from shardctl.planning.shard_map import Bucket, buckets
from shardctl.rendering.pictures.axes import round_ticks
from shardctl.rendering.pictures.bars import sentences
from shardctl.rendering.pictures.panel import (
    MOST_COLUMNS,
    Panel,
    PanelRow,
    byte_ticks,
    count_text,
    draw_panels,
    groups_note,
)
from shardctl.rendering.pictures.picture import Numbers, Picture
from shardctl.rendering.text.quantities import (
    bytes_between,
    counts_between,
    numbered,
)
from shardctl.rendering.text.shards import Shards, told

_MOST_SPLITS = 8

_CAPTION = (
    "Equal bars are shards that take equally long to read. A host that is given a larger one has "
    "more to do than the others."
)


def layout_pictures(layout: Layout) -> tuple[Picture, ...]:
    """Return a picture for each of the first splits: the examples, and the bytes, of its shards."""
    shown = layout.splits[:_MOST_SPLITS]
    rest = len(layout.splits) - len(shown)
    note = f"{counted(rest, 'more split')} not shown; name one to see it." if rest else ""
    return tuple(
        _split_picture(split, number, layout.dataset.title, note if split is shown[-1] else "")
        for number, split in enumerate(shown)
    )


def _split_picture(split: SplitLayout, number: int, dataset: str, rest: str) -> Picture:
    shards, num_shards = Shards(split.split), split.split.num_shards
    groups = buckets(shards.lengths, MOST_COLUMNS)
    said = [f"{first_upper(line)}." for line in told(shards)] if num_shards else []
    balance, name = split.balance, split.split.name
    summary = f"{name} has {counted(split.split.num_examples, 'example')} in "
    summary += counted(num_shards, "shard")
    if balance.min is not None and balance.max is not None:
        summary += f", {counts_between(balance.min, balance.max)} in each"
    of = "shard" if num_shards == len(groups) else "shard, the first of a group"
    drawn = draw_panels(_panels(shards, groups), of=of)
    words = sentences(said or [f"{summary}."], top=drawn.bottom)
    return Picture(
        name=f"layout-{number}",
        title=f"{name} in {dataset}: {counted(num_shards, 'shard')}",
        caption=_CAPTION,
        alternative=" ".join([f"{summary}.", *said]),
        height=words.bottom,
        marks=(*drawn.marks, *words.marks),
        numbers=_numbers(shards, groups),
        note=" ".join(filter(None, (groups_note("shard", groups), rest))) or None,
    )


def _panels(shards: Shards, groups: Sequence[Bucket]) -> list[Panel]:
    lengths, sizes = shards.lengths, shards.sizes
    panels = []
    if len(groups) and lengths.any():
        most = int(lengths.max())
        panels.append(
            Panel(
                title="examples in a shard",
                rows=[_examples(shards, group) for group in groups],
                ticks=round_ticks(0, most, most=3, whole=True),
                mean=float(lengths.mean()),
            )
        )
    if sizes is not None and sizes.any():
        ticks, unit = byte_ticks(float(sizes.max()))
        panels.append(
            Panel(
                title=f"{unit} in the file of a shard",
                rows=[_bytes(shards, group) for group in groups],
                ticks=ticks,
                mean=float(sizes[shards.are_known].mean()),
            )
        )
    return panels


def _examples(shards: Shards, group: Bucket) -> PanelRow:
    least, most = int(group.min), int(group.max)
    return _shown(
        group,
        (least, most),
        count_text(least, most),
        f"{counts_between(least, most)} examples",
        shards.words(group.first, group.last, of_files=False),
    )


def _bytes(shards: Shards, group: Bucket) -> PanelRow:
    known = shards.sizes_between(group.first, group.last)
    text = bytes_between(*known) if known else "-"
    return _shown(
        group,
        known or (0, 0),
        text,
        text,
        shards.words(group.first, group.last, of_files=True),
    )


def _shown(
    group: Bucket, ends: tuple[int, int], text: str, said: str, words: Sequence[str]
) -> PanelRow:
    shards = f"shard{'s' if group.count > 1 else ''} {numbered(group.first, group.last)}"
    return PanelRow(
        name=str(group.first),
        label=shards,
        least=ends[0],
        most=ends[1],
        text=text,
        title=f"{shards}: {said}",
        word=", ".join(words),
    )


def _numbers(shards: Shards, groups: Sequence[Bucket]) -> Numbers:
    """Return the numbers of each shard, or of each group of them."""
    has_sizes = shards.sizes is not None
    if all(group.count == 1 for group in groups):
        headings: tuple[str, ...] = ("shard", "examples")
    else:
        headings = ("shards", "examples, least", "examples, most", "examples, mean")
    headings += ("bytes, least", "bytes, most") if has_sizes and len(headings) > 2 else ()
    headings += ("bytes",) if has_sizes and len(headings) == 2 else ()
    rows: list[tuple[object, ...]] = []
    for group in groups:
        sizes = shards.sizes_between(group.first, group.last) or (None, None)
        if headings[0] == "shard":
            rows.append((group.first, int(group.min), *([sizes[0]] if has_sizes else [])))
        else:
            figures = (int(group.min), int(group.max), group.mean)
            name = numbered(group.first, group.last)
            rows.append((name, *figures, *(sizes if has_sizes else ())))
    return Numbers(headings=headings, rows=rows)
