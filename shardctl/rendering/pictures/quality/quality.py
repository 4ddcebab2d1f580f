"""How an order is shuffled as pictures: what feeds what, the score over the epoch, what would help.

A picture of the whole order says what a figure cannot: whether it follows storage, in lumps or as a
grey without a pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardctl.core.text import counted
from shardctl.planning.pictures.shard_map import shard_map
from shardctl.planning.quality.parts import Part
from shardctl.planning.quality.quality import Quality
from shardctl.rendering.pictures.axes import Axis, Plane, plane
from shardctl.rendering.pictures.bars import Bar, Key, bars, legend
from shardctl.rendering.pictures.bars import Part as PartOfBar
from shardctl.rendering.pictures.picture import Band, Line, Mark, Numbers, Picture, Role, Spot
from shardctl.rendering.pictures.quality.shard_map import shard_map_picture
from shardctl.rendering.quality.memory import counted_how
from shardctl.rendering.quality.quality import best_line
from shardctl.rendering.text.quantities import human_bytes

_HEIGHT = 150.0  # of the score over the epoch
_SPREADS = 2.0  # of the band, in which 95% of uniform permutations are
_LEAST = 5.0  # units of the end of an epoch, which would be too narrow to see
_WIDEST_NAMES = 0.5  # of the width: what tells changes apart is at the end of their names


def quality_pictures(quality: Quality) -> tuple[Picture, ...]:
    """Return which shards feed which positions, the score over the epoch, and what would help."""
    found = [shard_map_picture(shard_map(quality.order)), score_picture(quality)]
    if quality.alternatives:
        found.append(what_if_picture(quality))
    return tuple(found)


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
    marks.append(_steps([(part, part.score.expected) for part in parts], field, "uniform"))
    marks.append(_steps([(part, part.score.value) for part in parts], field, "data"))
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


def _steps(heights: Sequence[tuple[Part, float]], field: Plane, role: Role) -> Line:
    points: list[tuple[float, float]] = []
    for part, height in heights:
        y = field.y.at(height)
        points += [(field.x.at(part.start), y), (field.x.at(part.stop), y)]
    return Line(points=tuple(points), role=role, dashed=role == "uniform")


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
    text = (
        f"Near by, the score is {min(values):.4f} to {max(values):.4f} over the epoch, lowest in "
        f"positions {lowest.start:,} to {lowest.stop - 1:,}; of a uniform permutation it is about "
        f"{parts[0].score.expected:.4f}."
    )
    if len(parts) == 1:
        text = (
            f"Near by, the score of the epoch is {values[0]:.4f}; of a uniform permutation it is "
            f"about {parts[0].score.expected:.4f}."
        )
    if tail is not None:
        text += f" The last {_count(tail)} score {tail.score.value:.4f}."
    return (
        f"{text} In all, mixing far apart included, the order scores {score.value:.4f} "
        f"({quality.verdict}), a uniform permutation {score.expected:.4f}."
    )


def _sampled_note(quality: Quality) -> str | None:
    sampled = quality.sampled
    if sampled is None:
        return None
    text = (
        f"Measured in {counted(sampled.num_stretches, 'stretch', 'stretches')} of "
        f"{counted(sampled.stretch, 'example')} over the epoch"
    )
    return f"{text}, the buffer drawn at random." if sampled.buffer_drawn else f"{text}."


def what_if_picture(quality: Quality) -> Picture:
    """Return what other settings would score, with the memory of each buffer that is new."""
    uniform = quality.score.expected
    rows = []
    for choice in quality.alternatives:
        size = "" if choice.num_bytes is None else human_bytes(choice.num_bytes)
        rows.append((choice.change, choice.score.value, choice.verdict, size))
    if not rows:
        rows.append(("as it is", quality.score.value, quality.verdict, ""))
    drawn = bars(
        [
            Bar(
                name=change,
                parts=(PartOfBar(score, "data" if number else "other"),),
                text=f"{score:.2f} · {size}" if size else f"{score:.2f}",
                title=f"{change}: {score:.4f}, {verdict}{size and f', a buffer of {size}'}",
            )
            for number, (change, score, verdict, size) in enumerate(rows)
        ],
        top=4,
        full=1.0,
        expected=uniform,
        most_names=_WIDEST_NAMES,
    )
    said = [f"{change}: {score:.4f} ({verdict})" for change, score, verdict, _ in rows]
    return Picture(
        name="what-if",
        title="What other settings would score",
        caption="Each bar changes one thing, or two; the dashed line is a uniform permutation. "
        "Beside the score is the memory that a new buffer takes.",
        alternative=f"{'; '.join(said)}; a uniform permutation: {uniform:.4f}. {_best(quality)}",
        height=drawn.bottom + 4,
        marks=drawn.marks,
        numbers=Numbers(
            headings=("what if", "score", "verdict", "memory of the buffer"),
            rows=[(change, f"{score:.4f}", *others) for change, score, *others in rows],
        ),
        note=_memory_note(quality),
    )


def _best(quality: Quality) -> str:
    if not quality.alternatives:
        return "No other settings were measured."
    line = best_line(quality)
    return f"{line[:1].upper()}{line[1:]}."


def _memory_note(quality: Quality) -> str | None:
    errors = [choice.score.sampling_error or 0.0 for choice in quality.alternatives]
    said = []
    if max(errors, default=0.0) and math.isfinite(max(errors)):
        said.append(f"Measured in samples, sampling error at most {max(errors):.4f}.")
    how = counted_how(quality.element_size)
    if how and any(choice.num_bytes is not None for choice in quality.alternatives):
        said.append(f"Memory is {how}.")
    return " ".join(said) or None
