"""How an order is shuffled, drawn in a terminal: places in storage, the score over the epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shardctl.core.order.order import Order
from shardctl.core.text import counted
from shardctl.planning.quality.loaders.compare import LoaderComparison
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.sample import (
    COMPLETE_LIMIT,
    Floats,
    codes_of_stretches,
    epoch_length,
    sample_epoch,
)
from shardctl.planning.quality.score import MIXED, even_from_afar
from shardctl.planning.quality.storage_order import storage_order
from shardctl.planning.shard_map import one_in_each_part
from shardctl.rendering.terminal.bars import Bar, Series, bar_lines, beside
from shardctl.rendering.text.tables import Screen, paragraph, styled

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


# Where in storage the examples of an epoch lie, one after the other.

_LOOKED_UP = 1 << 16  # positions of a long epoch


def places(order: Order) -> Floats:
    """Return how far into storage the examples of the first epoch lie, in its order, float64[n].

    0 is the start of what is read and 1 its end; each is the middle of what an example takes. Of an
    epoch of more than two million examples single positions are looked up, one in each of equal
    parts: a stretch would show the few shards that the interleave has open.

    >>> from shardctl.planning.order import plan_order
    >>> places(plan_order("mnist", "train[:4]").order).tolist()
    [0.125, 0.375, 0.625, 0.875]
    """
    num_positions = epoch_length(order)
    if num_positions <= COMPLETE_LIMIT:
        sample = sample_epoch(order)
        return np.asarray((sample.ranks[0] + 0.5) / sample.num_ranks, np.float64)
    generator = np.random.default_rng(0)
    positions = one_in_each_part(0, num_positions, _LOOKED_UP, generator)
    storage = storage_order(order)
    ranks, _ = storage.of(codes_of_stretches(order, 0, positions, 1, exact=False).ravel())
    return np.asarray((ranks + 0.5) / storage.num_ranks, np.float64)


# Sparks: numbers from 0 to 1 as blocks of eighths, side by side in one line of text.

_EIGHTHS = "▁▂▃▄▅▆▇█"


def sparks(values: Sequence[float], wide: int = 1) -> str:
    """Return a block for each number, each so many columns wide; the lowest one stands for 0 too.

    >>> sparks([0.0, 0.124, 0.126, 0.5, 0.99, 1.0]), sparks([0.5, 1.0], 2)
    ('▁▁▂▅██', '▅▅██')
    """
    levels = (min(max(int(value * len(_EIGHTHS)), 0), len(_EIGHTHS) - 1) for value in values)
    return "".join(_EIGHTHS[level] * wide for level in levels)


# Dots of braille: what lies where, two dots a column and four a line of text.

_Scalar = TypeVar("_Scalar", bound=np.generic)

_BITS = np.array([[1, 8], [2, 16], [4, 32], [64, 128]])  # of the dots of a character, from U+2800
_DOTS_HIGH, _DOTS_WIDE = _BITS.shape
_EVEN = 2  # dots of a character where as much lies as anywhere else: every fourth one
_MOSTLY = 0.75  # of all characters, with which of so many dots they look even
# Which dots come first where none of a character has more than the others: set in this order they
# lie evenly, beside those of the next characters too.
_TURNS = np.array([[0, 4], [6, 2], [5, 1], [3, 7]])
_FILLED = 0.25  # of what is expected of a dot, from which on it has no less than others


def braille(dots: NDArray[np.bool_]) -> list[str]:
    """Return dots (bool[rows, columns]) as lines of text; what no character is full of is blank.

    >>> braille(np.eye(4, dtype=bool)), braille(np.ones((1, 3), dtype=bool))
    (['⠑⢄'], ['⠉⠁'])
    """
    rows, columns = dots.shape
    padded = np.pad(dots, ((0, -rows % _DOTS_HIGH), (0, -columns % _DOTS_WIDE)))
    codes = (_blocks(padded) * _BITS).sum(axis=(2, 3)) + 0x2800
    return ["".join(map(chr, line)) for line in codes.tolist()]


def _blocks(cells: NDArray[_Scalar]) -> NDArray[_Scalar]:
    """Return what belongs to each character, [lines, columns, 4, 2], a view of `cells`."""
    rows, columns = cells.shape
    blocks = cells.reshape(rows // _DOTS_HIGH, _DOTS_HIGH, columns // _DOTS_WIDE, _DOTS_WIDE)
    return blocks.swapaxes(1, 2)


def grey(places: NDArray[np.float64], columns: int, lines: int) -> NDArray[np.bool_]:
    """Return the dots of places from 0 to 1 (float64[n]) one after the other, 0 above.

    Characters have more dots the more lies there: two of eight where it lies evenly, so that a
    uniform permutation is an even grey. A dot is set only where something lies, so that the order
    of storage is a thin diagonal. Each column has as many of the places as the others.

    >>> print(*braille(grey(np.array([0.1, 0.4, 0.6, 0.9]), 4, 1)), sep="")
    ⠈⠐⠠⢀
    """
    height, width = lines * _DOTS_HIGH, columns * _DOTS_WIDE
    down = np.clip((places * height).astype(np.int64), 0, height - 1)
    right = (2 * np.arange(len(places)) + 1) * width // (2 * len(places))
    counts = np.bincount(down * width + right, minlength=height * width)
    cells = _blocks(counts.reshape(height, width)).reshape(lines, columns, -1)
    there = cells.sum(axis=2)
    expected = np.maximum(there.sum(axis=0), 1) / lines  # of a character of this column
    num_dots = np.rint(_EVEN * there / expected)
    filled = np.minimum(cells / (_FILLED * expected[:, None] / _BITS.size), 1.0)
    turns = np.broadcast_to(_TURNS.ravel(), cells.shape)
    first = np.lexsort((turns, -filled), axis=-1)
    dots = (np.argsort(first, axis=-1) < num_dots[..., None]) & (cells > 0)
    blocks = dots.reshape(lines, columns, _DOTS_HIGH, _DOTS_WIDE)
    return np.asarray(blocks.swapaxes(1, 2).reshape(height, width), bool)


def is_even(dots: NDArray[np.bool_]) -> bool:
    """Whether the dots of `grey` look like those of a uniform permutation."""
    return bool((_blocks(dots).sum(axis=(2, 3)) == _EVEN).mean() > _MOSTLY)


# From how many shards a batch of each way to read comes, as bars in a terminal.


def loader_bars(plan: LoaderComparison, screen: Screen) -> Iterator[str]:
    """Yield a bar for each way that reads the dataset, the last one of a uniform permutation."""
    numbers = [(way.reader, way.mixing.shards) for way in plan.ways if way.mixing is not None]
    numbers.append(("uniform", plan.uniform_shards))
    yield paragraph(
        "To see: from how many shards a batch comes; the last bar is that of a uniform "
        "permutation.",
        beside(screen),
    )
    bars = [Bar(least=number, most=number, text=f"{number:.1f}") for _, number in numbers]
    series = Series(heading="shards", bars=bars)
    yield from bar_lines("reader", [name for name, _ in numbers], [series], screen)
