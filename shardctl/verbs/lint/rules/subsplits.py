"""SC041 to SC045 and SC051: specs that overlap or surprise, and examples that are left out."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator

from shardctl.base.text import counted
from shardctl.dataset.dataset import Dataset
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.stages import stages as ast
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import LintContext, Read
from shardctl.verbs.lint.rule import EVERY_LOADER, Check, Rule, Violation, rule

_SMALL_GAP = 100  # a gap of at most 1/100 of a split is an oversight, a larger one intended
_MOST_PLUSES = 2  # a longer spec is hard to read
_SHARE_NOTHING = "specs that share nothing, as [:60%] and [60%:]"


def _of_specs(code: str) -> Callable[[Check], Rule]:
    """Make a rule that counts whoever reads."""
    return rule(code, "specs", "eval", for_data_source=True, loaders=EVERY_LOADER)


@_of_specs("SC041")
def leak(context: LintContext) -> Iterator[Violation]:
    """Find examples in a spec for training and in one for evaluation."""
    for trained, evaluated in itertools.product(context.trained, context.evaluated):
        shared = _shared_by(trained, evaluated)
        if shared:
            rest = _rest(context, trained, evaluated)
            fix = _SHARE_NOTHING if rest is None else f"train on {rest}"
            why = f"{trained.spec} trains on {_some(shared)} that {evaluated.spec} evaluates on"
            yield Violation(why, fix, specs=(trained.spec, evaluated.spec))


@_of_specs("SC042")
def overlap(context: LintContext) -> Iterator[Violation]:
    """Find examples in two specs of the same use."""
    for use in (context.trained, context.evaluated):
        for one, other in itertools.combinations(use, 2):
            shared = _shared_by(one, other)
            if shared:
                rest = _rest(context, one, other)
                fix = _SHARE_NOTHING if rest is None else f"{rest} in place of {one.spec}"
                why = f"{one.spec} and {other.spec} share {_some(shared)}"
                yield Violation(why, fix, specs=(one.spec, other.spec))


def _shared_by(one: Read, other: Read) -> IdSets:
    return id_sets(one.resolved.ranges, other.resolved.ranges, among_others=True)


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
    rest = id_sets(one.resolved.ranges, other.resolved.ranges, among_others=False)
    spec = as_spec(rest, context.dataset)
    return spec if spec and spec.count("+") <= _MOST_PLUSES else None


@_of_specs("SC043")
def repeated_part(context: LintContext) -> Iterator[Violation]:
    """Find a sum whose parts overlap."""
    for read in context.reads:
        # The sets hold each id once.
        again = read.num_examples - num_ids(id_sets(read.resolved.ranges))
        if again:
            more = f"{counted(again, 'example')} more are read than there are"
            yield Violation(f"{more}, since its parts overlap", "parts that share nothing", read)


@_of_specs("SC044")
def surprising_spec(context: LintContext) -> Iterator[Violation]:
    """Find bounds that TFDS reads in its own way, and specs that select nothing."""
    fix = "write what is meant; `shardctl plan` shows what is read"
    for read in context.reads:
        if not read.num_examples:
            why = f"{read.spec} selects no examples, and TFDS refuses to read it"
            yield Violation(why, "a spec with examples", specs=(read.spec,), severity="error")
            continue
        for part in read.spec.split("+"):
            # By itself a part cannot overlap, which is another rule's.
            for warning in resolve_subsplit(part.strip(), context.dataset).warnings:
                yield Violation(warning, fix, specs=(read.spec,))


@_of_specs("SC045")
def gap(context: LintContext) -> Iterator[Violation]:
    """Find small gaps between the specs of a split."""
    together = id_sets(piece for read in context.reads for piece in read.resolved.ranges)
    for name, stretches in together.items() if len(context.reads) > 1 else ():
        most = max(1, context.dataset.split(name).num_examples // _SMALL_GAP)
        # Stretches are what is read; the gap lies between the end of one and the beginning of the
        # next.
        for (_, start), (stop, _) in itertools.pairwise(stretches):
            if stop - start <= most:
                ids = f"id {start} is" if stop - start == 1 else f"ids {start} to {stop - 1} are"
                fix = f"let one end at {name}[:{stop}], where the other begins"
                ends = [one.spec for one in context.reads if _ends_at(one, name, start, stop)]
                why = f"{ids} between two specs of {name} and in neither"
                yield Violation(why, fix, specs=tuple(ends))


def _ends_at(read: Read, name: str, stop: int, start: int) -> bool:
    """Whether a part of a spec ends at the one id of a split, or begins at the other."""
    pieces = [piece for piece in read.resolved.ranges if piece.split.name == name]
    return any(piece.stop == stop or piece.start == start for piece in pieces)


# SC051: examples that are left out.

_PAD = "pad the last batch and mask it, as shardctl.tfds.evaluation does"


@rule("SC051", "drop_remainder", "batch", loaders=EVERY_LOADER)
def dropped_in_evaluation(context: LintContext) -> Iterator[Violation]:
    """Find evaluation examples that fill no batch."""
    settings = context.settings
    for read in context.evaluated:
        for here in context.stages_at(read) if not settings.takes("epochs") else ():
            batch, count = here.stage, here.num_elements
            if not isinstance(batch, ast.Batch) or not batch.drop_remainder:
                continue
            if count is not None and not math.isinf(count) and count % batch.size:
                lost = f"{int(count) % batch.size:,} of {int(count):,} elements fill no "
                why = f"{lost}{text_of_part(batch)} and are never evaluated"
                yield Violation(why, _PAD, read)
        drops = settings.drop_remainder and settings.batch is not None
        columns = context.shares(read).columns if drops else None
        if settings.batch is None or columns is None:
            continue
        # Each host drops its own last, partial batch.
        dropped = int((columns.num_examples % settings.batch).sum())
        # What a loader reads twice, so that all hosts have as many, is not lost once dropped.
        num_lost = min(dropped, read.num_examples - int(columns.num_examples.sum()) + dropped)
        if num_lost > 0:
            where = f" on {context.num_hosts:,} hosts" if context.num_hosts > 1 else ""
            batch_of = f"batch of {settings.batch:,}{where}"
            why = f"{num_lost:,} of {read.num_examples:,} examples fill no {batch_of}"
            yield Violation(f"{why} and are never evaluated", _PAD, read)


# Which examples specs select: sets of ids as sorted stretches, split by split.

RunSegment = tuple[int, int]  # [start, stop)
IdSets = dict[str, list[RunSegment]]


def id_sets(
    ranges: Iterable[SplitRange],
    others: Iterable[SplitRange] = (),
    *,
    among_others: bool | None = None,
) -> IdSets:
    """Return the ids that ranges select, as disjoint ascending stretches of each split.

    among_others: leaves those that the others select too, or those that they do not.

    >>> from shardctl.dataset.dataset import Split
    >>> split = Split(name="train", shard_lengths=(10,))
    >>> late, early = (SplitRange(split=split, start=a, stop=b) for a, b in [(4, 8), (0, 5)])
    >>> id_sets([late, early]), id_sets([late], [early], among_others=False)
    ({'train': [(0, 8)]}, {'train': [(5, 8)]})
    """
    # In how many ranges of each of the two an id is more than the id before it.
    ends: dict[str, tuple[Counter[int], Counter[int]]] = defaultdict(lambda: (Counter(), Counter()))
    for side, pieces in enumerate((ranges, others)):
        for piece in (one for one in pieces if one.num_examples):
            ends[piece.split.name][side].update({piece.start: 1})
            ends[piece.split.name][side].subtract({piece.stop: 1})
    found: IdSets = {}
    for name, both in ends.items():
        depth = [0, 0]
        stretches: list[RunSegment] = []
        # Between two neighbouring edges all ids are alike.
        for start, stop in itertools.pairwise(sorted({*both[0], *both[1]})):
            depth = [now + of[start] for now, of in zip(depth, both, strict=True)]
            if depth[0] and among_others in (None, depth[1] > 0):
                # It goes on where the stretch before it ends.
                first = stretches.pop()[0] if stretches and stretches[-1][1] == start else start
                stretches.append((first, stop))
        if stretches:
            found[name] = stretches
    return found


def as_spec(sets: IdSets, dataset: Dataset) -> str:
    """Return a spec that selects the ids.

    >>> from shardctl.dataset.dataset import Split
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
