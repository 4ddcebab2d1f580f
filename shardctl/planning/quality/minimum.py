"""Is an order as good as the least that is asked for, and what is the cheapest cure?"""

from __future__ import annotations

from typing import get_args

from shardctl.core.phrase import phrase
from shardctl.core.text import either
from shardctl.errors import UsageError
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import Score
from shardctl.planning.quality.verdict import FAIR, GOOD, Verdict, lowest_uniform
from shardctl.planning.quality.what_if import Alternative, buffer_for_target, with_buffer

# The verdicts that a minimum may name, from the worst; `uniform` is what a score can show.
_RANKS: tuple[Verdict, ...] = get_args(Verdict)[:-1]
_SHORT: dict[str, Verdict] = {"uniform": "close to uniform"}
MINIMUM_WORDS = (*_RANKS[1:-2], *_SHORT)


def minimum_score(value: object) -> float | Verdict:
    """Return the least that a score is to be: a number, or the verdict that a word names.

    >>> minimum_score("0.8"), minimum_score("good"), minimum_score("uniform")
    (0.8, 'good', 'close to uniform')

    Raises:
        UsageError: neither a number from 0 to 1 nor such a word.
    """
    word = str(value).strip().lower()
    word = _SHORT.get(word, word)
    for verdict in _RANKS[1:]:
        if verdict == word:
            return verdict
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:  # also refuses nan
        raise UsageError(
            phrase(
                "{min_score!}: a score from 0 to 1, or {}, is needed",
                either(MINIMUM_WORDS),
                min_score=value,
            )
        )
    return number


def reaches(score: Score, verdict: Verdict, minimum: float | Verdict) -> bool:
    """Return whether a score is enough: for a number the score itself, for a word its verdict.

    One of which nothing can be told reaches no word.
    """
    if not isinstance(minimum, str):
        return score.value >= minimum
    return verdict in _RANKS and _RANKS.index(verdict) >= _RANKS.index(minimum)


def shortfall(plan: Quality, minimum: float | Verdict) -> str | None:
    """Return why an order is not as good as the least that is asked for, and the cheapest cure.

    None where it is good enough. A change that needs no memory is cheaper than a buffer, and a
    small buffer than a large one. Writing the dataset anew is no cure.
    """
    if reaches(plan.score, plan.verdict, minimum):
        return None
    least = lowest_uniform(plan.score)
    said = f"score {plan.score.value:.4f} ({plan.verdict})"
    if not isinstance(minimum, str):
        said += f" is below {minimum:g}"
        if minimum > plan.score.expected:
            return (
                f"{said}, and so is a uniform permutation, which scores {plan.score.expected:.4f}"
            )
    elif plan.verdict == "cannot tell":
        said += f": a uniform permutation of so few examples may score {least:.4f}"
    else:
        said += f" is not {minimum}"
    if plan.order.settings.loader != "tfds":
        return said
    cures = [choice for choice in plan.alternatives[1:] if _is_cure(choice, minimum)]
    cheapest = min(cures, key=lambda choice: choice.buffer or 0, default=None)
    table = None if cheapest is None else f"{cheapest.change} (score {cheapest.score.value:.4f})"
    if cheapest is not None and cheapest.buffer is None:
        return f"{said}; cheapest cure: {table}"
    if plan.order.settings.stages is not None:
        return phrase(
            "{}; change the shuffles of {stages}",
            said if table is None else f"{said}; cheapest cure: {table}",
        )
    target = {"fair": FAIR, "good": GOOD}.get(str(minimum), minimum)
    if not isinstance(target, str) and plan.verdict != "cannot tell":
        smallest = buffer_for_target(plan.question, target)
        is_less = cheapest is None or (smallest.buffer or 0) < (cheapest.buffer or 0)
        if smallest.buffer and is_less and _is_enough(plan, smallest.buffer, minimum):
            return phrase(
                "{}; cheapest cure: {buffer=} (score {})",
                said,
                f"{smallest.score:.4f}",
                buffer=smallest.buffer,
            )
    if table is not None:
        return f"{said}; cheapest cure: {table}"
    return phrase(
        "{}; cheapest cure: {buffer=}, the whole epoch, which is uniform",
        said,
        buffer=plan.num_examples,
    )


def _is_cure(choice: Alternative, minimum: float | Verdict) -> bool:
    return not choice.rewrites and reaches(choice.score, choice.verdict, minimum)


def _is_enough(plan: Quality, buffer: int, minimum: float | Verdict) -> bool:
    """Return whether a buffer cures, which a score alone does not say of few examples."""
    measured = plan.question.measured(with_buffer(plan.question.settings, buffer))
    return reaches(measured.score, measured.verdict, minimum)
