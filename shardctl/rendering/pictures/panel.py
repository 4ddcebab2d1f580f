"""A panel: one value of each host or shard, or of each group of them, with what stands out named.

Few are bars below each other, with their values beside them; many are upright. What stands out has
another colour, and a word too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from shardctl.core.text import counted
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.planning.shard_map import Bucket
from shardctl.rendering.hosts.hosts import (
    Figure,
    Group,
    group_name,
    refused_numbers,
    spread_of,
    sweep_figures,
    sweep_groups,
)
from shardctl.rendering.pictures.axes import (
    GAP,
    LINE_HEIGHT,
    Axis,
    Drawn,
    Plane,
    Tick,
    named_ticks,
    plane,
    round_ticks,
)
from shardctl.rendering.pictures.bars import Bar, Key, Part, bars, columns, legend, sentences
from shardctl.rendering.pictures.picture import (
    TEXT,
    WIDTH,
    Label,
    Line,
    Mark,
    Numbers,
    Picture,
    Role,
    shortened,
    text_width,
)
from shardctl.rendering.text.quantities import BYTE_UNITS, counts_between, short_count

MOST_COLUMNS = 64  # of more hosts or shards each column is a group
_MOST_ROWS = 8  # with values beside them
_WORD_LINES = 3  # of words above columns
_HEIGHT = 84.0  # of the field of columns
_LONGEST = 12  # letters of a count beside a bar


@dataclass(frozen=True, kw_only=True, slots=True)
class PanelRow:
    """A host, a shard, a number of hosts, or a group of these: the least and the most of it.

    name: at the axis; label: before a bar. text: the value as people read it. title: all there is
    to say of it. word: how it stands out.
    """

    name: str
    label: str
    least: float
    most: float
    text: str
    title: str
    word: str = ""

    def bar(self) -> Bar:
        """Return its bar: up to the least, and from there up to the most of a group."""
        is_group = self.most > self.least
        first: Role = "alarm" if self.word and not is_group else "data"
        parts = [Part(self.least, first)]
        if is_group:
            parts.append(Part(self.most - self.least, "alarm" if self.word else "padding"))
        text = f"{self.text} {self.word}".strip()
        return Bar(name=self.label, parts=tuple(parts), text=text, title=self.title)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One value of each row, some of which is more than 0, under a title.

    mean: where a dashed line stands. ticks: of the values.
    """

    title: str
    rows: Sequence[PanelRow]
    ticks: Sequence[Tick]
    mean: float | None = None


def draw_panels(panels: Sequence[Panel], *, of: str) -> Drawn:
    """Return panels below each other, with what their colours mean above them.

    Their rows are the same, and are what `of` says at the axis.
    """
    if not panels:
        return Drawn((), 0.0)
    key = _keys(panels)
    marks, top = list(key.marks), key.bottom
    tick_widths = [max(text_width(tick.text) for tick in panel.ticks) for panel in panels]
    for panel, width in zip(panels, tick_widths, strict=True):
        marks.append(Label(x=0, y=top + TEXT, text=shortened(panel.title, WIDTH)))
        top += LINE_HEIGHT + GAP
        if len(panel.rows) <= _MOST_ROWS:
            drawn = bars([row.bar() for row in panel.rows], top=top, expected=panel.mean)
        else:
            drawn = _columns(panel, of, top=top, left=max(tick_widths) - width)
        marks += drawn.marks
        top = drawn.bottom + GAP
    return Drawn(tuple(marks), top)


def _columns(panel: Panel, of: str, *, top: float, left: float) -> Drawn:
    rows = panel.rows
    x = Axis(first=0, last=len(rows), title=of, ticks=named_ticks(row.name for row in rows))
    y = Axis(first=0, last=max(row.most for row in rows), ticks=tuple(panel.ticks))
    # Where words are is known from the width of the field alone, and how high they are after that.
    words = _words([row.word for row in rows], plane(x, y, height=_HEIGHT, left=left))
    num_lines = max((min(word.line + 1, _WORD_LINES) for word in words), default=0)
    room = num_lines * LINE_HEIGHT - GAP
    field = plane(x, y, top=top + room, height=_HEIGHT, left=left)
    marks = [*field.marks, *columns(field, [row.bar() for row in rows])]
    if panel.mean is not None:
        at = field.y.at(panel.mean)
        marks.append(Line(points=((field.x.start, at), (WIDTH, at)), role="uniform", dashed=True))
    for word in words:
        marks += word.marks(field.y.end - 3)
    return Drawn(tuple(marks), field.bottom)


class _Word(NamedTuple):
    """How neighbours stand out: a line over them from `start` to `stop`, and the word above it."""

    start: float
    stop: float
    text: str
    left: float
    line: int

    def marks(self, y: float) -> Iterator[Mark]:
        """Yield both; words that have no room beside each other are on lines of their own."""
        yield Line(points=((self.start, y), (self.stop, y)), role="alarm")
        if self.line < _WORD_LINES:
            yield Label(x=self.left, y=y - 4 - self.line * LINE_HEIGHT, text=self.text, bold=True)


def _words(words: Sequence[str], field: Plane) -> list[_Word]:
    """Return where words stand, the shortest runs of columns nearest to these.

    Where many have no room, the line over their columns says that there is one.
    """
    found: list[_Word] = []
    ends: list[list[tuple[float, float]]] = [[] for _ in range(_WORD_LINES)]
    for first, stop, text in sorted(_runs(words), key=lambda run: run[1] - run[0]):
        left, right = field.x.at(first), field.x.at(stop)
        width = text_width(text, bold=True)
        at = min(max((left + right - width) / 2, field.x.start), field.x.end - width)
        free = (
            line
            for line, taken in enumerate(ends)
            if all(at >= other[1] + GAP or at + width + GAP <= other[0] for other in taken)
        )
        line = next(free, _WORD_LINES)
        if line < _WORD_LINES:
            ends[line].append((at, at + width))
        found.append(_Word(left + 1, right - 1, text, at, line))
    return found


def _runs(words: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for word, places in groupby(range(len(words)), key=lambda place: words[place]):
        run = list(places)
        if word:
            yield run[0], run[-1] + 1, word


def byte_ticks(most: float) -> tuple[tuple[Tick, ...], str]:
    """Return ticks up to a number of bytes, and the unit that they are in.

    >>> ticks, unit = byte_ticks(2_500_000_000)
    >>> [tick.text for tick in ticks], unit
    (['0', '1', '2'], 'GiB')
    """
    power = 0
    while most >= 1024 ** (power + 1) and power < len(BYTE_UNITS):
        power += 1
    unit = 1024.0**power
    ticks = round_ticks(0, most / unit, most=3)
    name = BYTE_UNITS[power - 1] if power else "bytes"
    return tuple(Tick(tick.value * unit, tick.text) for tick in ticks), name


def count_text(least: int, most: int) -> str:
    """Return a range of counts as there is room for it beside a bar.

    >>> count_text(1_281_167, 1_281_167), count_text(3 * 10**9, 3 * 10**9)
    ('1,281,167', '3 G')
    """
    text = counts_between(least, most)
    return text if len(text) <= _LONGEST else short_count(most)


def groups_note(noun: str, groups: Sequence[Bucket]) -> str | None:
    """Return how hosts or shards are grouped, None where each has a bar of its own."""
    sizes = sorted({group.count for group in groups})
    if sizes in ([], [1]):
        return None
    number, each = groups[-1].last + 1, " or ".join(f"{size:,}" for size in sizes)
    return f"{number:,} {noun}s in {len(groups)} groups of {each}, named by the first."


def _keys(panels: Sequence[Panel]) -> Drawn:
    rows = [row for panel in panels for row in panel.rows]
    found = []
    if any(row.most > row.least for row in rows):
        found += [Key(text="least of a group"), Key(text="up to its most", role="padding")]
    if any(row.word for row in rows):
        found.append(Key(text="stands out, as its word says", role="alarm"))
    if any(panel.mean is not None for panel in panels):
        found.append(Key(text="mean", role="uniform", line=True, dashed=True))
    return legend(found)


# A sweep over numbers of hosts as a picture: what is read more than once, and how uneven it is.

_CAPTION = (
    "Each bar is a number of hosts and begins at 1, the best there is: every example read once, "
    "and every host with as many as the others. No bar is no waste."
)


def sweep_picture(plan: HostsPlan) -> Picture:
    """Return a panel for each figure that tells how a way to share does with a number of hosts."""
    groups = sweep_groups(plan, MOST_COLUMNS)
    shown = sweep_figures(plan) if plan.comparisons[0].num_examples else []
    said = [_said(plan, index, figure) for index, figure in shown] or ["There are no examples."]
    said += [f"{line}." for line in refused_numbers(plan)]
    panels = {figure: [_shown(group, index, figure) for group in groups] for index, figure in shown}
    drawn = draw_panels(
        [
            Panel(
                title=f"{figure.heading}: {figure.meaning}, from 1",
                rows=rows,
                ticks=_ticks(max(row.most for row in rows)),
            )
            for figure, rows in panels.items()
            if any(row.most for row in rows)
        ],
        of="hosts" if len(groups) == len(plan.comparisons) else "hosts, the least of a group",
    )
    words = sentences(said, top=drawn.bottom)
    return Picture(
        name="hosts-sweep",
        title=f"{plan.spec} on {counted(len(plan.comparisons), 'number')} of hosts",
        caption=_CAPTION,
        alternative=" ".join(said),
        height=words.bottom,
        marks=(*drawn.marks, *words.marks),
        numbers=_numbers(groups, shown),
        note=_note(groups, plan),
    )


def _note(groups: Sequence[Group], plan: HostsPlan) -> str | None:
    count = len(plan.comparisons)
    if len(groups) == count:
        return None
    return f"{count:,} numbers of hosts in {len(groups)} groups, each of those that follow."


def _said(plan: HostsPlan, index: int, figure: Figure) -> str:
    """Return the extremes of a figure, and with how many hosts it is worst."""
    values = {one.num_hosts: spread_of([one], index, figure) for one in plan.comparisons}
    least = min(values.values(), key=lambda spread: spread.least)
    worst = max(values, key=lambda count: values[count].most)
    if least.text == values[worst].text:
        return f"{figure.heading}: {least.text} with each number of hosts."
    return f"{figure.heading}: {least.text} to {values[worst].text}, the most on {worst:,} hosts."


def _shown(group: Group, index: int, figure: Figure) -> PanelRow:
    spread = spread_of(group, index, figure)
    return PanelRow(
        name=str(min(one.num_hosts for one in group)),
        label=f"{group_name(group)} hosts",
        least=spread.least,
        most=spread.most,
        text=spread.text,
        title=f"{group_name(group)} hosts: {spread.text} {spread.words}".rstrip(),
        word="refused" if "refused" in spread.words else "idle" if spread.words else "",
    )


def _ticks(most: float) -> list[Tick]:
    """Return ticks of what is over 1, which say the figure itself."""
    ticks = round_ticks(0, most, most=3)
    digits = max(len(tick.text.partition(".")[2]) for tick in ticks)
    return [Tick(tick.value, f"{1 + tick.value:,.{digits}f}") for tick in ticks]


def _numbers(groups: Sequence[Group], shown: Sequence[tuple[int, Figure]]) -> Numbers:
    """Return the figures of each group, of those by themselves with who serves best."""
    if all(len(group) == 1 for group in groups):
        names = [strategy.name for strategy in groups[0][0].strategies]
        facts = ("times read", "imbalance", "idle hosts")
        rows = [
            (
                comparison.num_hosts,
                "none" if comparison.recommended is None else comparison.recommended.name,
                *(
                    value
                    for one in comparison.strategies
                    for value in (one.read_amplification, one.imbalance, one.idle_hosts)
                ),
            )
            for (comparison,) in groups
        ]
        headings = (f"{name}: {fact}" for name in names for fact in facts)
        return Numbers(headings=("hosts", "serves best", *headings), rows=rows)
    spreads = [[spread_of(group, index, figure) for index, figure in shown] for group in groups]
    return Numbers(
        headings=(
            "hosts",
            *(f"{figure.heading}, {what}" for _, figure in shown for what in ("least", "most")),
        ),
        rows=[
            (group_name(group), *(1 + end for one in row for end in (one.least, one.most)))
            for group, row in zip(groups, spreads, strict=True)
        ],
    )
