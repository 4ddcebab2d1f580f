"""Visits in rows of positions, read as the lines of a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from shardctl.core.order.order import Order
from shardctl.planning.pictures.strips import Strips, Visit
from shardctl.rendering.pictures.axes import GAP, Axis, named_ticks, plane
from shardctl.rendering.pictures.bars import ROW, Key, legend
from shardctl.rendering.pictures.picture import (
    NUM_SLOTS,
    TEXT,
    WIDTH,
    Label,
    Line,
    Mark,
    text_width,
)
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

MOST_RUNS = 96  # drawn at most
_ROWS = 8
_SEEN = 24  # runs that are seen at least, long as they may be
_PER_ROW = (4, 5, 6, 8, 10, 12, 16, 20)  # positions
_MARGIN = 40.0  # about what axes take
_TURN = 2.5  # between a block and a line where a batch begins


def first_rows(strips: Strips, order: Order) -> tuple[Strips, int]:
    """Return as many visits as there is room for, and how many positions a row has.

    As many as there is room for with a number at each, but more where runs are so long that only a
    few would be seen.
    """
    visits = strips.visits[:MOST_RUNS]
    widest = max(text_width(name) for name in names_of(strips))
    fitting = int((WIDTH - 2 * _MARGIN) / (widest + 2 * PAD))
    batch = order.shape[-1] if order.has_steps and order.shape else None
    if batch is not None and 1 < batch <= fitting:
        per_row = fitting - fitting % batch
    else:
        per_row = max((size for size in _PER_ROW if size <= fitting), default=min(_PER_ROW))
    seen = strips.stop if len(visits) <= _SEEN else visits[_SEEN].position
    if seen - strips.start > per_row * _ROWS:
        per_row = _rounded_up(-(-(seen - strips.start) // _ROWS))
    stop = strips.start + per_row * _ROWS
    whole = sum(visit.position + visit.count <= stop for visit in visits)
    return cut(strips, max(whole, 1)), per_row


def _rounded_up(number: int) -> int:
    """Return 1, 2 or 5 times a power of ten.

    >>> _rounded_up(157), _rounded_up(200)
    (200, 200)
    """
    power: int = 10 ** (len(str(number)) - 1)
    return next(power * by for by in (1, 2, 5, 10) if power * by >= number)


def position_rows(strips: Strips, order: Order, per_row: int) -> tuple[list[Mark], float]:
    """Return rows of positions with a block for each run of a shard, and the height."""
    rows = range(strips.start, strips.stop, per_row)
    epochs = epoch_starts(strips.visits)
    steps = step_starts(order, strips.start, strips.stop, MOST_STEPS) or []
    keys = ((steps, "a batch begins", True), (epochs, "an epoch begins", False))
    key = legend(
        [
            Key(text=text, role="axis", line=True, dashed=dashed)
            for starts, text, dashed in keys
            if starts
        ]
    )
    words = _epochs_of_rows(epochs, strips.start, per_row)
    gutter = max((text_width(word) + 2 * GAP for word in words.values()), default=0.0)
    field = plane(
        Axis(first=0, last=per_row, title="positions after the first of the row", whole=True),
        Axis(
            first=len(rows),
            last=0,
            title="position",
            ticks=named_ticks(f"{position:,}" for position in rows),
        ),
        top=key.bottom + (GAP if key.marks else 0),
        height=ROW * len(rows),
        right=WIDTH - gutter,
    )
    marks = [*key.marks, *field.marks]
    turns = {position - strips.start for position, _ in (*steps, *epochs[1:])}
    for visit, name, hue in zip(
        strips.visits, names_of(strips), hues_of(strips.visits, NUM_SLOTS), strict=True
    ):
        parts = _parts(visit, strips.start, per_row, turns)
        longest = max(parts, key=lambda part: part[2] - part[1])
        for part in parts:
            row, first, last = part
            y = field.y.at(row) + (ROW - BAR) / 2
            left, right = field.x.at(first), field.x.at(last)
            left += _TURN if row * per_row + first in turns else 0
            right -= _TURN if row * per_row + last in turns else 0
            marks.append(block(visit, strips, order, (left, right, y), hue))
            if part is longest:
                marks += block_label(name, hue, (left, right), (right, left), y)
    for starts, dashed in ((steps, True), (epochs[1:], False)):
        for position, _ in starts:
            row, place = divmod(position - strips.start, per_row)
            x, top = field.x.at(place), field.y.at(row)
            marks.append(Line(points=((x, top), (x, top + ROW)), role="axis", dashed=dashed))
    for row, word in words.items():
        y = field.y.at(row) + (ROW + TEXT * 0.7) / 2
        marks.append(Label(x=WIDTH, y=y, text=word, anchor="end", quiet=True))
    return marks, field.bottom + GAP


def _parts(
    visit: Visit, start: int, per_row: int, turns: Iterable[int]
) -> list[tuple[int, int, int]]:
    """Return (row, first, end) of a visit in the rows that it is in, cut where batches begin."""
    first, stop = visit.position - start, visit.position + visit.count - start
    rows = range(first // per_row * per_row + per_row, stop, per_row)
    cuts = sorted({first, stop, *rows, *(turn for turn in turns if first < turn < stop)})
    return [
        (begin // per_row, begin % per_row, begin % per_row + end - begin)
        for begin, end in pairwise(cuts)
    ]


def _epochs_of_rows(epochs: Sequence[tuple[int, int]], start: int, per_row: int) -> dict[int, str]:
    """Return what is said beside rows in which epochs begin."""
    by_row: dict[int, list[int]] = {}
    for position, epoch in epochs:
        by_row.setdefault((position - start) // per_row, []).append(epoch)
    return {
        row: f"epoch {found[0]:,}" if len(found) == 1 else f"epochs {found[0]:,}–{found[-1]:,}"
        for row, found in by_row.items()
    }
