"""Pictures of two orders: where they part, and how well each is mixed over its epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from shardctl.core.text import counted
from shardctl.planning.diff.diff import OrderDifference
from shardctl.planning.quality.quality import Quality
from shardctl.planning.report.compare import BlockRun, BlockState
from shardctl.rendering.pictures.axes import GAP, Axis, Plane, Tick, plane
from shardctl.rendering.pictures.bars import Key, legend
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
from shardctl.rendering.pictures.shuffling import stairs

_MOST_RUNS = 160  # of blocks that are drawn and told one by one
_STRIP = 48.0  # its height
# How high a block is, and its colour: what is said by one is said by the other, and by the legend.
_LOOKS: dict[BlockState, tuple[float, Role]] = {
    "same": (0.25, "data"),
    "moved": (1.0, "other"),
    "one has ended": (0.6, "padding"),
}
_WORST: tuple[BlockState, ...] = ("moved", "one has ended", "same")


def parting_picture(
    runs: Sequence[BlockRun],
    first: OrderDifference | None,
    *,
    longer: str | None = None,
    things: str = "examples",
) -> Picture:
    """Return a strip over all positions, which says block by block whether two orders agree.

    first: where they differ first, None where they do not. longer: which of them goes on where the
    other has ended, as "B"; None where both are as long.
    """
    positions = runs[-1].stop
    shown, size = _drawn(runs)
    words = _words(longer, things)
    states = [state for state in _LOOKS if any(run.state == state for run in shown)]
    keys = legend([Key(text=words[state], role=_LOOKS[state][1]) for state in states])
    x = Axis(first=0, last=positions, title="position", whole=True)
    on = plane(x, Axis(first=0, last=1, ticks=()), top=keys.bottom + _above(first), height=_STRIP)
    marks: list[Mark] = [*keys.marks, *on.marks]
    for run in shown:
        left, right = on.x.at(run.start), on.x.at(run.stop)
        high, role = _LOOKS[run.state]
        marks.append(
            Box(
                x=left,
                y=on.y.at(high),
                width=right - left,
                height=on.y.at(0) - on.y.at(high),
                role=role,
                title=f"{_span(run)}: {words[run.state]}",
            )
        )
    if first is not None:
        marks += _at_first(first, on)
    return Picture(
        name="where-they-part",
        title="Where the two orders part",
        caption=f"Low blocks hold the same {things} at the same positions in A and in B; in a high "
        "one at least one position has another.",
        alternative=_parting_in_words(runs, first, words, things),
        height=on.bottom,
        marks=tuple(marks),
        numbers=Numbers(
            headings=("from position", "to", "what is there"),
            rows=[(run.start, run.stop - 1, words[run.state]) for run in shown],
        ),
        note=None
        if size is None
        else f"Blocks are shown in groups of about {size:,} positions; a group is high where one "
        "of its blocks is.",
    )


def _words(longer: str | None, things: str) -> dict[BlockState, str]:
    return {
        "same": f"the same {things} (low)",
        "moved": f"other {things} (high)",
        "one has ended": f"only {longer or 'one'} goes on (middle)",
    }


def _drawn(runs: Sequence[BlockRun]) -> tuple[Sequence[BlockRun], int | None]:
    """Return the runs, or where they are many groups of equal size, and that size.

    A group is of the worst state in it.
    """
    if len(runs) <= _MOST_RUNS:
        return runs, None
    positions = runs[-1].stop
    edges = [positions * number // _MOST_RUNS for number in range(_MOST_RUNS + 1)]
    states: list[BlockState] = []
    at = 0
    for start, stop in pairwise(edges):
        while runs[at].stop <= start:
            at += 1
        within = at
        found = {runs[within].state}
        while runs[within].stop < stop:
            within += 1
            found.add(runs[within].state)
        states.append(next(state for state in _WORST if state in found))
    grouped = []
    for state, group in groupby(range(_MOST_RUNS), key=states.__getitem__):
        numbers = list(group)
        start, stop = edges[numbers[0]], edges[numbers[-1] + 1]
        grouped.append(BlockRun(start=start, stop=stop, state=state))
    return grouped, -(-positions // _MOST_RUNS)


def _above(first: OrderDifference | None) -> float:
    return 0.0 if first is None else TEXT + GAP


def _at_first(first: OrderDifference, on: Plane) -> Iterator[Mark]:
    """Yield the place of the first difference, with its position above the strip."""
    x, top = on.x.at(first.position), on.y.at(1)
    text = f"first difference at {first.position:,}"
    if not first.exact:
        text = f"first difference from {first.position:,} on"
    yield Line(points=((x, top - GAP), (x, on.y.at(0))), role="axis")
    at_right = x + text_width(text) > WIDTH
    yield Label(x=min(x, WIDTH), y=top - GAP - 2, text=text, anchor="end" if at_right else "start")


def _span(run: BlockRun) -> str:
    return f"positions {run.start:,} to {run.stop - 1:,}"


def _parting_in_words(
    runs: Sequence[BlockRun],
    first: OrderDifference | None,
    words: dict[BlockState, str],
    things: str,
) -> str:
    positions = runs[-1].stop
    if first is None:
        return f"All {counted(positions, 'position')} hold the same {things} in both."
    shares = dict.fromkeys(_LOOKS, 0)
    for run in runs:
        shares[run.state] += run.stop - run.start
    told = [f"{words[state]}: {count / positions:.1%}" for state, count in shares.items() if count]
    where = f"at position {first.position:,}" if first.exact else f"from {first.position:,} on"
    return f"Of {positions:,} positions, by blocks, {'; '.join(told)}. They first differ {where}."


def scores_picture(a: Quality, b: Quality) -> Picture:
    """Return how well each part of the epochs of two orders is mixed near by, as two lines."""
    keys = legend(
        [
            Key(text="A", role="data", line=True),
            Key(text="B", role="other", line=True, dashed=True),
            Key(text="a uniform permutation", role="uniform", line=True),
        ]
    )
    ticks = tuple(Tick(part / 4, f"{part / 4:.0%}") for part in range(5))
    on = plane(
        Axis(first=0, last=1, title="part of the epoch", ticks=ticks),
        Axis(first=0, last=1, title="score near by", grid=True),
        top=keys.bottom + GAP,
        right=WIDTH - text_width("A", bold=True) - GAP,
    )
    expected = min(one.by_position[0].score.expected for one in (a, b))
    level = on.y.at(expected)
    marks: list[Mark] = [*keys.marks, *on.marks]
    marks.append(Line(points=((on.x.at(0), level), (on.x.at(1), level)), role="uniform"))
    marks.append(Line(points=_scores(a, on), role="data"))
    marks.append(Line(points=_scores(b, on), role="other", dashed=True))
    marks += _ends(a, b, on)
    return Picture(
        name="both-scores",
        title="How well each part of the epoch is mixed",
        caption="Near 1 neighbours come from all over storage, near 0 they lie side by side there. "
        "A line that falls is an order whose end is mixed worse than its beginning.",
        alternative=f"{_scores_in_words('A', a)} {_scores_in_words('B', b)}",
        height=on.bottom,
        marks=tuple(marks),
        numbers=Numbers(
            headings=("of", "from position", "to", "score near by"),
            rows=[
                (name, part.start, part.stop - 1, round(part.score.value, 4))
                for name, one in (("A", a), ("B", b))
                for part in one.by_position
            ],
        ),
        note=_sampled(a, b),
    )


def _scores(quality: Quality, on: Plane) -> tuple[tuple[float, float], ...]:
    heights = ((part, part.score.value) for part in quality.by_position)
    return stairs(heights, on, quality.num_examples)


def _ends(a: Quality, b: Quality, on: Plane) -> Iterator[Label]:
    """Yield the names of the lines at their ends, apart from each other."""
    heights = [on.y.at(one.by_position[-1].score.value) for one in (a, b)]
    middle = sum(heights) / 2
    apart = TEXT * 1.1
    if abs(heights[0] - heights[1]) < apart:
        upper = 0 if heights[0] <= heights[1] else 1
        middle = min(max(middle, on.y.at(1) + apart / 2), on.y.at(0) - apart / 2)
        heights[upper], heights[1 - upper] = middle - apart / 2, middle + apart / 2
    for name, y in zip("AB", heights, strict=True):
        yield Label(x=on.x.at(1) + GAP, y=y + TEXT * 0.35, text=name, bold=True)


def _scores_in_words(name: str, quality: Quality) -> str:
    scores = [part.score.value for part in quality.by_position]
    return (
        f"{name}: from {min(scores):.2f} to {max(scores):.2f} in "
        f"{counted(len(scores), 'part')}, {scores[-1]:.2f} in the last."
    )


def _sampled(a: Quality, b: Quality) -> str | None:
    names = [name for name, one in (("A", a), ("B", b)) if one.sampled is not None]
    return None if not names else f"Of {' and '.join(names)} stretches of the epoch are measured."
