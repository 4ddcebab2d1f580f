"""A stretch of an order for people: a row for each block that a slot reads of a shard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.order.order import Order
from shardctl.core.text import printable
from shardctl.planning.pictures.strips import blocks_of
from shardctl.rendering.text.looks import slot_styled
from shardctl.rendering.text.tables import Screen

Bools = NDArray[np.bool_]

_PIECE = 1 << 14  # examples made into rows at once
_LONGEST_ROW = 32  # ids; longer blocks take several rows
_MIXED_ROW = 8  # ids in a row after a shuffle buffer
_NAME = 20  # characters of a split's name on a terminal


def order_rows(order: Order, chunks: Iterable[Int64s], start: int, screen: Screen) -> Iterator[str]:
    """Yield a heading and the rows of the codes at the positions from `start` on.

    Without a buffer a row is what one visit of a slot reads, so that the eye finds blocks, slots
    and shards. A buffer has none of these, and each id says its shard.
    """
    rows = _Rows(order, screen)
    mixed = not order.has_blocks
    yield rows.heading("id@shard" if mixed else "ids")
    for codes in chunks:
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            positions = np.arange(start, start + len(piece))
            yield from (rows.mixed if mixed else rows.blocks)(piece, positions)
            start += len(piece)


class _Rows:
    """How rows are laid out, and how ids look: like their slot.

    Where there are no slots, each shard gets the look of the next one when it is first seen.
    """

    def __init__(self, order: Order, screen: Screen) -> None:
        self._order, self._screen = order, screen
        self._longest_name = 10_000 if screen.width is None else _NAME
        self._columns = _columns(order, self._longest_name)
        self._has_slots = "slot" in dict(self._columns)
        self._seen: dict[tuple[int, int], int] = {}

    def heading(self, ids: str) -> str:
        titles = [title for title, _ in self._columns]
        lead = self._lead(titles)
        return f"{lead}{ids}\n"

    def blocks(self, codes: Int64s, positions: Int64s) -> Iterator[str]:
        found = blocks_of(self._order, codes, positions)
        breaks = found.breaks | self._turns(positions)
        names = list(map(str, self._order.codes.split_ids(codes).tolist()))
        for first, stop in _runs(breaks, len(codes), _LONGEST_ROW):
            place = int(found.splits[first]), int(found.shards[first])
            slot = int(found.slots[first])
            lead = self._lead(self._cells(positions[first], slot, place))
            look = slot if self._has_slots else self._look_of(place)
            for number, line in enumerate(_folded(names[first:stop], self._room(lead))):
                yield f"{lead if not number else ' ' * len(lead)}{self._styled(line, look)}\n"

    def mixed(self, codes: Int64s, positions: Int64s) -> Iterator[str]:
        splits, shards, _ = self._order.codes.places(codes)
        names = self._order.codes.names(codes)
        places = list(zip(splits.tolist(), shards.tolist(), strict=True))
        cells = [f"{name}@{shard}" for name, (_, shard) in zip(names, places, strict=True)]
        width = max(map(len, cells))
        for first, stop in _runs(self._turns(positions), len(codes), _MIXED_ROW):
            lead = self._lead(self._cells(positions[first], None, None))
            fitting = max(1, (self._room(lead) or 10**9) // (width + 1))
            for begin in range(first, stop, fitting):
                part = range(begin, min(begin + fitting, stop))
                ids = (
                    " " * (width - len(cells[i])) + self._styled(cells[i], self._look_of(places[i]))
                    for i in part
                )
                yield f"{lead if begin == first else ' ' * len(lead)}{' '.join(ids)}\n"

    def _turns(self, positions: Int64s) -> Bools:
        """Return where a batch or an epoch begins between two positions, bool[n - 1]."""
        turns: Bools = np.diff(self._order.epoch_of(positions)) != 0
        if self._order.has_steps:
            turns |= np.diff(self._order.steps_of(positions)[0]) != 0
        return turns

    def _cells(
        self, position: np.int64, slot: int | None, place: tuple[int, int] | None
    ) -> Sequence[str]:
        order, here = self._order, np.array([position])
        values = {
            "position": int(position),
            "epoch": int(order.epoch_of(here)[0]),
            "step": int(order.steps_of(here)[0][0]),
            "slot": slot,
            "shard": "" if place is None else _shard(order, place, self._longest_name),
        }
        return [str(values[title]) for title, _ in self._columns]

    def _lead(self, cells: Sequence[str]) -> str:
        widths = (width for _, width in self._columns)
        return "".join(
            f"{cell:<{-width}}  " if width < 0 else f"{cell:>{width}}  "
            for cell, width in zip(cells, widths, strict=True)
        )

    def _room(self, lead: str) -> int | None:
        return None if self._screen.width is None else max(self._screen.width - len(lead), 1)

    def _look_of(self, place: tuple[int, int]) -> int:
        return self._seen.setdefault(place, len(self._seen))

    def _styled(self, text: str, look: int) -> str:
        return slot_styled(text, look) if self._screen.color else text


def _columns(order: Order, longest_name: int) -> Sequence[tuple[str, int]]:
    """Return the headings and widths of the columns before the ids; below 0: to the left."""
    settings = order.settings
    last = max(order.num_examples - 1, 0)
    columns = [("position", max(8, len(str(last))))]
    if order.num_epochs is None or order.num_epochs > 1:
        columns.append(("epoch", max(5, len(str((order.num_epochs or 1) - 1)))))
    if order.has_steps:
        columns.append(("step", max(4, len(str((order.num_steps or 1) - 1)))))
    if order.has_blocks:
        if settings.cycle_length(ordered=order.dataset.ordered) > 1:
            columns.append(("slot", 4))
        used = distinct(order.reads.split).tolist()
        splits = {index: order.dataset.splits[index] for index in used}
        last_places = ((index, split.num_shards - 1) for index, split in splits.items())
        names = (_shard(order, place, longest_name) for place in last_places)
        columns.append(("shard", -max(5, *map(len, names))))
    return columns


def _shard(order: Order, place: tuple[int, int], longest_name: int) -> str:
    split, shard = place
    if not order.codes.several_splits:
        return str(shard)
    return f"{printable(order.dataset.splits[split].name, longest_name)}:{shard}"


def _runs(breaks: Bools, count: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield [first, stop) of the runs between breaks, none longer than `longest`."""
    for first, stop in pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), count]):
        for begin in range(first, stop, longest):
            yield begin, min(begin + longest, stop)


def _folded(words: Sequence[str], width: int | None) -> Sequence[str]:
    """Return the words in lines of a width, a word in each at least."""
    text = " ".join(words)
    if width is None or len(text) <= width:
        return [text]
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines
