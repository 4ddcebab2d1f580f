"""A stretch of an order as blocks for people, as ids a line, as records, or as an array file."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from shardctl.core.arrays import Int64s
from shardctl.core.columns import RecordStream
from shardctl.errors import UsageError
from shardctl.files.documents import Document, json_line, json_lines, to_json, to_yaml
from shardctl.planning.locate import MATCH_FIELDS, match_columns
from shardctl.planning.shard_map import Strips, Visit, strips
from shardctl.planning.simulate import Simulation
from shardctl.rendering.text.step_rows import (
    epoch_starts,
    hues_of,
    order_head,
    order_heading,
    order_rows,
    pipeline_record,
    shard_name,
    step_starts,
)
from shardctl.rendering.text.tables import SLOT_LOOKS, Screen, display_width, paragraph, slot_styled

_PIECE = 1 << 14  # examples made into text at once
_IDS_IN_LINE = 16


def simulate_table(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield the line that names the pipeline, and the ids, a row for each block of a shard."""
    order = simulation.order
    yield from order_heading(simulation.spec, order, screen, "bold")
    total = "an endless order" if order.is_endless else f"{order.num_examples:,}"
    if not simulation.take:
        yield paragraph(
            f"no positions of {total}" if order.is_endless else f"none of {total} positions", screen
        )
        return
    last = simulation.skip + simulation.take - 1
    yield paragraph(f"positions {simulation.skip:,} to {last:,} of {total}", screen)
    if screen.pictures:
        yield from strip_lines(simulation, screen)
    yield from order_rows(order, simulation.chunks(), simulation.skip, screen)


def simulate_document(simulation: Simulation) -> Document:
    """Return the document of `simulate`."""
    ids = simulation.order.codes.ids(simulation.ids())
    return {**_document_without_ids(simulation), "ids": ids}


def simulate_json(simulation: Simulation) -> Iterator[str]:
    """Yield the document as JSON, the ids chunk by chunk."""
    yield "".join(to_json(_document_without_ids(simulation))).removesuffix("\n}\n")
    yield ',\n  "ids": ['
    separator = ""
    for ids in _ids(simulation):
        yield f"{separator}{json_line(ids)[1:-1]}"
        separator = ", "
    yield "]\n}\n"


def simulate_yaml(simulation: Simulation) -> Iterator[str]:
    """Yield the document as YAML, the ids chunk by chunk."""
    yield from to_yaml(_document_without_ids(simulation))
    yield "ids: ["
    separator = ""
    for ids in _ids(simulation):
        # Quoted as in JSON: `12:30`, an id of a split named 12, would be a number in base 60.
        for start in range(0, len(ids), _IDS_IN_LINE):
            yield f"{separator}{json_line(ids[start : start + _IDS_IN_LINE])[1:-1]}"
            separator = ",\n  "
    yield "]\n"


def _document_without_ids(simulation: Simulation) -> Document:
    order = simulation.order
    return {
        **order_head("simulate", order),
        "spec": simulation.spec,
        "pipeline": pipeline_record(order),
        "num_examples": None if order.is_endless else order.num_examples,
        "skip": simulation.skip,
        "take": simulation.take,
    }


def _ids(simulation: Simulation) -> Iterator[list[int] | list[str]]:
    return (simulation.order.codes.ids(codes) for _, codes in _pieces(simulation))


def id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the ids, a line each."""
    return ("".join(f"{name}\n" for name in ids) for ids in _ids(simulation))


def tfds_id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the tfds_ids, a line each."""
    for _, codes in _pieces(simulation):
        yield "".join(f"{name}\n" for name in simulation.order.codes.tfds_ids(codes))


def simulate_lines(simulation: Simulation) -> Iterator[str]:
    """Yield a JSON record for each example, a line each."""
    return json_lines(simulate_rows(simulation))


def simulate_rows(simulation: Simulation) -> RecordStream:
    """Return the record of each example."""
    return RecordStream(
        MATCH_FIELDS,
        lambda: (
            (len(codes), match_columns(simulation.order, positions, codes))
            for positions, codes in _pieces(simulation)
        ),
    )


def _pieces(simulation: Simulation) -> Iterator[tuple[Int64s, Int64s]]:
    """Yield the positions and the codes, int64[q] each, in pieces that become text at once."""
    position = simulation.skip
    for codes in simulation.chunks():
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            yield np.arange(position, position + len(piece)), piece
            position += len(piece)


def array_file(simulation: Simulation) -> Iterator[bytes | memoryview]:
    """Yield an .npy file of the ids, int64[take], chunk by chunk, as bytes.

    Raises:
        UsageError: the spec reads several splits, whose ids are not numbers.
    """
    if simulation.order.codes.several_splits:
        raise UsageError(
            f"--format npy holds numbers, and {simulation.spec} reads several splits, whose ids "
            "are written split:id; choose ids, tfds-ids or jsonl"
        )
    yield _array_header(simulation)
    for codes in simulation.chunks():
        yield codes.astype("<i8", copy=False).data.cast("B")


def array_num_bytes(simulation: Simulation) -> int:
    """Return how large the .npy file will be."""
    return len(_array_header(simulation)) + 8 * simulation.take


def _array_header(simulation: Simulation) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": (simulation.take,)}
    )
    return header.getvalue()


# The first blocks of an order in a terminal: strips of shards, each with its number.

_SLOTS = 16  # rows of slots
_VISITS = 256  # looked at
_STEPS = 256  # batches that are marked
_NAME = 12  # columns of a shard's name
_WIDEST = 8  # columns of a block more than its name, where there is room to spare
_LEAST_ROOM = 8  # columns, where the screen is too narrow for a picture that is asked for
_MORE, _GAP = "─", "  "


def strip_lines(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield what to see, and the first visits of a stretch: a row a slot, or one for all."""
    from shardctl.rendering.terminal.bars import beside, tick_line

    order, start = simulation.order, simulation.skip
    found = strips(order, start, start + simulation.take, most=_VISITS)
    if not found.visits:
        return
    in_slots = len({visit.slot for visit in found.visits}) > 1
    slots = sorted({visit.slot or 0 for visit in found.visits}) if in_slots else [0]
    lead = max(len("position"), len(f"slot {slots[-1]}")) + len(_GAP)
    room = max(screen.picture_width - lead, _LEAST_ROOM)
    visits = _first_visits(found, room)
    names = [shard_name(visit, found, _NAME) for visit in visits]
    starts = _columns(visits, names, room)
    last = visits[-1].position + visits[-1].count
    shown = f"position {start}" if last - start == 1 else f"positions {start} to {last - 1}"
    row = "a row is a slot, a number the shard it reads then" if in_slots else "a number is a shard"
    yield paragraph(f"{shown}: {row}", beside(screen))
    rows: dict[int, str] = {}
    ends: dict[int, int] = {}
    hues = hues_of(visits, len(SLOT_LOOKS))
    for number, (visit, name, hue) in enumerate(zip(visits, names, hues, strict=True)):
        slot, begin, stop = visit.slot or 0 if in_slots else 0, starts[number], starts[number + 1]
        if number + 1 < len(visits) and visits[number + 1].slot == visit.slot:
            stop -= 1  # a gap before the next block of the slot
        block = name + _MORE * (stop - begin - display_width(name))
        block = slot_styled(block, hue) if screen.color else block
        rows[slot] = rows.get(slot, "") + " " * (begin - ends.get(slot, 0)) + block
        ends[slot] = stop
    for slot, text in sorted(rows.items()):
        yield f"{_lead(f'slot {slot}' if in_slots else 'shard', lead)}{text}\n"

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
    for title, turns in marked:
        if turns:
            ticks = [(column(position), str(number)) for position, number in turns]
            yield f"{_lead(title, lead)}{tick_line(ticks, room)}\n"
    yield "\n"


def _first_visits(found: Strips, room: int) -> tuple[Visit, ...]:
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


def _lead(text: str, width: int) -> str:
    return f"{text:>{width - len(_GAP)}}{_GAP}"
