"""How an order is shuffled as pictures: what feeds what, the score over the epoch, what would help.

A picture of the whole order says what a figure cannot: whether it follows storage, in lumps, or
without a pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from shardctl.core.arrays import last_not_above
from shardctl.core.text import counted, first_upper
from shardctl.planning.quality.quality import Part, Quality
from shardctl.planning.quality.sample import sample_epoch
from shardctl.planning.quality.score import MIXED, even_from_afar
from shardctl.planning.shard_map import NUM_ROWS, ShardMap, shard_map
from shardctl.rendering.pictures.axes import Axis, Plane, plane
from shardctl.rendering.pictures.bars import Key, legend
from shardctl.rendering.pictures.picture import Band, Line, Mark, Numbers, Picture, Spot
from shardctl.rendering.pictures.shard_map import FEW, is_even, shard_map_picture
from shardctl.rendering.pictures.what_if import what_if_picture
from shardctl.rendering.quality.quality import measured_line

_HEIGHT = 150.0  # of the score over the epoch
_SPREADS = 2.0  # of the band, in which 95% of uniform permutations are
_LEAST = 5.0  # units of the end of an epoch, which would be too narrow to see


def quality_pictures(quality: Quality) -> tuple[Picture, ...]:
    """Return which shards feed which positions, the score over the epoch, and what would help."""
    found = [order_picture(quality, shard_map(quality.order)), score_picture(quality)]
    if quality.alternatives:
        found.append(what_if_picture(quality))
    return tuple(found)


def order_picture(quality: Quality, found: ShardMap) -> Picture:
    """Return the heat map of shards by position; of few shards the parts of each by position.

    Few shards may be read in turn from their first examples to their last, and feed all parts of
    the epoch alike: as shards they would be one even shade, which a uniform permutation is. Where
    an order that is not mixed near by is one even shade yet, it is said.
    """
    picture = _shards_or_parts(quality, found)
    if quality.verdict not in MIXED and is_even(picture):
        text = even_from_afar(quality.verdict)
        note = text if picture.note is None else f"{picture.note} {text}"
        return replace(picture, note=note, alternative=f"{picture.alternative} {text}")
    return picture


def _shards_or_parts(quality: Quality, found: ShardMap) -> Picture:
    if found.num_shards >= FEW:
        return shard_map_picture(found)
    sample = sample_epoch(quality.order, window=quality.window)
    sizes = sample.shard_sizes
    if len(sizes) != found.num_shards or len(found.labels) != len(sizes):
        return shard_map_picture(found)
    pieces = min(NUM_ROWS // len(sizes), int(sizes.max()))
    if pieces == 1:
        return shard_map_picture(found)
    # Of n examples those from k * n / pieces on are in part k, reckoned so that nothing overflows.
    numbers = np.arange(pieces + 1)
    whole, rest = (numbers * part[:, None] for part in np.divmod(sizes, pieces))
    edges = whole - -rest // pieces
    begins = (np.cumsum(sizes) - sizes)[:, None] + edges[:, :-1]
    rows = last_not_above(begins.ravel(), sample.ranks.ravel())
    num_rows, num_columns = len(sizes) * pieces, len(found.columns)
    if sample.complete:
        columns = np.repeat(np.arange(num_columns), [stop - start for start, stop in found.columns])
    else:  # stretches are one after the other, each for the part of the epoch it was taken from
        columns = np.arange(len(rows)) * num_columns // len(rows)
    counts = np.bincount(rows * num_columns + columns, minlength=num_rows * num_columns)
    counts = counts.reshape(num_rows, num_columns)
    parts = replace(
        found,
        counts=counts,
        rows=tuple(row for row in found.rows for _ in range(pieces)),
        labels=tuple(
            f"{label} ({piece + 1} of {pieces})"
            for label in found.labels
            for piece in range(pieces)
        ),
        measured=counts.sum(axis=0),
        expected=np.diff(edges, axis=1).ravel() / sizes.sum(),
        sampled=None,
    )
    picture = shard_map_picture(parts, pieces=pieces)
    return replace(picture, note=_sampled_note(quality))


def score_picture(quality: Quality) -> Picture:
    """Return the score over the epoch, near by, beside that of a uniform permutation."""
    parts, tail = quality.by_position, quality.tail
    keys = [
        Key(text="this order", line=True),
        Key(text="uniform permutation, ± 2 spreads", role="uniform", line=True, dashed=True),
    ]
    if tail is not None:
        keys.insert(1, Key(text=f"its last {_count(tail)}", role="other", line=True))
    key = legend(keys)
    field = plane(
        Axis(first=0, last=quality.num_examples, title="position in the epoch", whole=True),
        Axis(first=0, last=1, title="score near by", grid=True),
        top=key.bottom + 4,
        height=_HEIGHT,
    )
    marks: list[Mark] = [*key.marks, *field.marks, _band(parts, field)]
    expected = stairs(((part, part.score.expected) for part in parts), field)
    marks.append(Line(points=expected, role="uniform", dashed=True))
    marks.append(Line(points=stairs(((part, part.score.value) for part in parts), field)))
    if tail is not None:
        x, y = field.x.at(tail.start), field.y.at(tail.score.value)
        start = min(x, field.x.end - _LEAST)
        marks.append(Line(points=((start, y), (field.x.end, y)), role="other"))
    shown = parts if tail is None else (*parts, tail)
    marks += _spots(shown, field)
    return Picture(
        name="score",
        title="The score over the epoch",
        caption="As high as a uniform permutation all along is what to look for. Many orders fall "
        "at the end, where the last files have nothing left beside them.",
        alternative=_score_in_words(quality),
        height=field.bottom,
        marks=tuple(marks),
        numbers=Numbers(
            headings=("from position", "to", "score near by", "uniform", "spread"),
            rows=[(part.start, part.stop - 1, *_four(_figures(part))) for part in shown],
        ),
        note=_sampled_note(quality),
    )


def _figures(part: Part) -> tuple[float, float, float]:
    return part.score.value, part.score.expected, part.score.spread


def _four(numbers: Sequence[float]) -> Iterator[str]:
    return (f"{number:.4f}" for number in numbers)


def _count(part: Part) -> str:
    return counted(part.stop - part.start, "example")


def stairs(
    heights: Iterable[tuple[Part, float]], field: Plane, whole: int = 1
) -> tuple[tuple[float, float], ...]:
    """Return the points of steps, each as long as its part; the x axis has parts of `whole`."""
    points: list[tuple[float, float]] = []
    for part, height in heights:
        y = field.y.at(height)
        points += [(field.x.at(end / whole), y) for end in (part.start, part.stop)]
    return tuple(points)


def _band(parts: Sequence[Part], field: Plane) -> Band:
    upper: list[tuple[float, float]] = []
    lower: list[tuple[float, float]] = []
    for part in parts:
        ends = [field.x.at(part.start), field.x.at(part.stop)]
        off = _SPREADS * part.score.spread
        upper += [(x, field.y.at(min(1.0, part.score.expected + off))) for x in ends]
        lower += [(x, field.y.at(max(0.0, part.score.expected - off))) for x in ends]
    return Band(points=(*upper, *reversed(lower)))


def _spots(shown: Sequence[Part], field: Plane) -> Iterator[Spot]:
    for part in shown:
        x = min(field.x.at(part.start), field.x.end - _LEAST)
        score = part.score
        yield Spot(
            x=x,
            y=field.y.end,
            width=max(field.x.at(part.stop) - x, 0.0),
            height=field.y.start - field.y.end,
            title=f"positions {part.start:,} to {part.stop - 1:,}: {score.value:.4f}, uniform "
            f"{score.expected:.4f}",
        )


def _score_in_words(quality: Quality) -> str:
    parts, tail, score = quality.by_position, quality.tail, quality.score
    values = [part.score.value for part in parts]
    lowest = parts[values.index(min(values))]
    lows, highs = (f"{number:.4f}" for number in (min(values), max(values)))
    found = f"{lows} all along"
    if lows != highs:
        found = (
            f"{lows} to {highs} over the epoch, lowest in positions {lowest.start:,} to "
            f"{lowest.stop - 1:,}"
        )
    expected = parts[0].score.expected
    text = f"Near by, the score is {found}; of a uniform permutation it is about {expected:.4f}."
    if tail is not None:
        text += f" The last {_count(tail)} score {tail.score.value:.4f}."
    return (
        f"{text} In all, mixing far apart included, the order scores {score.value:.4f} "
        f"({quality.verdict}), a uniform permutation {score.expected:.4f}."
    )


def _sampled_note(quality: Quality) -> str | None:
    return None if quality.sampled is None else f"{first_upper(measured_line(quality))}."
