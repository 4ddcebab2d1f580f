"""How an order is shuffled, drawn in a terminal: places in storage, the score over the epoch."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.core.text import counted
from shardctl.planning.pictures.places import places
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.verdict import MIXED, even_from_afar
from shardctl.rendering.terminal.bars import beside
from shardctl.rendering.terminal.braille import braille, grey, is_even
from shardctl.rendering.terminal.sparks import sparks
from shardctl.rendering.text.looks import styled
from shardctl.rendering.text.tables import Screen, paragraph

_SIDES = ("first", "last")  # example of storage, beside the first and the last line
_GUTTER = len(_SIDES[0]) + 2
_LEAST_LINES, _MOST_LINES = 6, 12
_COLUMNS_A_LINE = 6  # of the picture: lines are twice as high as columns are wide
_NAMES = ("this order", "uniform")
_WIDEST_PART = 5  # columns of a tenth of the epoch


def places_lines(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield where in storage the examples of the epoch lie, as dots, and what to see there."""
    columns = screen.picture_width - _GUTTER
    lines = min(max(columns // _COLUMNS_A_LINE, _LEAST_LINES), _MOST_LINES)
    dots = grey(places(plan.order), columns, lines)
    yield paragraph(
        "To see: over the epoch, where its examples lie in storage. A diagonal is the order of "
        "storage, an even grey a uniform permutation.",
        beside(screen),
    )
    sides = [_SIDES[0], *[""] * (lines - 2), _SIDES[1]]
    for side, line in zip(sides, braille(dots), strict=True):
        yield f"{_quiet(f'{side:<{_GUTTER - 1}}│', screen)}{line}\n"
    end = f"position {plan.num_examples - 1:,}"
    ruler = f"0{end:>{columns - 1}}" if len(end) < columns - 1 else end[-columns:]
    yield f"{_quiet(' ' * _GUTTER + ruler, screen)}\n"

    if plan.verdict not in MIXED and is_even(dots):
        yield paragraph(even_from_afar(plan.verdict), beside(screen))


def score_lines(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the score over the epoch as sparks, beside that of a uniform permutation."""
    parts, tail = plan.by_position, plan.tail
    values = [part.score.value for part in parts]
    uniform = [part.score.expected for part in parts]
    yield paragraph(_what_to_see(plan), beside(screen))
    room = screen.picture_width - len(_NAMES[0]) - 1 - _WIDEST_PART - 1
    wide = max(1, min(_WIDEST_PART, room // len(parts)))
    ends = ["", ""]
    if tail is not None:
        ends = [f" {sparks([score])}" for score in (tail.score.value, tail.score.expected)]
    for name, numbers, end in zip(_NAMES, (values, uniform), ends, strict=True):
        title = _quiet(f"{name:<{len(_NAMES[0])}}", screen)
        yield f"{title} {sparks(numbers, wide)}{end}\n"


def _what_to_see(plan: Quality) -> str:
    parts, tail = plan.by_position, plan.tail
    values = [part.score.value for part in parts]
    low, high = f"{min(values):.4f}", f"{max(values):.4f}"
    text = (
        "To see: the score near by over the epoch, which is best as high as that of a uniform "
        f"permutation. It is {low if low == high else f'{low} to {high}'}"
    )
    if tail is not None:
        end = counted(tail.stop - tail.start, "example")
        text += f", and {tail.score.value:.4f} of the last {end}"
    return f"{text}; uniform {parts[0].score.expected:.4f}."


def _quiet(text: str, screen: Screen) -> str:
    return styled(text, "quiet" if screen.color else "")
