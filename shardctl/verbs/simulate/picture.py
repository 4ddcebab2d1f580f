"""The first blocks of an order as strips: which slot reads of which shard, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from shardctl.base.text import counted, printable
from shardctl.draw.picture import MORE, Line, Paper, Picture, Span, tick_line, words
from shardctl.draw.tables import display_width
from shardctl.order.order import Order
from shardctl.order.shard_map import Strips, Visit
from shardctl.order.shard_map import strips as strips_of
from shardctl.verbs.simulate.answer import Simulation

# The first blocks of an order as strips: names and hues of shards, ids, where batches begin.


def shard_name(visit: Visit, strips: Strips, longest: int) -> str:
    """Return what a shard is called: its number, after its split where there are several.

    The name of a split is cut where all would be longer than `longest` letters, the number is not.
    """
    if not strips.several_splits:
        return str(visit.shard)
    number = f":{visit.shard}"
    return printable(visit.split, max(1, longest - len(number))) + number


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
            fresh += before.get(visit.slot) == fresh % count
            hues[shard] = fresh % count
            fresh += 1
        before[visit.slot] = hues[shard]
    return [hues[visit.split, visit.shard] for visit in visits]


def epoch_starts(visits: Sequence[Visit]) -> list[tuple[int, int]]:
    """Return (position, epoch) where an epoch begins, with the first one if there are several."""
    turns = (after for before, after in pairwise(visits) if after.epoch != before.epoch)
    starts = [(visit.position, visit.epoch) for visit in turns]
    return [(visits[0].position, visits[0].epoch), *starts] if starts else []


def step_starts(order: Order, start: int, stop: int, most: int) -> list[tuple[int, int]] | None:
    """Return (position, step) where batches begin in [start, stop), None where these are too many.

    A batch that began before `start` is not among them; without batches there are none.
    """
    if not order.has_steps or start >= stop:
        return []
    first, last = order.steps_of([start, stop - 1])[0].tolist()
    if last - first >= most:
        return None
    begun = [(order.positions_in_step(step).start, step) for step in range(first, last + 1)]
    return begun[begun[0][0] < start :]


_ROWS = {True: 16, False: 8}  # of slots, and of positions
_VISITS = 256  # looked at
_STEPS = 256  # batches that are marked
_NAME = 12  # columns of a shard's name
_WIDEST = 8  # columns of a block more than its name, where there is room to spare
_LEAST_ROOM = 8  # columns, where the paper is too narrow for a picture that is asked for
_GAP = "  "


def simulate_pictures(simulation: Simulation, paper: Paper) -> tuple[Picture, ...]:
    """Return the picture of the first visits of a stretch of an order."""
    order, start = simulation.order, simulation.skip
    found = strips_of(order, start, start + simulation.take, most=_VISITS)
    return (strips_picture(found, order, paper),)


def strips_picture(strips: Strips, order: Order, paper: Paper) -> Picture:
    """Return the picture of visits: in rows of slots, or of positions where the order has none."""
    caption, marks = "There are no positions.", list[Line]()
    if strips.visits:
        in_slots = len({visit.slot for visit in strips.visits}) > 1
        caption, marks = (_slots if in_slots else _positions)(strips, order, paper)
    shards = {(visit.split, visit.shard) for visit in strips.visits}
    return Picture(
        name="strips",
        title="Which shard is read when",
        caption=caption,
        said=f"From position {strips.start} on, {counted(strips.stop - strips.start, 'example')} "
        f"of {counted(len(shards), 'shard')} are read.",
        marks=tuple(marks),
    )


def _slots(strips: Strips, order: Order, paper: Paper) -> tuple[str, list[Line]]:
    """Return rows of slots, where the blocks of all are beside each other."""
    lead = max(len("position"), *(len(f"slot {visit.slot}") for visit in strips.visits)) + len(_GAP)
    row = _Row(strips, strips.visits, max(paper.width - lead, _LEAST_ROOM))
    spans: dict[int, list[Span]] = {}
    ends: dict[int, int] = {}
    for slot, begin, block in row.blocks(hues_of(row.visits, paper.hues)):
        spans.setdefault(slot, []).append(Span(" " * (begin - ends.get(slot, 0))))
        spans[slot].append(block)
        ends[slot] = begin + display_width(block.text)
    lines = [(Span(_lead(f"slot {slot}", lead)), *spans[slot]) for slot in sorted(spans)]
    marked = (
        ("position", [(visit.position, visit.position) for visit in row.visits]),
        ("epoch", epoch_starts(row.visits)),
        ("step", step_starts(order, strips.start, row.stop, _STEPS) or []),
    )
    for title, turns in marked:
        if turns:
            ticks = [(row.column(position), str(number)) for position, number in turns]
            lines.append(words(_lead(title, lead), tick_line(ticks, row.room)))
    shown = _between(strips.start, row.stop)
    return f"{shown}: a row is a slot, one of the files read in turn; a number is its shard.", lines


def _positions(strips: Strips, order: Order, paper: Paper) -> tuple[str, list[Line]]:
    """Return visits in rows of positions, read as the lines of a page."""
    lead = max(len("position"), len(str(strips.stop))) + len(_GAP)
    lines: list[Line] = [words(_lead("position", lead), "shard", look="quiet")]
    visits, stop = strips.visits, strips.start
    hues = hues_of(visits, paper.hues)
    while visits and len(lines) <= _ROWS[False]:
        row = _Row(strips, visits, max(paper.width - lead, _LEAST_ROOM))
        line = [Span(_lead(str(visits[0].position), lead))]
        for _, begin, block in row.blocks(hues):
            line += [Span(" " * bool(begin)), block]
        lines.append(tuple(line))
        visits, hues = visits[len(row.visits) :], hues[len(row.visits) :]
        stop = row.stop
    shown = _between(strips.start, stop)
    return f"{shown}, from left to right: a number is a shard (×N: N examples of it).", lines


class _Row:
    """As many visits as have room for their names beside each other, in few enough slots."""

    def __init__(self, strips: Strips, visits: Sequence[Visit], room: int) -> None:
        self.room = room
        slots: set[int | None] = set()
        names: list[str] = []
        least = 0
        for visit in visits:
            slots.add(visit.slot)
            name = shard_name(visit, strips, _NAME)
            if visit.slot is None and visit.count > 1:
                name += f"×{visit.count}"
            wider = max(least, display_width(name) + 1)
            if names and ((len(names) + 1) * wider > room or len(slots) > _ROWS[True]):
                break
            names.append(name)
            least = wider
        self.visits, self._names = visits[: len(names)], names
        self.stop = self.visits[-1].position + self.visits[-1].count
        # In slots a visit is as wide as it has examples, as room is left.
        spare = 0 if slots == {None} else min(room - least * len(names), _WIDEST * len(names))
        spare = max(spare, 0)
        total = sum(visit.count for visit in self.visits)
        widths = (least + visit.count * spare // total for visit in self.visits)
        self._starts = list(accumulate(widths, initial=0))

    def blocks(self, hues: Sequence[int]) -> Iterator[tuple[int, int, Span]]:
        """Yield the slot, the column and the block of each visit, of which these are the hues."""
        after = [*(visit.slot for visit in self.visits[1:]), -1]
        found = zip(self.visits, after, self._names, hues[: len(after)], strict=True)
        for number, (visit, slot, name, hue) in enumerate(found):
            start, stop = self._starts[number : number + 2]
            width = stop - start - (slot == visit.slot)  # a gap before the next block of the slot
            last = visit is self.visits[-1]
            more = MORE if visit.slot is not None else "" if last else " "
            block = name + more * (width - display_width(name))
            yield visit.slot or 0, start, Span(block, slot=hue)

    def column(self, position: int) -> int:
        """Return the column of a position, within the block that it is in."""
        number = bisect_right([visit.position for visit in self.visits], position) - 1
        start, stop = self._starts[number : number + 2]
        visit = self.visits[number]
        return start + (position - visit.position) * (stop - start) // visit.count


def _between(start: int, stop: int) -> str:
    return f"Position {start}" if stop - start == 1 else f"Positions {start} to {stop - 1}"


def _lead(text: str, width: int) -> str:
    return f"{text:>{width - len(_GAP)}}{_GAP}"
