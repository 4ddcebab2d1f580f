"""Visits in rows of slots: how these take turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.core.order.order import Order
from shardctl.planning.pictures.strips import Strips
from shardctl.rendering.pictures.axes import (
    GAP,
    LINE_HEIGHT,
    Axis,
    Plane,
    named_ticks,
    plane,
    thinned,
)
from shardctl.rendering.pictures.bars import ROW
from shardctl.rendering.pictures.picture import NUM_SLOTS, Label, Line, Mark, text_width
from shardctl.rendering.pictures.strips.blocks import (
    BAR,
    MOST_STEPS,
    PAD,
    block,
    block_label,
    cut,
    names_of,
)
from shardctl.rendering.text.orders.strip_rows import epoch_starts, hues_of, step_starts

_VISITS = 48  # drawn at most
_SLOTS = 24
_SLOT = "slot"


def first_slots(strips: Strips) -> Strips:
    """Return as many visits as there is room for, in rows of slots."""
    seen: set[int | None] = set()
    for number, visit in enumerate(strips.visits):
        seen.add(visit.slot)
        if number == _VISITS or len(seen) > _SLOTS:
            return cut(strips, number)
    return strips


def slot_rows(strips: Strips, order: Order) -> tuple[list[Mark], float]:
    """Return a row for each slot, where the blocks of all are beside each other, and the height."""
    slots = sorted({visit.slot or 0 for visit in strips.visits})
    steps = step_starts(order, strips.start, strips.stop, MOST_STEPS) or []
    headers = [
        [(position, f"epoch {epoch:,}") for position, epoch in epoch_starts(strips.visits)],
        [(position, f"step {step:,}") for position, step in steps],
    ]
    headers = [header for header in headers if header]
    top = LINE_HEIGHT * len(headers)
    field = plane(
        Axis(first=strips.start, last=strips.stop, title="position", whole=True),
        Axis(
            first=len(slots),
            last=0,
            title=_SLOT,
            ticks=named_ticks(f"{slot:,}" for slot in slots),
        ),
        top=top,
        height=ROW * len(slots),
    )
    marks = list(field.marks)
    for number, header in enumerate(reversed(headers)):
        marks += _header(header, field, top - number * LINE_HEIGHT)
    turns = [field.x.at(position) for header in headers for position, _ in header]
    free = dict.fromkeys(slots, field.x.start)
    nexts = _next_places(strips, field)
    for visit, name, hue, until in zip(
        strips.visits, names_of(strips), hues_of(strips.visits, NUM_SLOTS), nexts, strict=True
    ):
        slot = visit.slot or 0
        y = field.y.at(slots.index(slot)) + (ROW - BAR) / 2
        left, right = (field.x.at(visit.position + end) for end in (0, visit.count))
        marks.append(block(visit, strips, order, (left, right, y), hue))
        # Beside a block, if need be, rather on this side of a line than across it.
        near = max([free[slot], *(x for x in turns if x <= left)])
        end = min([until, *(x for x in turns if x >= right)])
        label = block_label(name, hue, (left, right), (near, end), y)
        label = label or block_label(name, hue, (left, right), (free[slot], until), y)
        marks += label
        free[slot] = max([right, *(_right_end(mark) for mark in label)])
    return marks, field.bottom + GAP


def _next_places(strips: Strips, field: Plane) -> list[float]:
    """Return where the next block of each visit's slot begins, or its row ends."""
    found: list[float] = []
    after: dict[int | None, float] = {}
    for visit in reversed(strips.visits):
        found.append(after.get(visit.slot, field.x.end))
        after[visit.slot] = field.x.at(visit.position)
    return found[::-1]


def _right_end(mark: Mark) -> float:
    """Return how far a label of a block reaches to the right."""
    assert isinstance(mark, Label)
    return mark.x + text_width(mark.text) + PAD if mark.anchor == "start" else mark.x


def _header(starts: Sequence[tuple[int, str]], field: Plane, y: float) -> Iterator[Mark]:
    """Yield lines where batches or epochs begin, with words above them as there is room."""
    places = [field.x.at(position) for position, _ in starts]
    lefts = [
        min(place, field.x.end - text_width(text))
        for place, (_, text) in zip(places, starts, strict=True)
    ]
    spans = [(left, left + text_width(text)) for left, (_, text) in zip(lefts, starts, strict=True)]
    for place in places:
        # Not through the title of the axis.
        above = y if place > text_width(_SLOT) + GAP else field.y.end
        yield Line(points=((place, above), (place, field.y.start)), role="axis", dashed=True)
    for at in thinned(spans, apart=GAP):
        yield Label(x=lefts[at], y=y - PAD, text=starts[at][1], quiet=True)
