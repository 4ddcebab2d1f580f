"""The steps of an evaluation as a picture: a row a host, with a mark where a collective hangs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from shardctl.base.arrays import Int64s
from shardctl.base.text import counted, printable
from shardctl.draw.picture import FULL, PARTIAL, SHADE, Paper, Picture, Span, tick_line, words
from shardctl.draw.quantities import counts_between, short_count
from shardctl.draw.tables import Look, Screen, paragraph
from shardctl.verbs.eval.answer import Evaluation

_ROWS = 12  # hosts, or groups of them
_BEFORE_THE_END = 4  # steps before the first host is done that are not folded
_FOLD = 2.0  # steps as wide as those that are folded, at least
_WIDEST_STEP = 5  # columns
_LEAST_WITH_GAP = 3
_SPARE = 3  # columns for pieces that are narrower than one
_LEAST_ROOM = 10  # columns of a row, for which words are shorter and lines too long at last
_GAP = "  "
_FOLDED = "…"
_LOST = "x"
# What each mark of a row stands for.
_KEYS = {FULL: "full batch", PARTIAL: "not full", SHADE: "padding", _LOST: "lost"}
_LOOKS: dict[str, Look] = {SHADE: "quiet", _LOST: "warning"}

_Range = tuple[int, int]  # the least and the most of some hosts
_Row = list[tuple[str, float]]  # marks, and the step up to which each goes on


def eval_pictures(evaluation: Evaluation, paper: Paper) -> tuple[Picture, ...]:
    """Return a row for each host or group of them, and where a collective hangs."""
    groups = _groups(evaluation)
    hang = evaluation.hang(evaluation.remainder)
    names = ["host", *(group.name for group in groups)]
    lead = max(map(len, names)) + len(_GAP)
    room = paper.width - lead - len(_GAP)
    states = [f"{counts_between(*group.steps)} {group.state}".rstrip() for group in groups]
    if room - max(map(len, states)) < _LEAST_ROOM:  # who waits, else about how many steps
        states = [g.state or "–".join(map(short_count, sorted(set(g.steps)))) for g in groups]
    room = max(room - max(map(len, states)), _LEAST_ROOM)
    columns = _Columns(groups, room)
    rows = [group.row() for group in groups]
    cells = [columns.cells(row) for row in rows]
    width = max(columns.at(columns.stop), *map(len, cells))
    found = {mark for row in rows for mark, _ in row}
    keys = {mark: text for mark, text in _KEYS.items() if mark in found}
    if PARTIAL in keys and any(group.full[0] < group.full[1] for group in groups):
        keys[PARTIAL] += ", or of some of them"
    legend = ", ".join(f"{mark} {text}" for mark, text in keys.items())
    lines = [words(line) for line in paragraph(legend, Screen(width=paper.width)).splitlines()]
    for name, row, word, group in zip(names[1:], cells, states, groups, strict=True):
        marks = (Span("".join(run), _LOOKS.get(mark, "")) for mark, run in groupby(row))
        look: Look = "error" if group.state == "waits" else ""
        gap = Span(" " * (width - len(row)) + _GAP)
        lines.append((Span(f"{name:>{lead - len(_GAP)}}{_GAP}"), *marks, gap, Span(word, look)))
    ticks = [(0, "0"), (columns.at(columns.stop), f"{columns.stop:,}")]
    if columns.start:
        ticks.insert(1, (columns.at(columns.start), f"{columns.start:,}"))
    lines.append(words(f"{'step':>{lead - len(_GAP)}}{_GAP}", tick_line(ticks, room)))
    if hang is not None:
        text, before = f"hangs at step {hang.step:,}", lead + columns.at(hang.step)
        line = f"{' ' * before}^ {text}"
        line = line if len(line) <= paper.width else f"{text} ^".rjust(before + 1)
        lines.append(words(line, look="error"))
    spec = printable(evaluation.spec, 200)
    caption = "the steps of each host: all rows must end together."
    return (
        Picture(
            name="eval-steps",
            title=f"Steps of {counted(evaluation.num_hosts, 'host')} in {spec}",
            caption=caption if evaluation.total else "nothing, for there are no examples.",
            marks=tuple(lines) if evaluation.total else (),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Group:
    """Hosts that are alike, by their numbers (int64[n], ascending), as the least and the most."""

    evaluation: Evaluation
    hosts: Int64s

    def _range(self, column: Int64s) -> _Range:
        own = column[self.hosts]
        return int(own.min()), int(own.max())

    @property
    def steps(self) -> _Range:
        """How many steps they make."""
        return self._range(self.evaluation.num_steps(self.evaluation.remainder))

    @property
    def full(self) -> _Range:
        """How many batches they have without a place left."""
        return self._range(self.evaluation.full_steps)

    @property
    def partial(self) -> _Range:
        """How many they have that hold fewer examples."""
        return self._range(self.evaluation.num_batches - self.evaluation.full_steps)

    @property
    def name(self) -> str:
        """Which hosts these are, in short; with others among them how many."""
        first, last, count = int(self.hosts[0]), int(self.hosts[-1]), len(self.hosts)
        is_run = last - first + 1 == count
        return counts_between(first, last) if is_run else f"{count:,} hosts"

    @property
    def state(self) -> str:
        """What becomes of them where a collective hangs, in a word; "" where none does."""
        hang = self.evaluation.hang(self.evaluation.remainder)
        if hang is None:
            return ""
        return "waits" if self.steps[0] > hang.step else "done"

    def row(self) -> _Row:
        """Return the marks of their steps, each with the step at which it ends.

        A batch that is not full takes as much of its step as it has examples, where hosts are
        alike; where they are not, the steps that only some make with a full one are not full.
        """
        way, (full, most_full), most = self.evaluation.remainder, self.full, self.partial[1]
        least_left, left = self._range(self.evaluation.remainders)
        share = left / self.evaluation.host_batch
        drops, steps = way == "drop", self.steps[1]
        filled: float = most_full + (0 if drops else most)
        if not drops and least_left == left and self.partial == (1, 1):
            filled = full + share
        pieces = [
            (FULL, full, full > 0),
            (PARTIAL, filled, filled > full),
            (_LOST, filled + share, drops and most > 0),
            (SHADE, steps, way == "pad" and steps > filled),
        ]
        return [(mark, stop) for mark, stop, is_there in pieces if is_there]


def _groups(evaluation: Evaluation) -> list[_Group]:
    """Return the hosts in few groups, by the first of each; few hosts are alone.

    Many hosts are together that have as many examples in as many batches; if these groups are too
    many, those that make about as many steps, where the hosts with the fewest, for which others
    wait, are a group of their own.
    """
    labels = np.arange(evaluation.num_hosts)
    if evaluation.num_hosts > _ROWS:
        figures = (evaluation.num_examples, evaluation.full_steps, evaluation.num_batches)
        rows = np.stack(figures, axis=1)
        labels = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        if int(labels.max()) >= _ROWS:
            # Padding makes all alike: how many batches they have is what tells them apart.
            way = "drop" if evaluation.remainder == "drop" else "ragged"
            ranks = np.unique(evaluation.num_steps(way), return_inverse=True)[1].reshape(-1)
            labels = ranks
            if (others := int(ranks.max())) >= _ROWS:
                labels = np.where(ranks == 0, 0, 1 + (ranks - 1) * (_ROWS - 1) // others)
    found = [_Group(evaluation, np.flatnonzero(labels == label)) for label in np.unique(labels)]
    return sorted(found, key=lambda group: int(group.hosts[0]))


class _Columns:
    """Which column each step begins at: some columns a step, or some steps a column.

    Of more steps than columns the first are folded, as far as every host has full batches, so that
    one sees where hosts end.
    """

    def __init__(self, groups: Sequence[_Group], room: int) -> None:
        stop = max(max(group.steps[1], group.full[1] + group.partial[1]) for group in groups)
        least, start = min(group.full[0] for group in groups), 0
        if stop > room:
            start = max(0, min(stop - room + int(_FOLD), least - _BEFORE_THE_END))
        self.start, self.stop = start if 2 * start >= stop else 0, max(stop, 1)
        self._fold = max(_FOLD, (self.stop - self.start) / 10)
        extent = self._place(self.stop)
        self.each = min(_WIDEST_STEP, int(room / extent))
        self._scale = self.each or (room - _SPARE) / extent

    def _place(self, step: float) -> float:
        """Return how far from the left a step begins, in steps."""
        if not self.start:
            return float(step)
        return min(step, self.start) / self.start * self._fold + max(step - self.start, 0.0)

    def at(self, step: float) -> int:
        """Return the column at which a step begins."""
        return int(self._place(step) * self._scale + 1e-9)

    def cells(self, row: _Row) -> str:
        """Return a row, with at least one mark of each piece; wide steps have gaps between them."""
        cells: list[str] = []
        for mark, end in row:
            stop = len(cells) + 1
            if mark != _LOST:  # these make no step
                stop = max(stop, self.at(math.ceil(end) if self.each else end))
            if self.each and mark == SHADE:
                stop = self.at(end)
            cells += mark * (stop - len(cells))
        if self.start and cells:
            cells[max(self.at(self.start) - 1, 0)] = _FOLDED
        if self.each >= _LEAST_WITH_GAP:
            for step in range(self.start + 1, self.stop + 1):
                end = self.at(step) - 1
                if end < len(cells) and cells[end] != _LOST:
                    cells[end] = " "
        return "".join(cells).rstrip()
