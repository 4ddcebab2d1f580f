"""The steps of an evaluation as a picture: a row a host, with a mark where a collective hangs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from shardctl.core.text import counted, printable
from shardctl.planning.eval.eval import Evaluation, HostGroup, host_groups
from shardctl.rendering.text.picture import (
    FULL,
    PARTIAL,
    SHADE,
    Paper,
    Picture,
    Span,
    tick_line,
    words,
)
from shardctl.rendering.text.quantities import counts_between, short_count
from shardctl.rendering.text.step_rows import (
    Kind,
    Piece,
    StepWindow,
    hosts_of,
    keys_of,
    state_of,
    step_pieces,
    step_window,
)
from shardctl.rendering.text.tables import Look, Screen, paragraph

_ROWS = 12  # hosts, or groups of them
_WIDEST_STEP = 5  # columns
_LEAST_WITH_GAP = 3
_SPARE = 3  # columns for pieces that are narrower than one
_LEAST_ROOM = 10  # columns of a row, for which words are shorter and lines too long at last
_GAP = "  "
_FOLDED = "…"
_MARKS: dict[Kind, str] = {"full": FULL, "partial": PARTIAL, "padding": SHADE, "lost": "x"}


def eval_pictures(evaluation: Evaluation, paper: Paper) -> tuple[Picture, ...]:
    """Return a row for each host or group of them, and where a collective hangs."""
    groups = host_groups(evaluation, _ROWS)
    names = ["host", *map(hosts_of, groups)]
    lead = max(map(len, names)) + len(_GAP)
    room = paper.width - lead - len(_GAP)
    states = [_word(group, evaluation) for group in groups]
    if room - max(map(len, states)) < _LEAST_ROOM:
        states = [_short_word(group, evaluation) for group in groups]
    room = max(room - max(map(len, states)), _LEAST_ROOM)
    columns = _Columns(step_window(groups, evaluation, room), room)
    rows = [tuple(step_pieces(group, evaluation)) for group in groups]
    cells = [_cells(row, columns) for row in rows]
    width = max(columns.at(columns.window.stop), *map(len, cells))
    keys = ", ".join(f"{_MARKS[kind]} {text}" for kind, text in keys_of(rows, groups))
    lines = [words(line) for line in paragraph(keys, Screen(width=paper.width)).splitlines()]
    for name, row, word, group in zip(names[1:], cells, states, groups, strict=True):
        look: Look = "error" if state_of(group, evaluation) == "waits" else ""
        lines.append((Span(f"{name:>{lead - len(_GAP)}}{_GAP}"), *_spans(row)))
        lines[-1] += (Span(" " * (width - len(row)) + _GAP), Span(word, look))
    step = f"{'step':>{lead - len(_GAP)}}{_GAP}"
    lines.append(words(step, tick_line(_ticks(columns), room)))
    hang = evaluation.hang(evaluation.remainder)
    if hang is not None:
        text, before = f"hangs at step {hang.step:,}", lead + columns.at(hang.step)
        line = f"{' ' * before}^ {text}"
        lines.append(
            words(line if len(line) <= paper.width else f"{text} ^".rjust(before + 1), look="error")
        )
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


class _Columns:
    """Which column each step begins at: some columns a step, or some steps a column."""

    def __init__(self, window: StepWindow, room: int) -> None:
        self.window = window
        self.each = min(_WIDEST_STEP, int(room / window.extent))
        self._scale = self.each or (room - _SPARE) / window.extent

    def at(self, step: float) -> int:
        """Return the column at which a step begins."""
        return int(self.window.place(step) * self._scale + 1e-9)


def _cells(row: Sequence[Piece], columns: _Columns) -> str:
    """Return the marks of a row, at least one of each piece; wide steps have gaps between them."""
    cells: list[str] = []
    for piece in row:
        stop = len(cells) + 1
        if piece.kind != "lost":  # these make no step
            stop = max(stop, columns.at(math.ceil(piece.stop) if columns.each else piece.stop))
        if columns.each and piece.kind == "padding":
            stop = columns.at(piece.stop)
        cells += _MARKS[piece.kind] * (stop - len(cells))
    window = columns.window
    if window.start and cells:
        cells[max(columns.at(window.start) - 1, 0)] = _FOLDED
    if columns.each >= _LEAST_WITH_GAP:
        for step in range(window.start + 1, window.stop + 1):
            end = columns.at(step) - 1
            if end < len(cells) and cells[end] != _MARKS["lost"]:
                cells[end] = " "
    return "".join(cells).rstrip()


def _spans(cells: str) -> Iterator[Span]:
    looks: dict[str, Look] = {SHADE: "quiet", _MARKS["lost"]: "warning"}
    for mark, run in groupby(cells):
        yield Span("".join(run), looks.get(mark, ""))


def _word(group: HostGroup, evaluation: Evaluation) -> str:
    steps = counts_between(*group.steps[evaluation.remainder])
    return f"{steps} {state_of(group, evaluation)}".rstrip()


def _short_word(group: HostGroup, evaluation: Evaluation) -> str:
    """Return who waits, else about how many steps there are, where there is no room for more."""
    state = state_of(group, evaluation)
    return state or "–".join(map(short_count, sorted(set(group.steps[evaluation.remainder]))))


def _ticks(columns: _Columns) -> Iterator[tuple[int, str]]:
    """Yield the first step, those that are shown one by one from, and the end of all."""
    window = columns.window
    yield 0, "0"
    if window.start:
        yield columns.at(window.start), f"{window.start:,}"
    yield columns.at(window.stop), f"{window.stop:,}"
