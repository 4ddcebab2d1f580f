"""The first blocks of an order as coloured strips: which slot reads of which shard, and when."""

from __future__ import annotations

from shardctl.core.order.order import Order
from shardctl.core.text import counted
from shardctl.planning.pictures.strips import Strips
from shardctl.planning.pictures.strips import strips as strips_of
from shardctl.planning.simulate import Simulation
from shardctl.rendering.pictures.axes import LINE_HEIGHT
from shardctl.rendering.pictures.picture import TEXT, Label, Mark, Numbers, Picture
from shardctl.rendering.pictures.strips.blocks import MOST_STEPS, ids_said
from shardctl.rendering.pictures.strips.position_rows import MOST_RUNS, first_rows, position_rows
from shardctl.rendering.pictures.strips.slot_rows import first_slots, slot_rows
from shardctl.rendering.text.orders.strip_rows import ids_text, shard_name, step_starts

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
