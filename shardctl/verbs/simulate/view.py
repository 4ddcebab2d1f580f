"""A part of an order as blocks, ids a line, records, an array file, or code that has it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.columns import RecordStream, picked
from shardctl.base.text import counted, printable
from shardctl.base.tfds_rules import POSITIONS
from shardctl.draw.step_rows import order_head, order_heading, order_rows, pipeline_record
from shardctl.draw.tables import Screen, display_width, paragraph
from shardctl.errors import UsageError
from shardctl.files.documents import Chunks, Document, json_lines
from shardctl.order.order import Order
from shardctl.order.shard_map import Strips, Visit
from shardctl.order.shard_map import strips as strips_of
from shardctl.verbs.locate.answer import MATCH_FIELDS, match_columns
from shardctl.verbs.simulate.answer import Simulation

if TYPE_CHECKING:  # else a pipe would load what draws
    from shardctl.draw.picture import Line, Paper, Picture

_PIECE = 1 << 14  # examples made into text at once


def simulate_table(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield the line that names the pipeline, and the ids, a row for each block of a shard."""
    order = simulation.order
    yield from order_heading(simulation.spec, order, screen, "bold")
    total = "an endless order" if order.is_endless else f"{order.num_examples:,}"
    if not simulation.take:
        yield paragraph(
            f"no positions of {total}" if order.is_endless else f"0 of {total} positions", screen
        )
        return
    last = simulation.skip + simulation.take - 1
    yield paragraph(f"positions {simulation.skip:,} to {last:,} of {total}", screen)
    if screen.pictures:
        from shardctl.draw.picture import picture_lines

        yield from picture_lines(simulation, screen)
        yield "\n"
    yield from order_rows(order, simulation.chunks(), simulation.skip, screen)


def simulate_document(simulation: Simulation) -> Document:
    """Return the document of `simulate`."""
    order = simulation.order
    return {
        **order_head("simulate", order),
        "spec": simulation.spec,
        "pipeline": pipeline_record(order),
        "num_examples": None if order.is_endless else order.num_examples,
        **picked(simulation, "skip take"),
        # Written piece by piece, so that a long order takes no memory.
        "ids": Chunks(lambda: _ids(simulation)),
    }


def _ids(simulation: Simulation) -> Iterator[list[int] | list[str]]:
    return (simulation.order.codes.ids(codes) for _, codes in _pieces(simulation))


def id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the ids, a line each."""
    return ("".join(f"{name}\n" for name in ids) for ids in _ids(simulation))


def tfds_id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the tfds_ids, a line each.

    Raises:
        UsageError: the elements are of no file.
    """
    if simulation.order.dataset.file_format == POSITIONS:
        raise UsageError(f"elements of {simulation.order.dataset.title} have no tfds_id; -f ids")
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
            # At most _PIECE examples become text at once.
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
    header, shape = io.BytesIO(), (simulation.take,)
    described = {"descr": "<i8", "fortran_order": False, "shape": shape}
    # NumPy's own header; the data follows as little-endian int64, whatever the machine.
    np.lib.format.write_array_header_1_0(header, described)
    yield header.getvalue()
    for codes in simulation.chunks():
        # A view of bytes: nothing is copied.
        yield simulation.order.codes.numbers(codes).astype("<i8", copy=False).data.cast("B")


# The order as code: the calls of TFDS and tf.data that have it.


def simulate_python(simulation: Simulation) -> Iterator[str]:
    """Yield code that makes `ds`, whose iterations have the order.

    What is shown of the order (`skip`, `take`) is no part of the pipeline.

    Raises:
        DatasetError: `as_dataset` does not read the format.
        UsageError: a list of more files than code is to hold, or nothing to read.
    """
    # Imported when code is asked for: it takes longer than the order itself.
    from shardctl.code import reader
    from shardctl.code.pipeline import order_module
    from shardctl.code.python_text import module, order_comment
    from shardctl.loaders.loader import library_of
    from shardctl.order.loader_order import LoaderOrder

    order, settings = simulation.order, simulation.order.settings
    notes = order_comment(simulation.spec, order)
    if isinstance(order, LoaderOrder):
        # Another loader is called by the code of its own library.
        yield from module(notes, *library_of(order.loader).code(simulation.spec, order))
        return
    if not len(order.reads):
        raise reader.nothing_to_read(simulation.spec, settings)
    yield from order_module(order, simulation.spec, notes, _how_to_read(simulation))


def _how_to_read(simulation: Simulation) -> Iterator[str]:
    settings = simulation.order.settings
    index = settings.pass_index
    if settings.loop == "keras-fit":
        yield f"# The order is that of epoch {index} of fit, counted from 0."
        yield f"model.fit(ds, epochs={index + 1})"
    elif index:
        yield f"# The order of iteration {index} of ds, counted from 0. Each draws new seeds:"
        yield f"# iterate over all of ds before, {'once' if index == 1 else f'{index} times'}."


# As pictures.

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
    from shardctl.draw.picture import Picture, Span, nothing, words

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
