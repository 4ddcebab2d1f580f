"""Orders for people: the line that names the pipeline, and a row for each block of a shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s, distinct, spans
from shardctl.base.text import printable
from shardctl.base.tfds_rules import POSITIONS
from shardctl.dataset.dataset import Dataset
from shardctl.dataset.identity import DatasetHead
from shardctl.draw.tables import Look, Screen, paragraph, slot_styled
from shardctl.files.documents import Document
from shardctl.order.example_codes import PAD
from shardctl.order.order import Order
from shardctl.order.shard_map import blocks_of
from shardctl.saved.head import head
from shardctl.settings.read_settings import settings_in_force
from shardctl.settings.table import SETTINGS, InForce

# Records of the examples of an order, and the line that names the pipeline.


def order_head(kind: str, order: Order) -> Document:
    """Return the fields that a document about an order begins with."""
    return head(kind, order.dataset.identity, assumptions=order.assumptions)


def order_heading(spec: str, order: Order, screen: Screen, style: Look = "") -> Iterator[str]:
    """Yield the line that names the pipeline, and what the order depends on unstated."""
    yield from heading(pipeline_line(spec, order), order.assumptions, screen, style)


def heading(
    title: str, assumptions: Iterable[str], screen: Screen, style: Look = ""
) -> Iterator[str]:
    """Yield a title, and below it what is assumed."""
    yield paragraph(title, screen, style=style)
    for text in assumptions:
        yield paragraph(f"assumed: {text}", screen)


def pipeline_record(order: Order) -> dict[str, Any]:
    """Return the settings in force, with every default filled in."""
    return settings_in_force(order.settings, ordered=order.dataset.ordered)


def pipeline_line(spec: str, order: Order) -> str:
    """Return one line that names the spec, the dataset and the settings that shape the order."""
    return reading_line(spec, order.dataset, pipeline_record(order))


def reading_line(spec: str, dataset: Dataset | DatasetHead, in_force: InForce) -> str:
    """Return one line that names what is read, and the settings in force that shape the order."""
    if dataset.file_format == POSITIONS:  # no files are interleaved
        in_force = {**in_force, "cycle": None, "block": None}
    return f"{spec} of {dataset.title}: {settings_words(in_force) or 'in their order'}"


# Where places are equal the order of the table counts.
_SAID = sorted(SETTINGS, key=lambda setting: setting.place)


def settings_words(in_force: InForce) -> str:
    """Return those of the settings in force that shape an order, as words."""
    return ", ".join(filter(None, (setting.said(in_force) for setting in _SAID)))


# A stretch of an order for people: a row for each block that a slot reads of a shard.

_PIECE = 1 << 14  # examples made into rows at once
_LONGEST_ROW = 32  # ids; longer blocks take several rows
_MIXED_ROW = 8  # ids in a row after a shuffle buffer
_NAME = 20  # characters of a split's name on a terminal

# A column before the ids: heading, width (below 0: to the left), what it says of a row, given its
# position (int64[1]), slot and shard.
_Lead = tuple[str, int, Callable[[Int64s, int, str], object]]


def order_rows(order: Order, chunks: Iterable[Int64s], start: int, screen: Screen) -> Iterator[str]:
    """Yield a heading and the rows of the codes at the positions from `start` on.

    Without a buffer a row is what one visit of a slot reads, so that the eye finds blocks, slots
    and shards. A buffer has none of these, and each id says its shard. Ids look like their slot;
    where there are no slots, each shard gets the next look when it is first seen.
    """
    longest = 10_000 if screen.width is None else _NAME
    leads = _leads(order, longest)
    mixed, has_files = not order.has_blocks, order.dataset.file_format != POSITIONS
    says_shard = mixed and has_files
    yield _line(leads, [title for title, *_ in leads]) + ("id@shard\n" if says_shard else "ids\n")
    has_slots = "slot" in [title for title, *_ in leads]
    seen: dict[tuple[int, int], int] = {}
    for codes in chunks:
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            positions = np.arange(start, start + len(piece))
            start += len(piece)
            breaks = np.diff(order.epoch_of(positions)) != 0
            if order.has_steps:
                breaks |= np.diff(order.steps_of(positions)[0]) != 0
            if mixed:
                splits, shards, _ = order.codes.places(piece)
                slots = np.full(len(piece), -1)
                names = [
                    f"{name}@{shard}" if has_files and name != PAD else name
                    for name, shard in zip(order.codes.names(piece), shards.tolist(), strict=True)
                ]
                width = max(map(len, names))
                names = [name.rjust(width) for name in names]
            else:
                found = blocks_of(order, piece, positions)
                splits, shards, slots = found.splits, found.shards, found.slots
                breaks |= found.breaks
                names = list(map(str, order.codes.split_ids(piece).tolist()))
            places = list(zip(splits.tolist(), shards.tolist(), strict=True))
            for first, stop in _runs(breaks, len(piece), _MIXED_ROW if mixed else _LONGEST_ROW):
                slot, here = int(slots[first]), positions[first : first + 1]
                shard = _shard(order, places[first], longest)
                lead = _line(leads, [str(cell(here, slot, shard)) for *_, cell in leads])
                room = None if screen.width is None else max(screen.width - len(lead), 1)
                looks = (
                    slot if has_slots and not mixed else seen.setdefault(place, len(seen))
                    for place in places[first:stop]
                )
                words = list(zip(names[first:stop], looks, strict=True))
                for line in _folded(words, room):
                    yield f"{lead}{_styled(line, screen, alike=not mixed)}\n"
                    lead = " " * len(lead)


def _leads(order: Order, longest_name: int) -> list[_Lead]:
    last = max(order.num_examples - 1, 0)
    found: list[_Lead] = [("position", max(8, len(str(last))), lambda at, slot, shard: int(at[0]))]
    if order.num_epochs is None or order.num_epochs > 1:
        width = max(5, len(str((order.num_epochs or 1) - 1)))
        found.append(("epoch", width, lambda at, slot, shard: int(order.epoch_of(at)[0])))
    if order.has_steps:
        width = max(4, len(str((order.num_steps or 1) - 1)))
        found.append(("step", width, lambda at, slot, shard: int(order.steps_of(at)[0][0])))
    if order.has_blocks and order.dataset.file_format != POSITIONS:
        if order.settings.cycle_length(ordered=order.dataset.ordered) > 1:
            found.append(("slot", 4, lambda at, slot, shard: slot))
        splits = order.codes.dataset.splits
        used = distinct(order.reads.split).tolist()
        last_shards = ((index, splits[index].num_shards - 1) for index in used)
        names = [_shard(order, place, longest_name) for place in last_shards]
        found.append(("shard", -max(5, *map(len, names)), lambda at, slot, shard: shard))
    return found


def _line(leads: Sequence[_Lead], cells: Sequence[str]) -> str:
    widths = (width for _, width, _ in leads)
    return "".join(
        f"{cell:{'<' if width < 0 else '>'}{abs(width)}}  "
        for cell, width in zip(cells, widths, strict=True)
    )


def _styled(words: Sequence[tuple[str, int]], screen: Screen, *, alike: bool) -> str:
    """Return words in their looks, those that look alike as one."""
    text = " ".join(word for word, _ in words)
    if not screen.color:
        return text
    if alike:
        return slot_styled(text, words[0][1])
    blanks = (" " * (len(word) - len(word.lstrip())) for word, _ in words)
    styled = (slot_styled(word.lstrip(), look) for word, look in words)
    return " ".join(map("".join, zip(blanks, styled, strict=True)))


def _shard(order: Order, place: tuple[int, int], longest_name: int) -> str:
    split, shard = place
    if not order.codes.several_splits:
        return str(shard)
    return f"{printable(order.codes.dataset.splits[split].name, longest_name)}:{shard}"


def _runs(breaks: NDArray[np.bool_], count: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield [first, stop) of the runs between breaks, none longer than `longest`."""
    for first, stop in pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), count]):
        yield from spans(first, stop, longest)


def _folded(words: Sequence[tuple[str, int]], width: int | None) -> list[list[tuple[str, int]]]:
    """Return the words in lines of a width, a word in each at least."""
    lines, used = [[words[0]]], len(words[0][0])
    for word in words[1:]:
        used += 1 + len(word[0])
        if width is None or used <= width:
            lines[-1].append(word)
        else:
            lines.append([word])
            used = len(word[0])
    return lines
