"""A stretch of an order as blocks for people, as ids a line, as records, or as an array file."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from shardctl.core.quoting import printable
from shardctl.core.read_table import Int64s
from shardctl.errors import UsageError
from shardctl.planning.locate import matches_at
from shardctl.planning.simulate import Simulation
from shardctl.rendering.documents import Document, head
from shardctl.rendering.order_records import (
    MATCH_HEADER,
    match_record,
    pipeline_line,
    pipeline_record,
)
from shardctl.rendering.screen import Screen

CSV_HEADER = MATCH_HEADER
_PIECE = 1 << 14  # examples made into text at once
_COLORS = ("cyan", "yellow", "green", "magenta", "blue", "red")


def simulate_table(simulation: Simulation, screen: Screen) -> Iterator[str]:
    """Yield the pipeline's line and the ids, a row for each run of one shard."""
    order = simulation.order
    stop = simulation.skip + simulation.take
    total = f"{order.num_examples:,}"
    if simulation.take:
        stretch = f"positions {simulation.skip:,} to {stop - 1:,} of {total}"
    else:
        stretch = f"no positions of {total}"
    for line in (pipeline_line(simulation.spec, order), stretch):
        yield from (f"{piece}\n" for piece in _folded(printable(line, 2000), screen.width))
    if not simulation.take:
        return
    widths = max(len("position"), len(str(stop - 1))), max(len("shard"), _shard_width(simulation))
    yield f"{'position':>{widths[0]}}  {'shard':<{widths[1]}}  ids\n"
    position = simulation.skip
    for codes in simulation.chunks():
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            yield from _rows(simulation, piece, position, widths, screen)
            position += len(piece)


def _rows(
    simulation: Simulation, codes: Int64s, position: int, widths: tuple[int, int], screen: Screen
) -> Iterator[str]:
    order = simulation.order
    splits, shards, indices = order.codes.places(codes)
    names = order.codes.names(codes)
    block = order.settings.block
    # A row ends where the shard changes or the ids jump, and after a block.
    breaks = (np.diff(shards) != 0) | (np.diff(splits) != 0) | (np.diff(indices) != 1)
    starts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(codes)]
    several = order.codes.several_splits
    for start, stop in pairwise(starts):
        split, shard = order.dataset.splits[int(splits[start])], int(shards[start])
        label = f"{printable(split.name, 40)}:{shard}" if several else str(shard)
        size = max(1, min(block, 64))
        for first in range(start, stop, size):
            ids = names[first : min(first + size, stop)]
            lead = f"{position + first:>{widths[0]}}  {label:<{widths[1]}}  "
            room = None if screen.width is None else max(screen.width - len(lead), 12)
            for number, line in enumerate(_folded(" ".join(ids), room)):
                yield (
                    (lead if not number else " " * len(lead)) + _colored(line, shard, screen) + "\n"
                )


def _shard_width(simulation: Simulation) -> int:
    splits = simulation.order.dataset.splits
    longest = max(len(str(split.num_shards)) for split in splits)
    if simulation.order.codes.several_splits:
        longest += 1 + max(len(printable(split.name, 40)) for split in splits)
    return longest


def _folded(text: str, width: int | None) -> Sequence[str]:
    if width is None or len(text) <= width:
        return [text]
    import textwrap

    return textwrap.wrap(text, width, break_long_words=True, break_on_hyphens=False)


def _colored(text: str, shard: int, screen: Screen) -> str:
    if not screen.color:
        return text
    from rich.style import Style

    return Style(color=_COLORS[shard % len(_COLORS)]).render(text)


def simulate_document(simulation: Simulation) -> Document:
    """Return the document of the command line's contract."""
    order = simulation.order
    return {
        **head("simulate", order.dataset),
        "spec": simulation.spec,
        "pipeline": pipeline_record(order),
        "num_examples": order.num_examples,
        "skip": simulation.skip,
        "take": simulation.take,
        "ids": order.codes.ids(simulation.ids()),
    }


def id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the ids, a line each."""
    for codes in simulation.chunks():
        yield from _lines(simulation.order.codes.names(codes))


def tfds_id_lines(simulation: Simulation) -> Iterator[str]:
    """Yield the tfds_ids, a line each."""
    for codes in simulation.chunks():
        yield from _lines(simulation.order.codes.tfds_ids(codes))


def _lines(texts: list[str]) -> Iterator[str]:
    if texts:
        yield "\n".join(texts) + "\n"


def json_lines(simulation: Simulation) -> Iterator[str]:
    """Yield a JSON record for each example, a line each."""
    for row in _records(simulation):
        yield json.dumps(row, ensure_ascii=False) + "\n"


def simulate_rows(simulation: Simulation) -> Iterator[Sequence[object]]:
    """Yield a CSV row for each example."""
    for row in _records(simulation):
        yield tuple(row.values())


def _records(simulation: Simulation) -> Iterator[Document]:
    position = simulation.skip
    for codes in simulation.chunks():
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            positions = np.arange(position, position + len(piece))
            position += len(piece)
            for match in matches_at(simulation.order, positions, piece):
                yield match_record(match)


def array_file(simulation: Simulation) -> Iterator[bytes]:
    """Yield an .npy file of the ids, int64[take], chunk by chunk.

    Raises:
        UsageError: the spec reads several splits, whose ids are no numbers.
    """
    if simulation.order.codes.several_splits:
        raise UsageError(
            f"--format npy holds numbers, and {simulation.spec} reads several splits, whose ids "
            "are written split:id; choose ids, tfds-ids or jsonl"
        )
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": (simulation.take,)}
    )
    yield header.getvalue()
    for codes in simulation.chunks():
        yield codes.astype("<i8", copy=False).tobytes()
