"""What the score of an order is worth, in words.

Two verdicts are facts and need no score: an order that nothing shuffles, and one that comes out of
a buffer as large as its epoch, which is a uniform permutation however it looks. The others are
thresholds, put where measurements put them:

FAIR, GOOD: a dataset read file after file through a buffer of a quarter of it scores 0.44 to 0.54,
    through a buffer of half of it 0.76 to 0.81, for 2,000 to 1,281,167 examples in 1 to 1,024 files
    and batches of 32 to 1,024. An example then moves by 16% and 26% of the dataset on the average,
    and by 33% in a uniform permutation. Practice on ImageNet (1,024 files, cycle 16, batches of
    256): files shuffled alone score 0.07 (weak), with a buffer of 1,000 0.45 (weak), of 10,000 0.59
    (fair), of 60,000 0.81 (good); a buffer of 10,000 without a file shuffle 0.07 (weak).
SPREADS: of 298,000 uniform permutations (5 to 60,000 examples in 1 to 64 files, batches of 2 to
    256) 99.9% score above the expected score less 2.4 to 5.0 spreads, depending on the size.

One score equal to those of uniform permutations is no proof: a buffer of two thirds of 1,500
examples scores 0.962 in the mean of 60 seeds, where these score 0.984, give or take 0.008. So such
an order is close to uniform, and "as good as uniform" is said of the second fact alone.

Of few examples a uniform permutation may score as low as an order that is fair. Where it may, an
order that scores so can be either, and the verdict is that it cannot be told.
"""

from __future__ import annotations

from typing import Literal

from shardctl.core.order.order import Order
from shardctl.planning.quality.score import Score

Verdict = Literal[
    "no shuffle", "weak", "fair", "good", "close to uniform", "as good as uniform", "cannot tell"
]

FAIR = 0.5
GOOD = 0.8
SPREADS = 5.0

# Verdicts of orders that may look like a uniform permutation.
MIXED: frozenset[Verdict] = frozenset(
    {"good", "close to uniform", "as good as uniform", "cannot tell"}
)

_MEANINGS: dict[Verdict, str] = {
    "no shuffle": "nothing shuffles; examples come as the files are interleaved",
    "weak": "mixed less than by a buffer of a quarter of the dataset",
    "fair": "mixed as by a buffer of a quarter to half of the dataset",
    "good": "mixed as by a buffer of half of the dataset or more",
    "close to uniform": "the score is within 5 spreads of a uniform one's; it is no proof of one",
    "as good as uniform": "it is a uniform permutation, whatever its score is",
    "cannot tell": "so few examples score as much by chance, whatever shuffles them",
}


def verdict_of(score: Score, order: Order) -> Verdict:
    """Return what the score of an order is worth.

    An order whose score has a sampling error is judged by the score as it is measured.
    """
    if not order.shuffles:
        return "no shuffle"
    if order.is_uniform:
        return "as good as uniform"
    floor = lowest_uniform(score)
    if score.value >= floor:
        return "close to uniform" if floor >= GOOD else "cannot tell"
    return "good" if score.value >= GOOD else "fair" if score.value >= FAIR else "weak"


def lowest_uniform(score: Score) -> float:
    """Return the score that 99.9% of uniform permutations reach, measured the same way."""
    return max(0.0, score.expected - SPREADS * score.spread)


def meaning(verdict: Verdict, loader: str = "tfds") -> str:
    """Return what a verdict says of the order of a loader, as a clause."""
    if verdict == "no shuffle" and loader != "tfds":
        return "nothing shuffles; examples come in the order of storage"
    return _MEANINGS[verdict]


def even_from_afar(verdict: Verdict) -> str:
    """Return what is said of a picture that looks like a uniform permutation of an order."""
    said = "not shuffled" if verdict == "no shuffle" else verdict
    return (
        f"It looks even from afar, but near by this order is {said}: that is finer than what is "
        "drawn, and in the score."
    )
