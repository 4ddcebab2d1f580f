"""Blocks of shards, their names in or beside them, and how many of them are drawn."""

from __future__ import annotations

from dataclasses import replace

from shardctl.core.order.order import Order
from shardctl.planning.shard_map import Strips, Visit
from shardctl.rendering.pictures.picture import TEXT, Box, Label, Mark, text_width
from shardctl.rendering.text.step_rows import ids_text, shard_name

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
