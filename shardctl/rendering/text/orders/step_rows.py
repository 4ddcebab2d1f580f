"""The steps of hosts as rows of a picture: what each is made of, and which steps are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from shardctl.core.text import counted
from shardctl.planning.eval.evaluation import Evaluation
from shardctl.planning.eval.groups import HostGroup, Span
from shardctl.rendering.text.quantities import counts_between

Kind = Literal["full", "partial", "padding", "lost"]

KINDS: dict[Kind, str] = {
    "full": "full batch",
    "partial": "not full",
    "padding": "padding",
    "lost": "lost",
}
_BEFORE_THE_END = 4  # steps before the first host is done that are not folded
_FOLD = 2.0  # steps as wide as those that are folded, at least


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a row, from one step to another, counted with fractions."""

    kind: Kind
    start: float
    stop: float
    title: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepWindow:
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
    stop = max(
        max(group.steps[evaluation.remainder][1], group.full[1] + group.partial[1])
        for group in groups
    )
    least = min(group.full[0] for group in groups)
    start = 0
    if stop > room:
        start = max(0, min(stop - room + int(_FOLD), least - _BEFORE_THE_END))
        if start < stop - start:
            start = 0
    return StepWindow(start=start, stop=max(stop, 1))


def step_pieces(group: HostGroup, evaluation: Evaluation) -> Iterator[Piece]:
    """Yield what a row is made of, by what is done with remainders; what is empty is left out.

    A batch that is not full takes as much of its step as it has examples, where hosts are alike;
    where they are not, the steps that only some of them make with a full batch are not full either.
    """
    way, (full, most_full) = evaluation.remainder, group.full
    size = counted(evaluation.host_batch, "example")
    if full:
        yield Piece(kind="full", start=0, stop=full, title=f"{_batches(group.full)} of {size}")
    filled: float = most_full + (group.partial[1] if way != "drop" else 0)
    held = how_many(group.remainder, "example")
    if way != "drop" and group.remainder[0] == group.remainder[1] and group.partial == (1, 1):
        filled = full + group.remainder[0] / evaluation.host_batch
    if filled > full:
        title = (
            f"{_batches(group.full)} of {size}"
            if way == "drop"
            else (f"{_batches(group.partial)} not full, with {held} in place of {size}")
        )
        yield Piece(kind="partial", start=full, stop=filled, title=title)
    if way == "drop" and group.partial[1]:
        share = group.remainder[1] / evaluation.host_batch
        yield Piece(kind="lost", start=filled, stop=filled + share, title=f"{held} lost")
    steps = group.steps[way][1]
    if way == "pad" and steps > filled:
        alone = f"{_batches(group.padding_batches)} of padding alone"
        beside = how_many(group.padding, "example")
        title = f"{beside} of padding beside others, then {alone}"
        yield Piece(kind="padding", start=filled, stop=steps, title=title)


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

    >>> from shardctl.core.dataset.dataset import Dataset, Split
    >>> from shardctl.planning.eval.eval import evaluate
    >>> from shardctl.planning.eval.groups import host_groups
    >>> odd = Dataset(name="d", splits=(Split(name="test", shard_lengths=(4097,)),))
    >>> [hosts_of(group) for group in host_groups(evaluate(odd, batch=64, hosts=8), 4)]
    ['0', '1–7']
    """
    if not group.are_neighbours:
        return f"{group.count:,} hosts"
    return counts_between(group.first, group.last)


def state_of(group: HostGroup, evaluation: Evaluation) -> str:
    """Return what becomes of hosts at a step that hangs, in a word; empty where none does."""
    hang = evaluation.hang(evaluation.remainder)
    if hang is None:
        return ""
    return "waits" if group.steps[evaluation.remainder][0] > hang.step else "done"


def how_many(values: Span, noun: str, plural: str | None = None) -> str:
    """Return the least and the most of something with its noun, one number where they are equal.

    >>> how_many((1, 1), "step"), how_many((0, 1200), "batch", "batches")
    ('1 step', '0–1,200 batches')
    """
    if values == (1, 1):
        return f"1 {noun}"
    return f"{counts_between(*values)} {plural or f'{noun}s'}"


def _batches(values: Span) -> str:
    return how_many(values, "batch", "batches")
