"""Which stages of two pipelines differ: changed, moved, added or left out, each by its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeVar

from shardctl.core.stages.part import Part, Source, Stage
from shardctl.core.stages.stages import (
    Pipeline,
    Read,
    Shared,
    Shuffle,
)
from shardctl.core.stages.text import place_of, text_of, text_of_part

StageChange = Literal["changed", "moved", "moved and changed", "added", "left out", "source"]


@dataclass(frozen=True, kw_only=True)
class ChangedStage:
    """A stage, or a source, that is not the same in two pipelines.

    name: of the call, `shuffle`.
    expected, actual: as text; None on the side that does not have it.
    place, place_now: where it was and where it is, "stage 2" or "stage 1 of input 0".
    words: the rest of a sentence that begins with the place and the stage.
    """

    change: StageChange
    name: str
    expected: str | None
    actual: str | None
    place: str | None
    place_now: str | None
    words: str


def changed_stages(expected: Pipeline, actual: Pipeline) -> tuple[ChangedStage, ...]:
    """Return what differs, in the order of the script, the source first.

    >>> from shardctl.core.stages.text import parse_stages
    >>> before = parse_stages("cache | shuffle(10, seed=7) | batch(4)")
    >>> after = parse_stages("shuffle(10, seed=8) | cache | batch(4)")
    >>> for found in changed_stages(before, after):
    ...     print(found.place, found.name, found.words, sep=": ")
    stage 1: cache: moved from before shuffle to behind it
    stage 2: shuffle: seed 7 became 8
    """
    return tuple(dict.fromkeys(_pipelines(expected, actual, "", "")))  # what is shared comes often


def _pipelines(old: Pipeline, new: Pipeline, where: str, now: str) -> Iterator[ChangedStage]:
    yield from _sources(old.source, new.source, where, now)
    yield from _stages(old.stages, new.stages, where, now)


def _sources(old: Source, new: Source, where: str, now: str) -> Iterator[ChangedStage]:
    if old == new:
        return
    if isinstance(old, Shared) and isinstance(new, Shared):
        shared = f"shared {old.label}", f"shared {new.label}"
        yield from _pipelines(old.pipeline, new.pipeline, *shared)
        return
    if old.fed_by and type(old) is type(new):
        within = [one.name for one in old.parameters if one.takes in ("pipeline", "pipelines")]
        words = _arguments(old, new, leaving_out=within)
        if words:
            yield _of_source(old, new, where, now, words)
        yield from _inputs(old.fed_by, new.fed_by, where, now)
        choices = (part.pipelines[len(part.fed_by) :] for part in (old, new))
        for before, after in zip(*choices, strict=True):
            yield from _pipelines(before, after, _in("choices", where), _in("choices", now))
        return
    words = _arguments(old, new) if type(old) is type(new) else ""
    yield _of_source(old, new, where, now, words or f"became {text_of_part(new, is_source=True)}")


def _of_source(old: Source, new: Source, where: str, now: str, words: str) -> ChangedStage:
    place, place_now = (f"source of {at}" if at else "source" for at in (where, now))
    return ChangedStage(
        change="source",
        name=old.called,
        expected=text_of_part(old, is_source=True),
        actual=text_of_part(new, is_source=True),
        place=place,
        place_now=place_now,
        words=words,
    )


def _inputs(
    old: Sequence[Pipeline], new: Sequence[Pipeline], where: str, now: str
) -> Iterator[ChangedStage]:
    """Compare the inputs of a mixture, those most alike with each other."""
    for before, after in aligned(old, new, cost_of_inputs, gap_of_input):
        at = None if before is None else _in(f"input {before}", where)
        at_now = None if after is None else _in(f"input {after}", now)
        if before is not None and after is not None:
            yield from _pipelines(old[before], new[after], at or "", at_now or "")
            continue
        text = text_of(old[before] if before is not None else new[after or 0])
        yield ChangedStage(
            change="left out" if after is None else "added",
            name="input",
            expected=text if after is None else None,
            actual=None if after is None else text,
            place=at,
            place_now=at_now,
            words="was left out" if after is None else "was added",
        )


def _stages(
    old: Sequence[Stage], new: Sequence[Stage], where: str, now: str
) -> Iterator[ChangedStage]:
    pairs = with_moved(aligned(old, new, cost_of, gap_of), old, new)
    for before, after, moved in pairs:
        at = None if before is None else place_of(before, where)
        at_now = None if after is None else place_of(after, now)
        if before is None or after is None:
            yield _one_sided(old, new, before, after, at, at_now)
            continue
        one, other = old[before], new[after]
        if one.fed_by and type(one) is type(other) and not moved:
            inner = _in(one.name, at or ""), _in(one.name, at_now or "")
            for before_it, now_it in zip(one.fed_by, other.fed_by, strict=True):
                yield from _pipelines(before_it, now_it, *inner)
            continue
        words = _arguments(one, other)
        change: StageChange = "changed"
        if moved:
            change = "moved and changed" if words else "moved"
            words = ", ".join(filter(None, (_moved(old, new, before, after), words)))
        if words:
            yield ChangedStage(
                change=change,
                name=one.called,
                expected=text_of_part(one),
                actual=text_of_part(other),
                place=at,
                place_now=at_now,
                words=words,
            )


def _one_sided(
    old: Sequence[Stage],
    new: Sequence[Stage],
    before: int | None,
    after: int | None,
    at: str | None,
    at_now: str | None,
) -> ChangedStage:
    if before is not None:
        return ChangedStage(
            change="left out",
            name=old[before].called,
            expected=text_of_part(old[before]),
            actual=None,
            place=at,
            place_now=None,
            words="was left out",
        )
    index = after or 0
    behind = f" behind {text_of_part(new[index - 1])}" if index else ", the first stage"
    return ChangedStage(
        change="added",
        name=new[index].called,
        expected=None,
        actual=text_of_part(new[index]),
        place=None,
        place_now=at_now,
        words=f"was added{behind}",
    )


def _arguments(old: Part, new: Part, leaving_out: Collection[str] = ()) -> str:
    """Return which arguments differ, "" where none does.

    >>> _arguments(Shuffle(buffer=10, seed=7), Shuffle(buffer=20, seed=7))
    'buffer 10 became 20'
    """
    return ", ".join(
        f"{field.name} {_value(getattr(old, field.name))} became {_value(getattr(new, field.name))}"
        for field in fields(old)
        if field.name not in leaving_out
        and _in_force(old, field.name) != _in_force(new, field.name)
    )


def _in_force(part: Part, name: str) -> object:
    """Return an argument; a shuffle reshuffles where it does not say."""
    value = getattr(part, name)
    return True if value is None and isinstance(part, Shuffle) and name == "reshuffle" else value


def _value(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Pipeline):
        return text_of(value)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(f"{name}={one}" for name, one in value)
    return str(list(value)) if isinstance(value, tuple) else str(value)


def _moved(old: Sequence[Stage], new: Sequence[Stage], before: int, after: int) -> str:
    """Return where a stage went, by a neighbour on whose other side it is now."""
    passed = [stage for stage in old[before + 1 :] if stage in new[:after]] or _same_kind(
        old[before + 1 :], new[:after]
    )
    if passed:
        return f"moved from before {passed[-1].name} to behind it"
    passed = [stage for stage in old[:before] if stage in new[after + 1 :]] or _same_kind(
        old[:before], new[after + 1 :]
    )
    if passed:
        return f"moved from behind {passed[0].name} to before it"
    return f"moved from place {before + 1} to {after + 1}"


def _same_kind(stages: Sequence[Stage], others: Sequence[Stage]) -> list[Stage]:
    kinds = {type(other) for other in others}
    return [stage for stage in stages if type(stage) in kinds]


def _in(part: str, where: str) -> str:
    return f"{part} of {where}" if where else part


# Which stage of one list is which of another: an alignment at the least cost.

Item = TypeVar("Item")
Pair = tuple[int | None, int | None]


def aligned(
    old: Sequence[Item],
    new: Sequence[Item],
    cost: Callable[[Item, Item], float],
    gap: Callable[[Item], float],
) -> list[Pair]:
    """Return which item of one list is which of the other, at the least cost, in order.

    An item that has no counterpart costs its gap.

    >>> unlike = lambda one, other: 0.0 if one == other else 9.0
    >>> aligned("abc", "bcd", unlike, lambda item: 1.0)
    [(0, None), (1, 0), (2, 1), (None, 2)]
    """
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) + 1):
        for j in range(len(new) + 1):
            ways = []
            if i and j:
                ways.append(best[i - 1][j - 1] + cost(old[i - 1], new[j - 1]))
            if i:
                ways.append(best[i - 1][j] + gap(old[i - 1]))
            if j:
                ways.append(best[i][j - 1] + gap(new[j - 1]))
            best[i][j] = min(ways, default=0.0)
    pairs: list[Pair] = []
    i, j = len(old), len(new)
    while i or j:
        if i and j and best[i][j] == best[i - 1][j - 1] + cost(old[i - 1], new[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((i, j))
        elif j and best[i][j] == best[i][j - 1] + gap(new[j - 1]):
            j -= 1
            pairs.append((None, j))
        else:
            i -= 1
            pairs.append((i, None))
    return pairs[::-1]


def with_moved(
    pairs: Sequence[Pair], old: Sequence[Stage], new: Sequence[Stage]
) -> list[tuple[int | None, int | None, bool]]:
    """Return the pairs, those of one kind that left here and came there joined as moved."""
    left = [before for before, after in pairs if after is None and before is not None]
    came = [after for before, after in pairs if before is None and after is not None]
    alike = sorted(
        (cost_of(old[before], new[after]), before, after)
        for before in left
        for after in came
        if old[before].called == new[after].called
    )
    moved: dict[int, int] = {}
    for _, before, after in alike:
        if before not in moved and after not in moved.values():
            moved[before] = after
    found: list[tuple[int | None, int | None, bool]] = []
    for was, now in pairs:
        if was is not None and was in moved:
            found.append((was, moved[was], True))
        elif now is None or was is not None or now not in moved.values():
            found.append((was, now, False))
    return found


def gap_of(stage: Stage) -> float:
    """Return what it costs that a stage has no counterpart."""
    return stage.weight


def cost_of(old: Stage, new: Stage) -> float:
    """Return how unlike two stages are: 0 for equal ones, more than their gaps for two kinds."""
    if old == new:
        return 0.0
    if old.called != new.called:
        return gap_of(old) + gap_of(new) + 1.0
    names = [field.name for field in fields(old)]
    differ = [name for name in names if getattr(old, name) != getattr(new, name)]
    return 0.2 + 0.3 * len(differ) / max(len(names), 1)


def gap_of_input(pipeline: Pipeline) -> float:
    """Return what it costs that an input has no counterpart."""
    return 2.0 + sum(map(gap_of, pipeline.stages))


def cost_of_inputs(old: Pipeline, new: Pipeline) -> float:
    """Return how unlike two inputs are, up to two whole gaps."""
    cost = 0.0
    if old.source != new.source:
        cost = 1.0 if type(old.source) is type(new.source) else 3.0
        if isinstance(old.source, Read) and isinstance(new.source, Read):
            cost = 1.5 if (old.source.spec, old.source.data) != _what(new.source) else 0.5
    for before, after in aligned(old.stages, new.stages, cost_of, gap_of):
        if before is not None and after is not None:
            cost += cost_of(old.stages[before], new.stages[after])
        else:
            cost += gap_of(old.stages[before] if before is not None else new.stages[after or 0])
    return cost


def _what(read: Read) -> tuple[str | None, str | None]:
    return read.spec, read.data
