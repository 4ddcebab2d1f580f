"""The steps of an evaluation, a row a host: full batches, padding, and where a collective hangs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from shardctl.core.text import counted, printable
from shardctl.planning.eval.advice import hang_sentence
from shardctl.planning.eval.eval import (
    REMAINDERS,
    Evaluation,
    Hang,
    HostGroup,
    Span,
    host_groups,
)
from shardctl.rendering.eval import WAYS
from shardctl.rendering.pictures.axes import (
    GAP,
    LINE_HEIGHT,
    Axis,
    Plane,
    Tick,
    named_ticks,
    plane,
    round_ticks,
)
from shardctl.rendering.pictures.bars import BAR, ROW, Key, legend
from shardctl.rendering.pictures.picture import (
    TEXT,
    WIDTH,
    Box,
    Label,
    Line,
    Mark,
    Numbers,
    Picture,
    Role,
    text_width,
)
from shardctl.rendering.text.quantities import counts_between
from shardctl.rendering.text.step_rows import (
    Kind,
    Piece,
    StepWindow,
    hosts_of,
    how_many,
    keys_of,
    state_of,
    step_pieces,
    step_window,
)

_ROWS = 24  # hosts, or groups of them
_STEPS = 24  # that are drawn one by one
_LEAST_STEP = 5.0  # the width from which on steps are told apart
_LEAST = 3.0  # of what is there at all
_FOLD_GAP = 3.0  # behind the steps that are drawn narrower
_HOST, _STEPS_TITLE = "host", "steps"
_HEADINGS = (
    *("hosts", "examples", "full batches", "not full"),
    *("remainder", "padding", "padding batches"),
)

_ROLES: dict[Kind, Role] = {
    "full": "data",
    "partial": "other",
    "padding": "padding",
    "lost": "alarm",
}


def eval_pictures(evaluation: Evaluation) -> tuple[Picture, ...]:
    """Return the picture of the steps of each host, many of them in groups."""
    groups = host_groups(evaluation, _ROWS)
    window = step_window(groups, evaluation, _STEPS)
    rows = [tuple(step_pieces(group, evaluation)) for group in groups]
    keys = legend([Key(text=text, role=_ROLES[kind]) for kind, text in keys_of(rows, groups)])
    hang = evaluation.hang(evaluation.remainder)
    top = keys.bottom + (LINE_HEIGHT if hang else GAP)
    field = _field(evaluation, groups, window, top=top)
    marks = [*keys.marks, *field.marks]
    for number, row in enumerate(rows):
        marks += _bars(row, field, window, field.y.at(number) + (ROW - BAR) / 2)
    marks += _separators(field, window)
    marks += _words(evaluation, groups, field, top=top)
    if hang is not None:
        marks += _hang(hang, field, window, top=top)
    return (
        Picture(
            name="eval-steps",
            title=f"Steps of {counted(evaluation.num_hosts, 'host')} in "
            f"{printable(evaluation.spec, 200)}, batches {WAYS[evaluation.remainder]}",
            caption=_CAPTION,
            alternative=_alternative(evaluation),
            height=field.bottom + GAP,
            marks=tuple(marks),
            numbers=_numbers(evaluation, groups),
            note=_note(evaluation, groups, window),
        ),
    )


_CAPTION = (
    "A row is a host, and each part of it a step. All rows must end together: where one is longer "
    "than another, its host waits in a collective operation for hosts that are done, and nothing "
    "goes on."
)


def _field(
    evaluation: Evaluation, groups: Sequence[HostGroup], window: StepWindow, *, top: float
) -> Plane:
    """Return the plane of the rows, with room for words at the right of it."""
    words = [_word(evaluation, group) for group in groups]
    width = max(text_width(word, bold=True) for word in (*words, _STEPS_TITLE))
    names = map(hosts_of, groups)
    return plane(
        Axis(first=0, last=window.extent, title="step, from 0", ticks=_ticks(window)),
        Axis(first=len(groups), last=0, title=_HOST, ticks=named_ticks(names)),
        top=top,
        height=ROW * len(groups),
        right=WIDTH - width - 2 * GAP,
    )


def _ticks(window: StepWindow) -> tuple[Tick, ...]:
    """Return the steps that have a number, each where it begins."""
    if not window.start:
        return round_ticks(0, window.stop, whole=True)
    every = max(1, (window.stop - window.start) // 4)
    last = range(window.start, window.stop + 1, every)
    return (Tick(0, "0"), *(Tick(window.place(step), f"{step:,}") for step in last))


def _bars(row: Sequence[Piece], field: Plane, window: StepWindow, y: float) -> Iterator[Mark]:
    """Yield the parts of a row; a batch that is not full stands in a step that is paler."""

    def box(start: float, stop: float, role: Role, title: str, least: float = 0.0) -> Box:
        left, right = field.x.at(window.place(start)), field.x.at(window.place(stop))
        right -= _FOLD_GAP if 0 < stop == window.start else 0
        return Box(x=left, y=y, width=max(right - left, least), height=BAR, role=role, title=title)

    for piece in sorted(row, key=lambda piece: piece.kind == "partial"):  # the least is on top
        role, start = _ROLES[piece.kind], piece.start
        if piece.kind == "partial" and row[-1] is piece:
            yield box(start, math.ceil(piece.stop), "grid", piece.title)
        if start < window.start < piece.stop:
            yield box(start, window.start, role, piece.title)
            start = window.start
        yield box(start, piece.stop, role, piece.title, _LEAST)


def _separators(field: Plane, window: StepWindow) -> Iterator[Mark]:
    """Yield lines between steps, where these are wide enough."""
    if field.x.at(1) - field.x.at(0) < _LEAST_STEP:
        return
    for step in range(window.start + 1, window.stop):
        x = field.x.at(window.place(step))
        yield Line(points=((x, field.y.end), (x, field.y.start)), role="grid")


def _words(
    evaluation: Evaluation, groups: Sequence[HostGroup], field: Plane, *, top: float
) -> Iterator[Mark]:
    """Yield behind each row how many steps it has, and who waits."""
    yield Label(x=WIDTH, y=top + TEXT - 1, text=_STEPS_TITLE, anchor="end", quiet=True)
    for number, group in enumerate(groups):
        yield Label(
            x=WIDTH,
            y=field.y.at(number + 0.5) + TEXT * 0.35,
            text=_word(evaluation, group),
            anchor="end",
            bold=state_of(group, evaluation) == "waits",
        )


def _word(evaluation: Evaluation, group: HostGroup) -> str:
    steps = counts_between(*group.steps[evaluation.remainder])
    return f"{state_of(group, evaluation)} {steps}".strip()


def _hang(hang: Hang, field: Plane, window: StepWindow, *, top: float) -> Iterator[Mark]:
    """Yield a line at the step that hangs, with a word above it."""
    x = field.x.at(window.place(hang.step))
    text = f"hangs at step {hang.step:,}"
    width = text_width(text, bold=True)
    above = top if x > text_width(_HOST) + GAP else field.y.end  # not through the axis's title
    yield Line(points=((x, above), (x, field.y.start)), role="alarm", dashed=True)
    left = min(max(x - width / 2, 0.0), WIDTH - width)
    yield Label(x=left, y=top - 4, text=text, bold=True)


def _alternative(evaluation: Evaluation) -> str:
    """Return what becomes of the hosts as it is set up, then in the other ways."""
    if not evaluation.total:
        return "There is nothing to evaluate."
    size = counted(evaluation.host_batch, "example")
    verb = "reads" if evaluation.num_hosts == 1 else "read"
    said = [
        f"{counted(evaluation.num_hosts, 'host')} {verb} {counted(evaluation.total, 'example')} in "
        f"batches of {size}."
    ]
    for way in sorted(REMAINDERS, key=lambda way: way != evaluation.remainder):
        steps, hang = evaluation.num_steps(way), evaluation.hang(way)
        ends = "none of which hangs" if hang is None else hang_sentence(hang)
        made = how_many((int(steps.min()), int(steps.max())), "step")
        here = " (as set up here)" if way == evaluation.remainder else ""
        said.append(f"Batches {WAYS[way]}{here}: {made} a host, {ends}.")
    if evaluation.num_lost:
        said.append(f"{counted(evaluation.num_lost, 'example')} lost.")
    return " ".join(said)


def _note(evaluation: Evaluation, groups: Sequence[HostGroup], window: StepWindow) -> str | None:
    said = []
    if len(groups) < evaluation.num_hosts:
        said.append(
            f"{counted(evaluation.num_hosts, 'host')} in {counted(len(groups), 'group')}: those of "
            "a row do the same, or where its numbers are two, nearly the same."
        )
    if window.start:
        said.append(
            f"Steps 0 to {window.start - 1:,} are drawn narrower: each host has a full batch there."
        )
    if max(group.partial[1] for group in groups) > 1:
        said.append("Batches that are not full are drawn last, wherever they come.")
    return " ".join(said) or None


def _numbers(evaluation: Evaluation, groups: Sequence[HostGroup]) -> Numbers:
    ways = (
        f"steps {WAYS[way]}{' (as set up)' if way == evaluation.remainder else ''}"
        for way in REMAINDERS
    )
    rows = [
        (
            _which(group),
            *map(
                _number,
                (
                    group.num_examples,
                    group.full,
                    group.partial,
                    group.remainder,
                    group.padding,
                    group.padding_batches,
                    *(group.steps[way] for way in REMAINDERS),
                ),
            ),
        )
        for group in groups
    ]
    return Numbers(headings=(*_HEADINGS, *ways), rows=rows)


def _which(group: HostGroup) -> str:
    if group.are_neighbours:
        return hosts_of(group)
    return f"{group.count:,} of {counts_between(group.first, group.last)}"


def _number(values: Span) -> object:
    return values[0] if values[0] == values[1] else counts_between(*values)
