"""The steps of hosts as rows of a picture: what each is made of, and which steps are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s, distinct
from shardctl.core.order.order import Order
from shardctl.core.settings.document import settings_in_force
from shardctl.core.settings.table import SETTINGS, InForce
from shardctl.core.text import counted, printable
from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.eval.eval import Evaluation, HostGroup, Span
from shardctl.planning.shard_map import Strips, Visit, blocks_of
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.quantities import counts_between
from shardctl.rendering.text.tables import Look, Screen, paragraph, slot_styled

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
    title: str


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
    size = counted(evaluation.host_batch, "example")
    whole, held = f"{_batches(group.full)} of {size}", how_many(group.remainder, "example")
    if full:
        yield Piece(kind="full", start=0, stop=full, title=whole)
    filled: float = most_full + (group.partial[1] if way != "drop" else 0)
    if way != "drop" and group.remainder[0] == group.remainder[1] and group.partial == (1, 1):
        filled = full + group.remainder[0] / evaluation.host_batch
    if filled > full:
        partial = f"{_batches(group.partial)} not full, with {held} in place of {size}"
        title = whole if way == "drop" else partial
        yield Piece(kind="partial", start=full, stop=filled, title=title)
    if way == "drop" and group.partial[1]:
        share = group.remainder[1] / evaluation.host_batch
        yield Piece(kind="lost", start=filled, stop=filled + share, title=f"{held} lost")
    steps = group.steps[way][1]
    if way == "pad" and steps > filled:
        title = f"{how_many(group.padding, 'example')} of padding beside others, then "
        title += f"{_batches(group.padding_batches)} of padding alone"
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
    >>> from shardctl.planning.eval.eval import host_groups
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


# Records of the examples of an order, and the line that names the pipeline.


def order_head(kind: str, order: Order) -> Document:
    """Return the fields that a document about an order begins with."""
    assumptions = list(map(as_options, order.assumptions))
    return head(kind, order.dataset.identity, assumptions=assumptions)


def order_heading(spec: str, order: Order, screen: Screen, style: Look = "") -> Iterator[str]:
    """Yield the line that names the pipeline, and what the order depends on unstated."""
    yield from heading(pipeline_line(spec, order), order.assumptions, screen, style)


def heading(
    title: str, assumptions: Iterable[str], screen: Screen, style: Look = ""
) -> Iterator[str]:
    """Yield a title, and below it what is assumed."""
    yield paragraph(title, screen, style=style)
    for text in assumptions:
        yield paragraph(f"assumed: {as_options(text)}", screen)


def pipeline_record(order: Order) -> dict[str, Any]:
    """Return the settings in force, with every default filled in."""
    return settings_in_force(order.settings, ordered=order.dataset.ordered)


def pipeline_line(spec: str, order: Order) -> str:
    """Return one line that names the spec, the dataset and the settings that shape the order."""
    return f"{spec} of {order.dataset.title}: {settings_words(pipeline_record(order))}"


# Where places are equal the order of the table counts.
_SAID = sorted(SETTINGS, key=lambda setting: setting.place)


def settings_words(in_force: InForce) -> str:
    """Return those of the settings in force that shape an order, as words."""
    return ", ".join(filter(None, (setting.said(in_force) for setting in _SAID)))


# The first blocks of an order as strips: names and hues of shards, ids, where batches begin.

_IDS = 8  # of a visit that are written one by one


def shard_name(visit: Visit, strips: Strips, longest: int) -> str:
    """Return what a shard is called: its number, after its split where there are several.

    The name of a split is cut where all would be longer than `longest` letters, the number is not.
    """
    if not strips.several_splits:
        return str(visit.shard)
    number = f":{visit.shard}"
    return printable(visit.split, max(1, longest - len(number))) + number


def hues_of(visits: Sequence[Visit], count: int) -> list[int]:
    """Return the hue of each visit's shard: another one than that of what is beside it.

    A shard has the same hue wherever it is read; a new one takes the next of `count`, but not the
    hue of the shard that was read in its slot, or right before it, up to then.
    """
    hues: dict[tuple[str, int], int] = {}
    before: dict[int | None, int] = {}
    fresh = 0
    for visit in visits:
        shard = (visit.split, visit.shard)
        if shard not in hues:
            fresh += before.get(visit.slot) == fresh % count
            hues[shard] = fresh % count
            fresh += 1
        before[visit.slot] = hues[shard]
    return [hues[visit.split, visit.shard] for visit in visits]


def ids_text(visit: Visit, order: Order) -> str:
    """Return the ids of a visit: the first and last of a run, else each, or the first few of many.

    >>> from shardctl.planning.order import plan_order
    >>> from shardctl.planning.shard_map import strips
    >>> order = plan_order("imagenet2012", "train", {"cycle": 2, "block": 16}).order
    >>> [ids_text(visit, order) for visit in strips(order, 0, 33).visits]
    ['0–15', '1251–1266', '16']
    """
    if visit.count == 1:
        return str(visit.first_id)
    if visit.is_run:
        return f"{visit.first_id}–{visit.last_id}"
    shown = visit.count if visit.count <= _IDS else _IDS - 2
    codes = order.codes_at(np.arange(visit.position, visit.position + shown))
    ids = list(map(str, order.codes.split_ids(codes).tolist()))
    if shown < visit.count:
        ids += ["…", str(visit.last_id)]
    return ", ".join(ids)


def epoch_starts(visits: Sequence[Visit]) -> list[tuple[int, int]]:
    """Return (position, epoch) where an epoch begins, with the first one if there are several."""
    starts = [
        (visit.position, visit.epoch)
        for before, visit in pairwise([None, *visits])
        if before is None or visit.epoch != before.epoch
    ]
    return starts if len(starts) > 1 else []


def step_starts(order: Order, start: int, stop: int, most: int) -> list[tuple[int, int]] | None:
    """Return (position, step) where batches begin in [start, stop), None where these are too many.

    A batch that began before `start` is not among them; without batches there are none.
    """
    if not order.has_steps or start >= stop:
        return []
    first, last = order.steps_of([start, stop - 1])[0].tolist()
    if last - first >= most:
        return None
    begun = [(order.positions_in_step(step).start, step) for step in range(first, last + 1)]
    return begun[begun[0][0] < start :]


# A stretch of an order for people: a row for each block that a slot reads of a shard.

_PIECE = 1 << 14  # examples made into rows at once
_LONGEST_ROW = 32  # ids; longer blocks take several rows
_MIXED_ROW = 8  # ids in a row after a shuffle buffer
_NAME = 20  # characters of a split's name on a terminal

# A column before the ids: heading, width (below 0: to the left), what it says of a row, given its
# position (int64[1]), slot and shard.
_Lead = tuple[str, int, Callable[[Int64s, int, str], object]]


def order_rows(order: Order, chunks: Iterable[Int64s], start: int, screen: Screen) -> Iterator[str]:
    """Yield a heading and the rows of the codes at the positions from `start` on.

    Without a buffer a row is what one visit of a slot reads, so that the eye finds blocks, slots
    and shards. A buffer has none of these, and each id says its shard. Ids look like their slot;
    where there are no slots, each shard gets the next look when it is first seen.
    """
    longest = 10_000 if screen.width is None else _NAME
    leads = _leads(order, longest)
    mixed = not order.has_blocks
    yield _line(leads, [title for title, *_ in leads]) + ("id@shard\n" if mixed else "ids\n")
    has_slots = "slot" in [title for title, *_ in leads]
    seen: dict[tuple[int, int], int] = {}
    for codes in chunks:
        for begin in range(0, len(codes), _PIECE):
            piece = codes[begin : begin + _PIECE]
            positions = np.arange(start, start + len(piece))
            start += len(piece)
            breaks = np.diff(order.epoch_of(positions)) != 0
            if order.has_steps:
                breaks |= np.diff(order.steps_of(positions)[0]) != 0
            if mixed:
                splits, shards, _ = order.codes.places(piece)
                slots = np.full(len(piece), -1)
                names = [
                    f"{name}@{shard}"
                    for name, shard in zip(order.codes.names(piece), shards.tolist(), strict=True)
                ]
                width = max(map(len, names))
                names = [name.rjust(width) for name in names]
            else:
                found = blocks_of(order, piece, positions)
                splits, shards, slots = found.splits, found.shards, found.slots
                breaks |= found.breaks
                names = list(map(str, order.codes.split_ids(piece).tolist()))
            places = list(zip(splits.tolist(), shards.tolist(), strict=True))
            for first, stop in _runs(breaks, len(piece), _MIXED_ROW if mixed else _LONGEST_ROW):
                slot, here = int(slots[first]), positions[first : first + 1]
                shard = _shard(order, places[first], longest)
                lead = _line(leads, [str(cell(here, slot, shard)) for *_, cell in leads])
                room = None if screen.width is None else max(screen.width - len(lead), 1)
                looks = (
                    slot if has_slots and not mixed else seen.setdefault(place, len(seen))
                    for place in places[first:stop]
                )
                words = list(zip(names[first:stop], looks, strict=True))
                for line in _folded(words, room):
                    yield f"{lead}{_styled(line, screen, alike=not mixed)}\n"
                    lead = " " * len(lead)


def _leads(order: Order, longest_name: int) -> list[_Lead]:
    last = max(order.num_examples - 1, 0)
    found: list[_Lead] = [("position", max(8, len(str(last))), lambda at, slot, shard: int(at[0]))]
    if order.num_epochs is None or order.num_epochs > 1:
        width = max(5, len(str((order.num_epochs or 1) - 1)))
        found.append(("epoch", width, lambda at, slot, shard: int(order.epoch_of(at)[0])))
    if order.has_steps:
        width = max(4, len(str((order.num_steps or 1) - 1)))
        found.append(("step", width, lambda at, slot, shard: int(order.steps_of(at)[0][0])))
    if order.has_blocks:
        if order.settings.cycle_length(ordered=order.dataset.ordered) > 1:
            found.append(("slot", 4, lambda at, slot, shard: slot))
        splits = order.dataset.splits
        used = distinct(order.reads.split).tolist()
        last_shards = ((index, splits[index].num_shards - 1) for index in used)
        names = [_shard(order, place, longest_name) for place in last_shards]
        found.append(("shard", -max(5, *map(len, names)), lambda at, slot, shard: shard))
    return found


def _line(leads: Sequence[_Lead], cells: Sequence[str]) -> str:
    widths = (width for _, width, _ in leads)
    return "".join(
        f"{cell:{'<' if width < 0 else '>'}{abs(width)}}  "
        for cell, width in zip(cells, widths, strict=True)
    )


def _styled(words: Sequence[tuple[str, int]], screen: Screen, *, alike: bool) -> str:
    """Return words in their looks, those that look alike as one."""
    text = " ".join(word for word, _ in words)
    if not screen.color:
        return text
    if alike:
        return slot_styled(text, words[0][1])
    blanks = (" " * (len(word) - len(word.lstrip())) for word, _ in words)
    styled = (slot_styled(word.lstrip(), look) for word, look in words)
    return " ".join(map("".join, zip(blanks, styled, strict=True)))


def _shard(order: Order, place: tuple[int, int], longest_name: int) -> str:
    split, shard = place
    if not order.codes.several_splits:
        return str(shard)
    return f"{printable(order.dataset.splits[split].name, longest_name)}:{shard}"


def _runs(breaks: NDArray[np.bool_], count: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield [first, stop) of the runs between breaks, none longer than `longest`."""
    for first, stop in pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), count]):
        for begin in range(first, stop, longest):
            yield begin, min(begin + longest, stop)


def _folded(words: Sequence[tuple[str, int]], width: int | None) -> list[list[tuple[str, int]]]:
    """Return the words in lines of a width, a word in each at least."""
    lines, used = [[words[0]]], len(words[0][0])
    for word in words[1:]:
        used += 1 + len(word[0])
        if width is None or used <= width:
            lines[-1].append(word)
        else:
            lines.append([word])
            used = len(word[0])
    return lines
