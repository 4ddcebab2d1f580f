"""SC071 to SC074 and SC076 to SC079: stages on the wrong side of others, and mixtures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.stages import stages as ast
from shardctl.stages.part import Source, Stage
from shardctl.stages.text import text_of_part
from shardctl.verbs.lint.context import (
    Chain,
    LintContext,
    StageAt,
    count_of,
    of_type,
    repeats,
    reshuffles,
    shuffles,
)
from shardctl.verbs.lint.rule import Severity, Violation, rule


@rule("SC071", "stages")
def shuffled_split(context: LintContext) -> Iterator[Violation]:
    """Find a part of a dataset that is another one in each iteration."""
    for here, stage in context.at_stages(Stage):
        cause = _reshuffled_by(here, context) if isinstance(stage, ast.Take | ast.Skip) else None
        if cause is None or here.num_left == here.num_elements:
            continue
        what = "keeps" if isinstance(stage, ast.Take) else "leaves out"
        other = f"{here}, {what} other examples in each iteration, since {cause} before it"
        fix = f"slice the spec, or put {text_of_part(stage)} before the shuffle"
        # A subset may be meant to change; the rest of one never is.
        severity: Severity | None = "warning" if isinstance(stage, ast.Take) else None
        yield Violation(f"{other}: parts made so share examples", fix, severity=severity)


def _reshuffled_by(here: StageAt, context: LintContext) -> str | None:
    """Return what gives each iteration another order before a stage, None where nothing does."""
    for stage in reversed(here.before):
        if repeats(stage) or isinstance(stage, ast.Cache):
            return None
        if reshuffles(stage):
            return f"{text_of_part(stage)} reshuffles"
    return "the files are shuffled anew" if context.reshuffles_files_of(here.source) else None


@rule("SC072", "stages")
def shuffled_batches(context: LintContext) -> Iterator[Violation]:
    """Find a shuffle of batches whose examples nothing has shuffled."""
    for here, shuffle in context.at_stages(ast.Shuffle):
        batch = _open_batch(here.before)
        if not shuffles(shuffle) or any(map(shuffles, here.before)) or batch is None:
            continue
        if batch.size > 1:
            stay = f"the {batch.size:,} examples of a batch stay together in every epoch"
            fix = f"{text_of_part(shuffle)} before {text_of_part(batch)}"
            yield Violation(f"{here}, moves whole batches: {stay}", fix)


def _open_batch(stages: tuple[Stage, ...]) -> ast.Batch | None:
    """Return the innermost batch that no `unbatch` has undone."""
    stack: list[ast.Batch] = []
    for stage in stages:
        if isinstance(stage, ast.Batch):
            stack.append(stage)
        elif isinstance(stage, ast.Unbatch) and stack:
            stack.pop()
    return stack[-1] if stack else None


# SC078 and SC079: stages whose count is open, that leave nothing, or that are never reached.


@rule("SC078", "stages")
def open_count(context: LintContext) -> Iterator[Violation]:
    """Find a stage that leaves the number of elements to the data."""
    for here, stage in context.at_stages(Stage):
        if isinstance(stage, ast.Filter) and stage.kept is None:
            why, fix = "how many pass depends on the data", "filter(kept='FILE')"
        elif isinstance(stage, ast.Opaque):
            why, fix = stage.reason or "its order depends on the data", "a stage that counts"
        else:
            continue
        endless = any(stage.count is None for stage in of_type(here.behind, ast.Repeat))
        several = context.num_hosts > 1 and not endless
        if several:
            why += f", and {context.num_hosts:,} hosts end at different steps"
        fix += ", or --ignore SC078 where it is known"
        yield Violation(f"{here}: {why}", fix, severity="warning" if several else None)


@rule("SC079", "stages")
def nothing_left(context: LintContext) -> Iterator[Violation]:
    """Find a stage behind which there is nothing though something came."""
    for read in context.staged_reads:
        for here in context.stages_at(read):
            stage, count = here.stage, here.num_elements
            if isinstance(stage, ast.Concatenate) and count == math.inf:
                why = f"{here}, comes behind a stream without end, and is never read"
                yield Violation(why, "concatenate before the repeat, or sample_from_datasets")
            if here.num_left != 0 or not count:
                continue
            came = f"the {count:,} elements that come there"
            came = "elements without end" if math.isinf(count) else came
            batch = next(iter(of_type(here.before, ast.Batch)), None)
            if batch is not None and isinstance(stage, ast.Skip | ast.Take | ast.Shard):
                came += f" (batches of {batch.size:,})"
            fix = "a count below that" if isinstance(stage, ast.Skip) else "leave it out"
            specs = () if read is None else (read.spec,)
            yield Violation(f"{here}, leaves nothing of {came}", fix, specs=specs)


# SC073 and SC074: caches that keep an order, or nothing.


_READ_AHEAD = 1024  # elements that AUTOTUNE may read before they are asked for


@rule("SC073", "stages")
def cached_shuffle(context: LintContext) -> Iterator[Violation]:
    """Find a cache that keeps the order of a shuffle, with no shuffle behind it."""
    for here, _ in context.at_stages(ast.Cache):
        shuffle = next(filter(reshuffles, reversed(here.before)), None)
        files = context.reshuffles_files_of(here.source) and not of_type(here.before, ast.Cache)
        if any(map(reshuffles, here.behind)) or (shuffle is None and not files):
            continue
        frozen = "the shuffled files" if shuffle is None else text_of_part(shuffle)
        why = f"{here}, keeps the first order of {frozen}: every later epoch comes in it too"
        behind = "a shuffle behind the cache"
        yield Violation(why, behind if shuffle is None else f"cache before {frozen}")


@rule("SC074", "stages")
def unfilled_cache(context: LintContext) -> Iterator[Violation]:
    """Find a cache whose input is cut before its end, or has none."""
    for here, _ in context.at_stages(ast.Cache):
        if here.num_elements == math.inf:
            endless = [stage for stage in of_type(here.before, ast.Repeat) if stage.count is None]
            why = f"{here}, keeps a stream without end, until memory runs out"
            fix = "cache before repeat" if endless else "leave out the cache"
            yield Violation(why, fix, severity="error")
    for read in context.staged_reads:
        for here in context.stages_at(read):
            found = cut(here.behind) if isinstance(here.stage, ast.Cache) else None
            if found is None or not found[1] < (here.num_elements or 0) < math.inf:
                continue
            take = text_of_part(found[0])
            part = f"{found[1]:,} of {here.num_elements:,} elements by {take}"
            never = "it is never filled, and each pass reads the files again"
            specs = () if read is None else (read.spec,)
            why = f"{here}, is asked for {part}: {never}"
            yield Violation(why, f"{take} before the cache", specs=specs)


def cut(behind: tuple[Stage, ...]) -> tuple[ast.Take, int] | None:
    """Return the first take behind a cache and how many elements it asks the cache for at most.

    None where there is none, or where what lies between may ask for all.
    """
    places = (
        i for i, stage in enumerate(behind) if isinstance(stage, ast.Take) and stage.count >= 0
    )
    place = next(places, None)
    if place is None:
        return None
    take = behind[place]
    assert isinstance(take, ast.Take)
    asked: int | None = take.count
    for lower in reversed(behind[:place]):
        asked = None if asked is None else _asked(lower, asked)
    return None if asked is None else (take, asked)


def _asked(stage: Stage, count: int) -> int | None:
    """Return how many elements a stage asks its input for, at most, to hand out `count`."""
    match stage:
        case ast.Batch():
            return count * stage.size
        case ast.Shard():
            return count * stage.num_shards
        case ast.Skip():
            return None if stage.count < 0 else count + stage.count
        case ast.Shuffle():
            return None if stage.buffer < 0 else count + stage.buffer - 1
        case ast.Prefetch():
            return count + (_READ_AHEAD if stage.size == "auto" else stage.size)
        case ast.Map():
            return count + (_READ_AHEAD if stage.calls == "auto" else stage.calls or 0)
        case ast.Repeat() | ast.Cache() | ast.AssertCardinality() | ast.WithOptions() | ast.Take():
            return count
    return None


# SC076 and SC077: mixtures that drift away from their weights, or end early.


_ALIKE = 0.95  # of two that run dry, how near is together
_MUCH = 0.05  # the part of the other inputs from which it matters that it is never read


@rule("SC076", "stages")
def drifting_mixture(context: LintContext) -> Iterator[Violation]:
    """Find a mixture that goes on with the rest of its inputs."""
    for chain, source, drawn in _mixtures(context):
        if not isinstance(source, ast.SampleFromDatasets) or source.stop_on_empty:
            continue
        finite = [one for one in drawn if one.end != math.inf]
        if not finite or _cut_before(chain, drawn):
            continue
        known = [one for one in drawn if one.end is not None]
        ends = [_end_of(one) for one in known]
        if len(known) == len(drawn) and min(ends) > _ALIKE * max(ends):
            continue
        first = min((one for one in known if one.end != math.inf), default=None, key=_end_of)
        after = "" if first is None else f" after about {round(_end_of(first)):,} elements"
        rest = "and the others go on without it, with other weights"
        why = f"{chain}: input {(first or finite[0]).index} runs dry{after}, {rest}"
        yield Violation(why, "repeat every input, or stop_on_empty_dataset=True")


@rule("SC077", "stages")
def cut_mixture(context: LintContext) -> Iterator[Violation]:
    """Find a mixture that ends long before most of its inputs."""
    for chain, source, drawn in _mixtures(context):
        if not source.stop_on_empty or None in [one.end for one in drawn]:
            continue
        first = min(drawn, key=_end_of)
        others = [one for one in drawn if one is not first and one.end != math.inf]
        total = sum(one.count or 0 for one in others)
        unread = sum((one.count or 0) - one.weight * (first.end or 0) for one in others)
        if total and unread > _MUCH * total:
            left = f"{round(unread):,} of {round(total):,} elements of the others are left unread"
            why = f"{chain}: it ends when input {first.index} runs dry, and about {left}"
            yield Violation(why, f"repeat input {first.index}, or weights by the lengths")


Mixture = ast.SampleFromDatasets | ast.ChooseFromDatasets


@dataclass(frozen=True, kw_only=True)
class _Drawn:
    """An input of a mixture: how many elements it has, and its part of the choices."""

    index: int
    count: float | None
    weight: float

    @property
    def end(self) -> float | None:
        """After how many elements of the mixture it runs dry, on the average."""
        return None if self.count is None else self.count / self.weight


def _end_of(one: _Drawn) -> float:
    return math.inf if one.end is None else one.end


def _mixtures(context: LintContext) -> Iterator[tuple[Chain, Mixture, list[_Drawn]]]:
    """Yield the mixtures of several inputs that are drawn from, those of weight 0 left out."""
    for read in context.staged_reads[:1]:
        for chain in context.chains:
            source = chain.pipeline.source
            weights = _weights(source)
            if not isinstance(source, Mixture) or weights is None:
                continue
            drawn = [
                _Drawn(
                    index=index,
                    count=count_of(one, lambda leaf: context.count_of_read(leaf, read)),  # noqa: B023
                    weight=weight / sum(weights),
                )
                for index, (one, weight) in enumerate(zip(source.inputs, weights, strict=False))
                if weight > 0
            ]
            if len(drawn) > 1:
                yield chain, source, drawn


def _weights(source: Source) -> tuple[float, ...] | None:
    """Return how often each input is chosen; None where that is not known."""
    if isinstance(source, ast.SampleFromDatasets):
        return source.weights or (1.0,) * len(source.inputs)
    if isinstance(source, ast.ChooseFromDatasets):
        choices = source.choices
        in_turn = choices.source == ast.Range(stop=len(source.inputs))
        if in_turn and len(choices.stages) == 1 and repeats(choices.stages[0]):
            return (1.0,) * len(source.inputs)
    return None


def _cut_before(chain: Chain, drawn: list[_Drawn]) -> bool:
    """Whether a take ends the mixture well before an input runs dry."""
    stages = (*chain.pipeline.stages, *chain.behind)
    takes = [take.count for take in of_type(stages, ast.Take) if take.count >= 0]
    unknown = any(one.end is None for one in drawn)
    if not takes or unknown or any(map(repeats, stages)):
        return False
    size = math.prod(batch.size for batch in of_type(stages, ast.Batch))
    held = sum(shuffle.buffer for shuffle in of_type(stages, ast.Shuffle))
    return min(takes) * size + held < _ALIKE * min(map(_end_of, drawn))
