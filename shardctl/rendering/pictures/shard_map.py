"""The heat map of shards by position: which of them feed which part of an epoch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.text import counted
from shardctl.planning.quality.sample import Floats
from shardctl.planning.shard_map import ShardMap
from shardctl.rendering.pictures.axes import GAP, LINE_HEIGHT, Axis, Drawn, Tick, named_ticks, plane
from shardctl.rendering.pictures.bars import levels_key, sentences
from shardctl.rendering.pictures.picture import (
    NUM_LEVELS,
    TEXT,
    Cells,
    Label,
    Line,
    Numbers,
    Picture,
    text_width,
)

FEW = 24  # shards of which each has several rows where what lies within it is known
_HEIGHT = 216.0
_IN_A_CELL = 12  # examples on average, with less of which a uniform permutation is no even shade
_LEAST_COLUMNS = 12
_IN_TABLE = 8  # columns of the numbers
# Times what a uniform permutation shows, from which on a cell has the next level: what is around 1
# has one level, whatever chance does to it.
_STEPS = np.array([0.0, 0.25, 0.6, 1.6, 2.5, 4.0, 8.0, 16.0])
_MOSTLY = 0.75  # of all cells, with which of one level the map looks even
_EVEN = 3  # the level of what is as uniform
assert len(_STEPS) == NUM_LEVELS


def shard_map_picture(shard_map: ShardMap, *, pieces: int = 1) -> Picture:
    """Return a heat map: a column a part of the epoch, a row a group of shards, the first above.

    Of one shard there is none: every order of it would be one even shade. `pieces` is how many rows
    each shard has, where a row is a part of a shard.
    """
    if len(shard_map.rows) == 1:
        return _of_one_shard(shard_map)
    shown = _merged(shard_map, _columns_to_draw(shard_map))
    num_rows, num_columns = shown.counts.shape
    key = _key()
    field = plane(
        Axis(first=0, last=shard_map.num_positions, title="position in the epoch", whole=True),
        Axis(
            first=num_rows,
            last=0,
            title=_rows_title(shard_map, pieces),
            ticks=_ticks(shard_map, pieces),
        ),
        top=key.bottom,
        height=_HEIGHT,
    )
    cells = Cells(
        x=field.x.start,
        y=field.y.end,
        cell_width=(field.x.end - field.x.start) / num_columns,
        cell_height=_HEIGHT / num_rows,
        levels=levels(shown.times),
    )
    return Picture(
        name="shard-map",
        title="Which shards feed which part of the epoch",
        caption="A diagonal is the order of storage, one even shade a uniform permutation; "
        "patches are examples stored together that come together.",
        alternative=_in_words(shard_map, pieces),
        height=field.bottom,
        marks=(*key.marks, cells, *field.marks),
        numbers=_numbers(shard_map),
        note=_note(shard_map, pieces),
    )


def _of_one_shard(shard_map: ShardMap) -> Picture:
    text = (
        f"One shard feeds all {shard_map.num_positions:,} positions, so there is no pattern of "
        "shards to see; how well examples are mixed within it is in the score."
    )
    words = sentences([text], top=0)
    return Picture(
        name="shard-map",
        title="Which shards feed which part of the epoch",
        caption="Of several shards this is a heat map of shards by position.",
        alternative=text,
        height=words.bottom,
        marks=words.marks,
        numbers=_numbers(shard_map),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Merged:
    """Columns made fewer: counts, and these as times what a uniform permutation has on average."""

    counts: Int64s
    times: Floats
    columns: tuple[tuple[int, int], ...]


def _merged(shard_map: ShardMap, num_columns: int) -> _Merged:
    columns = shard_map.columns
    starts = np.arange(num_columns) * len(columns) // num_columns
    stops = [*starts[1:].tolist(), len(columns)]
    counts = np.add.reduceat(shard_map.counts, starts, axis=1)
    measured = np.add.reduceat(shard_map.measured, starts)
    uniform = shard_map.expected[:, None] * measured
    return _Merged(
        counts=counts,
        times=counts / np.where(uniform > 0, uniform, 1.0),
        columns=tuple(
            (columns[start][0], columns[stop - 1][1])
            for start, stop in zip(starts.tolist(), stops, strict=True)
        ),
    )


def _columns_to_draw(shard_map: ShardMap) -> int:
    """Return how many columns there are room for with enough examples in a cell.

    They divide those of the map, so that all are alike wide.
    """
    num_rows, num_columns = shard_map.counts.shape
    enough = int(shard_map.measured.sum()) // (_IN_A_CELL * num_rows)
    least = min(num_columns, _LEAST_COLUMNS)
    fitting = [n for n in range(least, num_columns + 1) if num_columns % n == 0]
    return max((n for n in fitting if n <= enough), default=fitting[0])


def levels(times: Floats) -> Int64s:
    """Return levels of cells that have so many times what a uniform permutation has on average.

    >>> levels(np.array([[0, 0.1, 0.9, 1.1, 50]])).tolist()
    [[0, 1, 3, 3, 8]]
    """
    found = np.searchsorted(_STEPS, times, side="right")
    return np.where(times > 0, found, 0).astype(np.int64)


def is_even(picture: Picture) -> bool:
    """Whether a picture of shards by position looks like that of a uniform permutation."""
    maps = [mark.levels for mark in picture.marks if isinstance(mark, Cells)]
    return len(maps) > 1 and bool((maps[-1] == _EVEN).mean() > _MOSTLY)  # the first is the key


def _key() -> Drawn:
    """Return what the levels mean, with a mark at that of a uniform permutation."""
    low, high, even = "none", f"{_STEPS[-1]:.0f} times as many as uniform, or more", "uniform"
    row = levels_key(low, high)
    cells = next(mark for mark in row.marks if isinstance(mark, Cells))
    x = cells.x + (_EVEN + 0.5) * cells.cell_width
    y = cells.y + cells.cell_height
    left = max(0.0, x - text_width(even) / 2)
    return Drawn(
        (
            *row.marks,
            Line(points=((x, y), (x, y + 5)), role="axis"),
            Label(x=left, y=y + 5 + TEXT, text=even, quiet=True),
        ),
        row.bottom + LINE_HEIGHT + GAP,
    )


def _rows_title(shard_map: ShardMap, pieces: int) -> str:
    if pieces > 1:
        return f"shard, in {pieces} parts, in the order of storage"
    each = "shard" if len(shard_map.rows) == shard_map.num_shards else "shards, in groups"
    return f"{each}, in the order of storage"


def _ticks(shard_map: ShardMap, pieces: int) -> tuple[Tick, ...]:
    if pieces == 1:
        return named_ticks(shard_map.labels)
    names = [label.rpartition(" (")[0] for label in shard_map.labels[::pieces]]
    return tuple(Tick((at + 0.5) * pieces, name) for at, name in enumerate(names))


def _in_words(shard_map: ShardMap, pieces: int) -> str:
    num_rows, num_columns = shard_map.counts.shape
    fed = np.count_nonzero(shard_map.counts, axis=0)
    # A group is missed by every one of the examples, of a uniform permutation.
    missed = (1 - shard_map.expected[:, None]) ** shard_map.measured
    uniform = float((1 - missed).sum(axis=0).mean())
    middle = np.cumsum(shard_map.expected) - shard_map.expected / 2
    place = middle @ shard_map.counts / np.maximum(shard_map.measured, 1)
    what = "shards" if num_rows == shard_map.num_shards else "groups of shards"
    what = what if pieces == 1 else "parts of shards"
    between = f"{fed.min()} to {fed.max()}" if fed.min() != fed.max() else f"{fed.min()}"
    return (
        f"Of {num_rows} {what} each of {counted(num_columns, 'equal part')} of the epoch has "
        f"examples of {between}, on average {fed.mean():.1f}; of a uniform permutation it would "
        f"have those of {uniform:.1f}. Their mean place in storage, from 0 to 1, is "
        f"{place[0]:.2f} at the start of the epoch, {place.min():.2f} to {place.max():.2f} within "
        f"it and {place[-1]:.2f} at its end; of a uniform permutation 0.50 everywhere."
    )


def _numbers(shard_map: ShardMap) -> Numbers:
    few = _merged(shard_map, min(_IN_TABLE, shard_map.counts.shape[1]))
    headings = [f"{start:,}–{stop - 1:,}" for start, stop in few.columns]
    rows = zip(shard_map.labels, shard_map.expected, few.counts.tolist(), strict=True)
    return Numbers(
        headings=("shards", "part of all", *headings),
        rows=[(label, f"{expected:.4f}", *counts) for label, expected, counts in rows],
    )


def _note(shard_map: ShardMap, pieces: int) -> str | None:
    said = []
    if pieces == 1 and len(shard_map.rows) < FEW:
        said.append("How well each of so few shards is mixed within is in the score.")
    if len(shard_map.rows) < shard_map.num_shards:
        said.append(f"{shard_map.num_shards:,} shards are in {len(shard_map.rows)} groups.")
    sampled = shard_map.sampled
    if sampled is not None:
        drawn = ", the buffer drawn at random" if sampled.buffer_drawn else ""
        said.append(
            f"{counted(sampled.num_examples, 'position')} of {shard_map.num_positions:,} are "
            f"looked up{drawn}."
        )
    return " ".join(said) or None
