"""SC041 to SC045: specs that overlap, or select something else than they look like."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from shardctl.core.dataset.dataset import Dataset
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.text import counted
from shardctl.planning.lint.context import LintContext, Read
from shardctl.planning.lint.rule import EVERY_LOADER, Violation, rule

_SMALL_GAP = 100  # a gap of at most 1/100 of a split is an oversight, a larger one intended
_MOST_PLUSES = 2  # a longer spec helps nobody
_SPECS = ("specs", "eval")


@rule(
    "SC041",
    "leak",
    "error",
    "evaluation examples that are trained on",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def leak(context: LintContext) -> Iterator[Violation]:
    """Find examples in a spec for training and in one for evaluation."""
    for trained, evaluated in itertools.product(context.trained, context.evaluated):
        shared = in_both(id_sets(trained.resolved.ranges), id_sets(evaluated.resolved.ranges))
        if shared:
            rest = _rest(context, trained, evaluated)
            yield Violation(
                why=f"{trained.spec} trains on {_some(shared)} that {evaluated.spec} evaluates on",
                fix="specs that share nothing, as [:60%] and [60%:]"
                if rest is None
                else f"train on {rest}",
                specs=(trained.spec, evaluated.spec),
                settings=_SPECS,
            )


@rule(
    "SC042",
    "overlap",
    "warning",
    "specs that share examples",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def overlap(context: LintContext) -> Iterator[Violation]:
    """Find examples in two specs of the same use."""
    pairs = itertools.chain(
        itertools.combinations(context.trained, 2), itertools.combinations(context.evaluated, 2)
    )
    for one, other in pairs:
        shared = in_both(id_sets(one.resolved.ranges), id_sets(other.resolved.ranges))
        if shared:
            rest = _rest(context, one, other)
            yield Violation(
                why=f"{one.spec} and {other.spec} share {_some(shared)}",
                fix="specs that share nothing, as [:60%] and [60%:]"
                if rest is None
                else f"{rest} in place of {one.spec}",
                specs=(one.spec, other.spec),
                settings=_SPECS,
            )


def _some(shared: IdSets) -> str:
    """Say how many examples there are, and which come first."""
    name, stretches = next(iter(shared.items()))
    start, stop = stretches[0]
    count = num_ids(shared)
    rest = ", the first of them" if count > stop - start else ""
    ids = f"id {start}" if stop - start == 1 else f"ids {start} to {stop - 1}"
    return f"{counted(count, 'example')} ({ids} of {name}{rest})"


def _rest(context: LintContext, one: Read, other: Read) -> str | None:
    """Return a spec of what the one reads and the other does not, None where it is long."""
    rest = without(id_sets(one.resolved.ranges), id_sets(other.resolved.ranges))
    spec = as_spec(rest, context.dataset)
    return spec if spec and spec.count("+") <= _MOST_PLUSES else None


@rule(
    "SC043",
    "repeated-part",
    "warning",
    "a sum that reads examples twice",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def repeated_part(context: LintContext) -> Iterator[Violation]:
    """Find a sum whose parts overlap."""
    for read in context.reads:
        num_repeated = read.num_examples - num_ids(id_sets(read.resolved.ranges))
        if num_repeated:
            count = "1 example" if num_repeated == 1 else f"{num_repeated:,} examples"
            yield Violation(
                why=f"{read.spec}: {count} more are read than there are, since its parts overlap",
                fix="parts that share nothing",
                specs=(read.spec,),
                settings=_SPECS,
            )


@rule(
    "SC044",
    "surprising-spec",
    "warning",
    "a spec that selects something else than it looks like",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def surprising_spec(context: LintContext) -> Iterator[Violation]:
    """Find bounds that TFDS reads in its own way, and specs that select nothing."""
    for read in context.reads:
        if not read.num_examples:
            yield Violation(
                why=f"{read.spec} selects no examples, and TFDS refuses to read it",
                fix="a spec with examples",
                specs=(read.spec,),
                settings=_SPECS,
                severity="error",
            )
            continue
        for part in read.spec.split("+"):
            # By itself a part cannot overlap, which is another rule's.
            alone = resolve_subsplit(part.strip(), context.dataset)
            for warning in alone.warnings:
                yield Violation(
                    why=warning,
                    fix="write what is meant; `shardctl plan` shows what is read",
                    specs=(read.spec,),
                    settings=_SPECS,
                )


@rule(
    "SC045",
    "gap",
    "notice",
    "examples between two specs that neither reads",
    for_data_source=True,
    loaders=EVERY_LOADER,
)
def gap(context: LintContext) -> Iterator[Violation]:
    """Find small gaps between the specs of a split."""
    if len(context.reads) < 2:
        return
    together = id_sets(piece for read in context.reads for piece in read.resolved.ranges)
    for name, stretches in together.items():
        most = max(1, context.dataset.split(name).num_examples // _SMALL_GAP)
        for (_, start), (stop, _) in itertools.pairwise(stretches):
            if stop - start <= most:
                ids = f"id {start} is" if stop - start == 1 else f"ids {start} to {stop - 1} are"
                yield Violation(
                    why=f"{ids} between two specs of {name} and in neither",
                    fix=f"let one end at {name}[:{stop}], where the other begins",
                    specs=tuple(
                        read.spec
                        for read in context.reads
                        if any(
                            piece.split.name == name
                            and (piece.stop == start or piece.start == stop)
                            for piece in read.resolved.ranges
                        )
                    ),
                    settings=_SPECS,
                )


# Which examples specs select: sets of ids as sorted stretches, split by split.

Stretch = tuple[int, int]  # [start, stop)
IdSets = dict[str, list[Stretch]]


def id_sets(ranges: Iterable[SplitRange]) -> IdSets:
    """Return the ids that ranges select, as disjoint ascending stretches of each split.

    >>> from shardctl.core.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(10,))
    >>> late, early = (SplitRange(split=split, start=a, stop=b) for a, b in [(4, 8), (0, 5)])
    >>> id_sets([late, early])
    {'train': [(0, 8)]}
    """
    by_split: dict[str, list[Stretch]] = {}
    for piece in ranges:
        if piece.num_examples:
            by_split.setdefault(piece.split.name, []).append((piece.start, piece.stop))
    return {name: _joined(stretches) for name, stretches in by_split.items()}


def _joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    joined: list[Stretch] = []
    for start, stop in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def in_both(left: IdSets, right: IdSets) -> IdSets:
    """Return the ids in both, splits without any left out.

    >>> in_both({"train": [(0, 6)]}, {"train": [(4, 9)], "test": [(0, 1)]})
    {'train': [(4, 6)]}
    """
    both = {
        name: _shared(stretches, right[name]) for name, stretches in left.items() if name in right
    }
    return {name: stretches for name, stretches in both.items() if stretches}


def _shared(left: Sequence[Stretch], right: Sequence[Stretch]) -> list[Stretch]:
    shared: list[Stretch] = []
    i = j = 0
    while i < len(left) and j < len(right):
        start, stop = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < stop:
            shared.append((start, stop))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return shared


def without(left: IdSets, right: IdSets) -> IdSets:
    """Return the ids in `left` that are not in `right`, splits without any left out.

    >>> without({"train": [(0, 9)]}, {"train": [(4, 6)], "test": [(0, 1)]})
    {'train': [(0, 4), (6, 9)]}
    """
    rest = {name: _cut(stretches, right.get(name, [])) for name, stretches in left.items()}
    return {name: stretches for name, stretches in rest.items() if stretches}


def _cut(stretches: Sequence[Stretch], holes: Sequence[Stretch]) -> list[Stretch]:
    pieces = []
    for start, stop in stretches:
        begin = start
        for hole_start, hole_stop in holes:
            if hole_stop <= begin or stop <= hole_start:
                continue
            if begin < hole_start:
                pieces.append((begin, hole_start))
            begin = hole_stop
        if begin < stop:
            pieces.append((begin, stop))
    return pieces


def as_spec(sets: IdSets, dataset: Dataset) -> str:
    """Return a spec that selects the ids.

    >>> from shardctl.core.dataset.dataset import Split
    >>> toy = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(9,)),))
    >>> as_spec({"train": [(0, 4), (6, 9)]}, toy)
    'train[:4]+train[6:]'
    """
    parts = []
    for name, stretches in sets.items():
        total = dataset.split(name).num_examples
        for start, stop in stretches:
            bounds = f"[{start or ''}:{'' if stop == total else stop}]"
            parts.append(name if bounds == "[:]" else f"{name}{bounds}")
    return "+".join(parts)


def num_ids(sets: IdSets) -> int:
    """Return how many ids there are.

    >>> num_ids({"train": [(0, 6), (7, 8)]})
    7
    """
    return sum(stop - start for stretches in sets.values() for start, stop in stretches)
