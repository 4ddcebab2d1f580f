"""The first blocks of an order as coloured strips: which slot reads of which shard, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from shardctl.core.order.order import Order
from shardctl.core.text import counted
from shardctl.planning.shard_map import Strips, Visit
from shardctl.planning.shard_map import strips as strips_of
from shardctl.planning.simulate import Simulation
from shardctl.rendering.pictures.axes import (
    GAP,
    LINE_HEIGHT,
    Axis,
    Plane,
    named_ticks,
    plane,
    thinned,
)
from shardctl.rendering.pictures.bars import ROW, Key, legend
from shardctl.rendering.pictures.picture import (
    NUM_SLOTS,
    TEXT,
    WIDTH,
    Box,
    Label,
    Line,
    Mark,
    Numbers,
    Picture,
    text_width,
)
from shardctl.rendering.text.step_rows import (
    epoch_starts,
    hues_of,
    ids_text,
    shard_name,
    step_starts,
)

_TOLD = 3  # visits that are told in words


def simulate_pictures(simulation: Simulation) -> tuple[Picture, ...]:
    """Return the picture of the first visits of a stretch of an order."""
    order, start = simulation.order, simulation.skip
    found = strips_of(order, start, start + simulation.take, most=MOST_RUNS)
    return (strips_picture(found, order),)


def strips_picture(strips: Strips, order: Order) -> Picture:
    """Return the picture of visits: in rows of slots, or of positions where the order has none."""
    in_slots = len({visit.slot for visit in strips.visits}) > 1
    marks: list[Mark] = []
    if not strips.visits:
        drawn, marks = strips, [Label(x=0, y=TEXT, text="no positions", quiet=True)]
        height = LINE_HEIGHT
    elif in_slots:
        drawn = first_slots(strips)
        marks, height = slot_rows(drawn, order)
    else:
        drawn, per_row = first_rows(strips, order)
        marks, height = position_rows(drawn, order, per_row)
    return Picture(
        name="strips",
        title="Which shard is read when",
        caption=_SLOTS_CAPTION if in_slots else _ROWS_CAPTION,
        alternative=_alternative(drawn, order),
        height=height,
        marks=tuple(marks),
        numbers=_numbers(drawn, order),
        note=_note(drawn, order),
    )


_SLOTS_CAPTION = (
    "A row is a slot of the interleave, and a block in it what the slot reads of a shard before "
    "the next slot's turn. The number is the shard's, and so is the colour; colours come again. "
    "Where the number changes in a row, the shard before it was read to its end."
)
_ROWS_CAPTION = (
    "Positions follow each other from left to right, row by row. A block is a run of examples of "
    "one shard; the number is the shard's, and so is the colour; colours come again. Long blocks, "
    "and the same few numbers, are examples that stay beside those they are stored with."
)


def _alternative(strips: Strips, order: Order) -> str:
    """Return how many visits, slots and shards there are, and the first visits in words."""
    visits = strips.visits
    if not visits:
        return "There are no positions."
    shards = len({(visit.split, visit.shard) for visit in visits})
    noun = "visit" if strips.has_slots else "run"
    said = f"{counted(len(visits), noun)} of {counted(shards, 'shard')}"
    if strips.has_slots:
        said += f" in {counted(len({visit.slot for visit in visits}), 'slot')}"
    first = "; then ".join(
        ("" if visit.slot is None else f"slot {visit.slot:,} reads ")
        + f"shard {shard_name(visit, strips, 200)}, {ids_said(visit, order)}"
        for visit in visits[:_TOLD]
    )
    more = "; and so on" if len(visits) > _TOLD else ""
    return f"{said}, positions {strips.start:,} to {strips.stop - 1:,}. First {first}{more}."


def _note(strips: Strips, order: Order) -> str | None:
    said = []
    if strips.is_cut:
        noun = "visits" if strips.has_slots else "runs"
        said.append(
            f"The first {len(strips.visits)} {noun}, positions {strips.start:,} to "
            f"{strips.stop - 1:,}; those after them are left out."
        )
    if strips.visits and step_starts(order, strips.start, strips.stop, MOST_STEPS) is None:
        said.append("Batches are too many here to mark where they begin.")
    return " ".join(said) or None


def _numbers(strips: Strips, order: Order) -> Numbers:
    """Return a row for each visit."""
    slots = ("slot",) if strips.has_slots else ()
    rows = [
        (
            visit.position,
            visit.epoch,
            *((visit.slot,) if strips.has_slots else ()),
            shard_name(visit, strips, 200),
            visit.count,
            ids_text(visit, order),
        )
        for visit in strips.visits
    ]
    return Numbers(headings=("position", "epoch", *slots, "shard", "examples", "ids"), rows=rows)


# Visits in rows of positions, read as the lines of a page.

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


# Visits in rows of slots: how these take turns.

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


# Blocks of shards, their names in or beside them, and how many of them are drawn.

BAR = 17.0  # height of a block in its row
PAD = 3.0  # beside the text in a block
MOST_STEPS = 24  # batches that are marked
_NAME = 12  # letters of a shard's name with its split


def cut(strips: Strips, number: int) -> Strips:
    """Return the first visits, so many of them."""
    if number == len(strips.visits):
        return strips
    stop = strips.visits[number].position
    return replace(strips, visits=strips.visits[:number], stop=stop, is_cut=True)


def block(
    visit: Visit, strips: Strips, order: Order, place: tuple[float, float, float], hue: int
) -> Box:
    """Return what a slot reads as a block at (left, right, y), in the hue of its shard."""
    left, right, y = place
    width = max(right - left - (1 if right - left > 3 else 0), 0.5)
    last = visit.position + visit.count - 1
    where = f"position {visit.position:,}"
    if visit.count > 1:
        where = f"positions {visit.position:,} to {last:,}"
    slot = "" if visit.slot is None else f"slot {visit.slot:,}, "
    title = f"shard {shard_name(visit, strips, 200)}: {slot}{where}, {ids_said(visit, order)}"
    return Box(x=left, y=y, width=width, height=BAR, role="slot", slot=hue, title=title)


def ids_said(visit: Visit, order: Order) -> str:
    """Return the ids of a visit after their noun."""
    return f"{'id' if visit.count == 1 else 'ids'} {ids_text(visit, order)}"


def names_of(strips: Strips) -> list[str]:
    """Return what the shard of each visit is called, short enough for its block."""
    return [shard_name(visit, strips, _NAME) for visit in strips.visits]


def block_label(
    name: str, hue: int, block: tuple[float, float], room: tuple[float, float], y: float
) -> list[Mark]:
    """Return the name of a shard in its block, else behind or before it, else none."""
    (left, right), (free, until) = block, room
    width, y = text_width(name), y + (BAR + TEXT * 0.7) / 2
    if width + 2 * PAD <= right - left:
        middle = (left + right) / 2
        return [Label(x=middle, y=y, text=name, anchor="middle", on_slot=hue)]
    if right + width + 2 * PAD <= until:
        return [Label(x=right + PAD, y=y, text=name)]
    if left - width - 2 * PAD >= free:
        return [Label(x=left - PAD, y=y, text=name, anchor="end")]
    return []
