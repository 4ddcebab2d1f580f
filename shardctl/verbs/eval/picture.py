"""The steps of an evaluation as a picture: a row a host, with a mark where a collective hangs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple, get_args

from shardctl.base.text import counted, printable
from shardctl.draw.picture import (
    FULL,
    PARTIAL,
    SHADE,
    Paper,
    Picture,
    Span,
    tick_line,
    words,
)
from shardctl.draw.quantities import counts_between, short_count
from shardctl.draw.tables import Look, Screen, paragraph
from shardctl.verbs.eval.answer import Evaluation, HostGroup, host_groups

Kind = Literal["full", "partial", "padding", "lost"]

_CALLED = ("full batch", "not full", "padding", "lost")
KINDS: dict[Kind, str] = dict(zip(get_args(Kind), _CALLED, strict=True))
_BEFORE_THE_END = 4  # steps before the first host is done that are not folded
_FOLD = 2.0  # steps as wide as those that are folded, at least


class Piece(NamedTuple):
    """A part of a row, from one step to another, counted with fractions."""

    kind: Kind
    start: float
    stop: float


class StepWindow(NamedTuple):
    """Which steps are shown: those before `start` narrower, since all hosts have full batches."""

    start: int
    stop: int

    @property
    def fold(self) -> float:
        """How wide the steps before `start` are together, in steps."""
        return max(_FOLD, (self.stop - self.start) / 10) if self.start else 0.0

    @property
    def extent(self) -> float:
        """How wide all of it is, in steps."""
        return self.place(self.stop)

    def place(self, step: float) -> float:
        """Return how far from the left a step begins, in steps.

        >>> window = StepWindow(start=100, stop=103)
        >>> window.place(0), window.place(50), window.place(100), window.place(103)
        (0.0, 1.0, 2.0, 5.0)
        """
        if not self.start:
            return float(step)
        return min(step, self.start) / self.start * self.fold + max(step - self.start, 0.0)


def step_window(groups: Sequence[HostGroup], evaluation: Evaluation, room: int) -> StepWindow:
    """Return which steps are shown where there is room to tell so many of them apart.

    Of more steps the first are folded, as far as every host has full batches, so that one sees
    where hosts end.
    """
    way = evaluation.remainder
    stop = max(max(one.steps[way][1], one.full[1] + one.partial[1]) for one in groups)
    least = min(group.full[0] for group in groups)
    start = 0
    if stop > room:
        start = max(0, min(stop - room + int(_FOLD), least - _BEFORE_THE_END))
    return StepWindow(start=start if 2 * start >= stop else 0, stop=max(stop, 1))


def step_pieces(group: HostGroup, evaluation: Evaluation) -> Iterator[Piece]:
    """Yield what a row is made of, by what is done with remainders; what is empty is left out.

    A batch that is not full takes as much of its step as it has examples, where hosts are alike;
    where they are not, the steps that only some of them make with a full batch are not full either.
    """
    way, (full, most_full) = evaluation.remainder, group.full
    if full:
        yield Piece(kind="full", start=0, stop=full)
    filled: float = most_full + (group.partial[1] if way != "drop" else 0)
    if way != "drop" and group.remainder[0] == group.remainder[1] and group.partial == (1, 1):
        filled = full + group.remainder[0] / evaluation.host_batch
    if filled > full:
        yield Piece(kind="partial", start=full, stop=filled)
    if way == "drop" and group.partial[1]:
        share = group.remainder[1] / evaluation.host_batch
        yield Piece(kind="lost", start=filled, stop=filled + share)
    steps = group.steps[way][1]
    if way == "pad" and steps > filled:
        yield Piece(kind="padding", start=filled, stop=steps)


def keys_of(rows: Iterable[Iterable[Piece]], groups: Iterable[HostGroup]) -> list[tuple[Kind, str]]:
    """Return what the kinds of pieces that occur are called.

    Hosts of a group need not have as many full batches: what only some of them have is not full.
    """
    found = {piece.kind for row in rows for piece in row}
    texts = dict(KINDS)
    if any(group.full[0] < group.full[1] for group in groups):
        texts["partial"] += ", or of some of them"
    return [(kind, texts[kind]) for kind in KINDS if kind in found]


def hosts_of(group: HostGroup) -> str:
    """Return which hosts a group has, in short; of hosts with others among them how many.

    >>> from shardctl.dataset.dataset import Dataset, Split
    >>> from shardctl.verbs.eval.answer import evaluate
    >>> from shardctl.verbs.eval.answer import host_groups
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> [hosts_of(group) for group in host_groups(evaluate(odd, batch=64, hosts=8), 4)]
    ['0', '1–7']
    """
    named = counts_between(group.first, group.last)
    return named if group.are_neighbours else f"{group.count:,} hosts"


def state_of(group: HostGroup, evaluation: Evaluation) -> str:
    """Return what becomes of hosts at a step that hangs, in a word; empty where none does."""
    hang = evaluation.hang(evaluation.remainder)
    if hang is None:
        return ""
    return "waits" if group.steps[evaluation.remainder][0] > hang.step else "done"


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
