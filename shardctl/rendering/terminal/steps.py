"""The steps of an evaluation in a terminal: a row a host, with a mark where a collective hangs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

from shardctl.planning.eval.eval import Evaluation, Hang, HostGroup, host_groups
from shardctl.rendering.terminal.bars import beside, tick_line
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
from shardctl.rendering.text.tables import Look, Screen, paragraph, styled

_ROWS = 12  # hosts, or groups of them
_WIDEST_STEP = 5  # columns
_LEAST_WITH_GAP = 3
_SPARE = 3  # columns for pieces that are narrower than one
_LEAST_ROOM = 10  # columns of a row, for which words are shorter and lines too long at last
_GAP = "  "
_FOLDED = "…"
_MARKS: dict[Kind, str] = {"full": "█", "partial": "▒", "padding": "░", "lost": "x"}
_LOOKS: dict[Kind, Look] = {"full": "", "partial": "", "padding": "quiet", "lost": "warning"}


def step_lines(evaluation: Evaluation, screen: Screen) -> Iterator[str]:
    """Yield what to see, a row for each host or group of them, and where a collective hangs."""
    if not evaluation.total:
        return
    groups = host_groups(evaluation, _ROWS)
    names = ["host", *map(hosts_of, groups)]
    lead = max(map(len, names)) + len(_GAP)
    room = screen.picture_width - lead - len(_GAP)
    words = [_word(group, evaluation) for group in groups]
    if room - max(map(len, words)) < _LEAST_ROOM:
        words = [_short_word(group, evaluation) for group in groups]
    room = max(room - max(map(len, words)), _LEAST_ROOM)
    window = step_window(groups, evaluation, room)
    columns = _Columns(window, room)
    rows = [tuple(step_pieces(group, evaluation)) for group in groups]
    cells = [_cells(row, columns) for row in rows]
    width = max(columns.at(window.stop), *map(len, cells))
    keys = ", ".join(f"{_MARKS[kind]} {text}" for kind, text in keys_of(rows, groups))
    yield paragraph(f"steps of each host ({keys}): all rows must end together", beside(screen))
    for name, row, word, group in zip(names[1:], cells, words, groups, strict=True):
        waits = state_of(group, evaluation) == "waits"
        look: Look = "error" if waits and screen.color else ""
        blanks = " " * (width - len(row))
        drawn = "".join(_styled(row, screen))
        yield f"{name:>{lead - len(_GAP)}}{_GAP}{drawn}{blanks}{_GAP}{styled(word, look)}\n"
    yield f"{'step':>{lead - len(_GAP)}}{_GAP}{tick_line(_ticks(columns), room)}\n"
    hang = evaluation.hang(evaluation.remainder)
    if hang is not None:
        yield _hang(hang, columns.at(hang.step), lead, screen)


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


def _styled(cells: str, screen: Screen) -> Iterator[str]:
    looks = {mark: _LOOKS[kind] for kind, mark in _MARKS.items()}
    for mark, run in groupby(cells):
        yield styled("".join(run), looks.get(mark, "") if screen.color else "")


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


def _hang(hang: Hang, column: int, lead: int, screen: Screen) -> str:
    """Return a line that points at the step that hangs."""
    text = f"hangs at step {hang.step:,}"
    before = lead + column
    line = f"{' ' * before}^ {text}"
    if len(line) > screen.picture_width:
        line = f"{text} ^".rjust(before + 1)
    return f"{styled(line, 'error' if screen.color else '')}\n"
