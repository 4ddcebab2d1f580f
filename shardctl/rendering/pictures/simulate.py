"""The first blocks of an order as strips: which slot reads of which shard, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from shardctl.core.order.order import Order
from shardctl.planning.shard_map import Strips, Visit
from shardctl.planning.shard_map import strips as strips_of
from shardctl.planning.simulate import Simulation
from shardctl.rendering.text.picture import MORE, Line, Paper, Picture, Span, tick_line, words
from shardctl.rendering.text.quantities import short_count
from shardctl.rendering.text.step_rows import epoch_starts, hues_of, shard_name, step_starts
from shardctl.rendering.text.tables import display_width

_SLOTS = 16  # rows of slots
_LINES = 8  # of positions
_VISITS = 256  # looked at
_STEPS = 256  # batches that are marked
_NAME = 12  # columns of a shard's name
_LONGEST = 4  # names wide, beyond which a run says how long it is
_WIDEST = 8  # columns of a block more than its name, where there is room to spare
_LEAST_ROOM = 8  # columns, where the paper is too narrow for a picture that is asked for
_TIMES = "×"
_GAP = "  "
_STEP, _EPOCH = "|", "‖"  # before what a batch, or an epoch, begins with


def simulate_pictures(simulation: Simulation, paper: Paper) -> tuple[Picture, ...]:
    """Return the picture of the first visits of a stretch of an order."""
    order, start = simulation.order, simulation.skip
    return (
        strips_picture(
            strips_of(order, start, start + simulation.take, most=_VISITS), order, paper
        ),
    )


def strips_picture(strips: Strips, order: Order, paper: Paper) -> Picture:
    """Return the picture of visits: in rows of slots, or of positions where the order has none."""
    caption, marks = "no positions", list[Line]()
    if strips.visits:
        in_slots = len({visit.slot for visit in strips.visits}) > 1
        caption, marks = (_slots if in_slots else _positions)(strips, order, paper)
    return Picture(
        name="strips", title="Which shard is read when", caption=caption, marks=tuple(marks)
    )


def _slots(found: Strips, order: Order, paper: Paper) -> tuple[str, list[Line]]:
    """Return rows of slots, where the blocks of all are beside each other."""
    lead = max(len("position"), *(len(f"slot {visit.slot}") for visit in found.visits)) + len(_GAP)
    room = max(paper.width - lead, _LEAST_ROOM)
    visits = _first_slots(found, room)
    names = [shard_name(visit, found, _NAME) for visit in visits]
    starts = _columns(visits, names, room)
    last = visits[-1].position + visits[-1].count
    rows: dict[int, list[Span]] = {}
    for slot in sorted({visit.slot or 0 for visit in visits}):
        rows[slot] = [Span(_lead(f"slot {slot}", lead))]
    ends = dict.fromkeys(rows, 0)
    hues = hues_of(visits, paper.hues)
    for number, (visit, name, hue) in enumerate(zip(visits, names, hues, strict=True)):
        slot, (start, stop) = visit.slot or 0, (starts[number], starts[number + 1])
        if number + 1 < len(visits) and visits[number + 1].slot == visit.slot:
            stop -= 1  # a gap before the next block of the slot
        rows[slot].append(Span(" " * (start - ends[slot])))
        rows[slot].append(Span(name + MORE * (stop - start - display_width(name)), slot=hue))
        ends[slot] = stop

    def column(position: int) -> int:
        """Return the column of a position, within the block that it is in."""
        number = bisect_right([visit.position for visit in visits], position) - 1
        width = starts[number + 1] - starts[number]
        return starts[number] + (position - visits[number].position) * width // visits[number].count

    marked = (
        ("position", [(visit.position, visit.position) for visit in visits]),
        ("epoch", epoch_starts(visits)),
        ("step", step_starts(order, found.start, last, _STEPS) or []),
    )
    rulers = [
        words(_lead(title, lead), tick_line([(column(at), str(n)) for at, n in turns], room))
        for title, turns in marked
        if turns
    ]
    caption = f"{_between(found.start, last)}: a row is a slot, a number the shard it reads then"
    return caption, [*map(tuple, rows.values()), *rulers]


def _first_slots(found: Strips, room: int) -> tuple[Visit, ...]:
    """Return the visits that have room for their names beside each other, in few enough rows."""
    slots: set[int | None] = set()
    widest = 0
    for number, visit in enumerate(found.visits):
        slots.add(visit.slot)
        widest = max(widest, display_width(shard_name(visit, found, _NAME)) + 1)
        if number and ((number + 1) * widest > room or len(slots) > _SLOTS):
            return found.visits[:number]
    return found.visits


def _columns(visits: Sequence[Visit], names: Sequence[str], room: int) -> list[int]:
    """Return where each visit begins, and the last one ends: by their examples as room is left."""
    least = max(map(display_width, names)) + 1
    spare = max(min(room - least * len(visits), _WIDEST * len(visits)), 0)
    total = sum(visit.count for visit in visits)
    widths = (least + visit.count * spare // total for visit in visits)
    return list(accumulate(widths, initial=0))


def _positions(found: Strips, order: Order, paper: Paper) -> tuple[str, list[Line]]:
    """Return visits in rows of positions, read as the lines of a page."""
    lead = max(len("position"), len(str(found.stop))) + len(_GAP)
    # A mark stands before each run.
    room = max(paper.width - lead + 1, _LEAST_ROOM)
    visits = found.visits
    cell = max(display_width(shard_name(visit, found, _NAME)) for visit in visits) + 1
    steps = {at for at, _ in step_starts(order, found.start, found.stop, _STEPS) or []}
    epochs = {at for at, _ in epoch_starts(visits)[1:]}
    lines: list[list[Span]] = []
    shown, used, many = 0, room, False
    for visit, hue in zip(visits, hues_of(visits, paper.hues), strict=True):
        for position, count in _parts(visit, steps):
            run = _run(shard_name(visit, found, _NAME), count, cell, room)
            if used + display_width(run) + 1 > room:
                if len(lines) == _LINES:
                    break
                lines.append([Span(_lead(str(position), lead)[:-1])])
                used = 0
            mark = _EPOCH if position in epochs else _STEP if position in steps else " "
            lines[-1] += [Span(mark), Span(run, slot=hue)]
            used += display_width(run) + 1
            shown, many = position + count, many or _TIMES in run
        else:
            continue
        break
    keys = [f"{MORE} more of its examples", *([f"{_TIMES} how many"] if many else [])]
    keys += [f"{_STEP} a batch begins"] if any(at < shown for at in steps) else []
    keys += [f"{_EPOCH} an epoch begins"] if any(at < shown for at in epochs) else []
    caption = f"{_between(found.start, shown)}: a number is a shard ({', '.join(keys)})"
    return caption, list(map(tuple, lines))


def _parts(visit: Visit, steps: set[int]) -> Iterator[tuple[int, int]]:
    """Yield (position, count) of a visit, cut where batches begin."""
    stop = visit.position + visit.count
    cuts = sorted(at for at in steps if visit.position < at < stop)
    for start, end in pairwise([visit.position, *cuts, stop]):
        yield start, end - start


def _run(name: str, count: int, cell: int, room: int) -> str:
    """Return a run of examples: as wide as they are many, or the number of them."""
    if count <= _LONGEST and count * cell <= room:
        return name + MORE * (count * cell - 1 - display_width(name))
    width = min(_LONGEST * cell, room) - 1
    times = f"{_TIMES}{count:,}"
    if display_width(name + times) > width:
        times = f"{_TIMES}{short_count(count)}"
    return name + MORE * (width - display_width(name) - len(times)) + times


def _between(start: int, stop: int) -> str:
    return f"position {start}" if stop - start == 1 else f"positions {start} to {stop - 1}"


def _lead(text: str, width: int) -> str:
    return f"{text:>{width - len(_GAP)}}{_GAP}"
