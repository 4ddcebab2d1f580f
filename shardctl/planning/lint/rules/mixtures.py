"""SC076 and SC077: mixtures that drift away from their weights, or end early."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from shardctl.core.stages import stages as ast
from shardctl.core.stages.part import Source
from shardctl.planning.lint.chains import Chain, count_of, of_type, repeats
from shardctl.planning.lint.context import LintContext
from shardctl.planning.lint.rule import Violation, rule

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
        yield Violation(
            f"{chain}: input {(first or finite[0]).index} runs dry{after}, and the others go on "
            "without it, with other weights",
            "repeat every input, or stop_on_empty_dataset=True",
        )


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
            yield Violation(
                f"{chain}: it ends when input {first.index} runs dry, and about "
                f"{round(unread):,} of {round(total):,} elements of the others are left unread",
                f"repeat input {first.index}, or weights by the lengths",
            )


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
