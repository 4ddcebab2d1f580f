"""Which shard is read when: the first visits of an order as blocks, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from shardctl.base.text import counted, printable
from shardctl.draw.picture import Line, Paper, Picture, Span, nothing, words
from shardctl.draw.tables import display_width
from shardctl.order.order import Order
from shardctl.order.shard_map import Strips, Visit
from shardctl.order.shard_map import strips as strips_of
from shardctl.verbs.simulate.answer import Simulation

_ROWS = 8
_VISITS = 256  # looked at
_NAME = 12  # columns of a shard's name
_TITLE = "Which shard is read when"


def simulate_pictures(simulation: Simulation, paper: Paper) -> tuple[Picture, ...]:
    """Return the picture of the first visits of a stretch of an order."""
    order, start = simulation.order, simulation.skip
    found = strips_of(order, start, start + simulation.take, most=_VISITS)
    return (strips_picture(found, order, paper),)


def strips_picture(strips: Strips, order: Order, paper: Paper) -> Picture:
    """Return the picture of visits, in rows as the lines of a page.

    A row has whole turns of the slots where there is room for that, so that a column is a slot.
    """
    visits, num_slots = strips.visits, len({visit.slot for visit in strips.visits})
    if not visits:
        return nothing(_TITLE)
    if num_slots == 1:  # all that is read of a shard in a row is one block
        found = groupby(visits, key=lambda visit: (visit.split, visit.shard, visit.epoch))
        runs = [list(run) for _, run in found]
        visits = tuple(replace(run[0], count=sum(one.count for one in run)) for run in runs)
    names = [_name(visit, strips, counts=num_slots == 1) for visit in visits]
    lead = max(len("position"), len(str(strips.stop)))
    width = max(map(display_width, names)) + 1
    in_row = max((paper.width - lead - 1) // width, 1)
    # Whole rounds of the slots in a row, if there is room for one.
    in_row -= in_row % num_slots if in_row > num_slots else 0
    shown = visits[: in_row * _ROWS]
    lines: list[Line] = [words(f"{'position':>{lead}}  shard", look="quiet")]
    hues = hues_of(shown, paper.hues)
    for at in range(0, len(shown), in_row):
        row = names[at : min(at + in_row, len(shown))]
        spans = [Span(f"{shown[at].position:>{lead}} ")]
        for number, name in enumerate(row):
            # The last name of a row needs no padding.
            fill = " " * (width - 1 - display_width(name)) if number + 1 < len(row) else ""
            spans += [Span(" "), Span(name + fill, slot=hues[at + number])]
        lines.append(tuple(spans))
    last = shown[-1].position + shown[-1].count - 1
    means = "a number is a shard, and \u00d7N stands for N examples of it."
    if num_slots > 1:
        most = counted(order.settings.block, "example")
        means = f"a number is the shard read next, up to {most}."
    shards = {(visit.split, visit.shard) for visit in shown}
    return Picture(
        title=_TITLE,
        caption=f"Positions {strips.start} to {last}, row by row: {means}",
        said=f"Positions {strips.start} to {last} come from {counted(len(shards), 'shard')}.",
        marks=tuple(lines),
    )


def _name(visit: Visit, strips: Strips, *, counts: bool) -> str:
    """Return a shard's number, after its split where there are several, and how many examples.

    The name of a split is cut where all would be longer than `_NAME` letters, the number is not.
    """
    name = str(visit.shard)
    if strips.several_splits:
        name = f"{printable(visit.split, max(1, _NAME - len(name) - 1))}:{name}"
    return f"{name}\u00d7{visit.count}" if counts and visit.count > 1 else name


def hues_of(visits: Sequence[Visit], count: int) -> list[int]:
    """Return the hue of each visit's shard: another one than that of what is beside it.

    A shard has the same hue wherever it is read; a new one takes the next of `count`, but not the
    hue of the shard that was read in its slot, or right before it, up to then.
    """
    hues: dict[tuple[str, int], int] = {}
    before: dict[int | None, int] = {}
    fresh = 0
    for visit in visits:
        shard = (visit.split, visit.shard)
        if shard not in hues:
            # The next hue, or the one after it, if the neighbour has that already.
            fresh += before.get(visit.slot) == fresh % count
            hues[shard] = fresh % count
            fresh += 1
        before[visit.slot] = hues[shard]
    return [hues[visit.split, visit.shard] for visit in visits]
