"""Resuming behind a shuffle buffer of unknown seed: what may be lost or repeated, how likely.

A buffer of B is filled before it yields the first example, and reads one for each that it
yields (tensorflow/core/kernels/data/shuffle_dataset_op.cc). So after c examples of an epoch of n it
had read min(n, c + B - 1), whatever its seed is, and held those that had not come out; what a
prefetch behind it took out besides was never yielded. Which ones those were, the seed
decides: each output is any of the examples in the buffer, with the same chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shardctl.base.phrase import refused

DEFAULT_RISK = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class UnseededBuffer:
    """Where a plan continues whose buffer's seed is not known, and what that loses and repeats.

    Of the epoch in which the pipeline stopped, a buffer of `buffer_size` had yielded `emitted`
    examples and read `num_read`; the plan reads on from the `first_read`-th, counted from 0 in the
    order in which the buffer read. That is `buffers_again` buffers back, or the start of the epoch.

    most_lost, expected_lost: how many examples that were not yielded are not read again, at
        most for any seed, and on the average over all seeds.
    least_repeated, most_repeated: how many that were yielded are read again, for any seed.
    risk: what `expected_lost` is below, None where nothing is to be repeated. It bounds the chance
        that anything is lost, too.

    Of several hosts, each with a buffer of its own, it is their sum (`of_all_hosts`).
    """

    buffer_size: int
    emitted: int
    num_read: int
    first_read: int
    buffers_again: int
    most_lost: int
    expected_lost: float
    least_repeated: int
    most_repeated: int
    risk: float | None

    @property
    def num_read_again(self) -> int:
        """Number of examples that the buffer had read and that are read again."""
        return self.num_read - self.first_read


def behind_buffer(
    *, buffer_size: int, emitted: int, num_elements: int | None, risk: float | None
) -> UnseededBuffer:
    """Return where to continue after `emitted` of `num_elements` examples, None without end.

    With a risk the last k buffers are read again, the smallest k for which fewer examples than that
    are lost on the average; without one nothing is repeated.

    >>> once = behind_buffer(buffer_size=100, emitted=5000, num_elements=9000, risk=None)
    >>> once.num_read, once.first_read, once.most_lost, once.most_repeated
    (5099, 5099, 99, 0)
    >>> again = behind_buffer(buffer_size=100, emitted=5000, num_elements=9000, risk=0.001)
    >>> again.buffers_again, again.first_read, again.least_repeated, again.expected_lost < 0.001
    (12, 3899, 1101, True)

    Raises:
        UsageError: a risk that is not above 0 or is above `buffer_size`.
    """
    if risk is not None:
        check_risk(risk, buffer_size)
    # Before the first output nothing is known to be read; then B, and one more for each further
    # output.
    num_read = emitted + buffer_size - 1 if emitted else 0
    if num_elements is not None:
        num_read = min(num_read, num_elements)
    # Without reading again, all that the buffer holds is lost.
    buffers, first, lost = 0, num_read, float(num_read - emitted)
    while risk is not None and lost >= risk:
        buffers += 1
        # It ends: at first = 0 nothing is lost, which is below every risk.
        first = max(num_read - buffers * buffer_size, 0)
        lost = expected_lost(
            first, buffer_size=buffer_size, emitted=emitted, num_elements=num_elements
        )
    held = num_read - emitted
    # Lost is what is still in the buffer and was read before `first`.
    most_lost = min(held, first)
    return UnseededBuffer(
        buffer_size=buffer_size,
        emitted=emitted,
        num_read=num_read,
        first_read=first,
        buffers_again=buffers,
        most_lost=most_lost,
        expected_lost=float(f"{lost:.6g}"),  # the same in the last digit on every machine
        least_repeated=max(emitted - first, 0),
        # If the most is lost (all of it from before `first`), all that was read behind was yielded.
        most_repeated=emitted - first + most_lost,
        risk=risk,
    )


def check_risk(risk: float, buffer_size: int) -> None:
    """Refuse a risk that is not above 0 or is above `buffer_size`.

    Raises:
        UsageError: the text says what would be certain.
    """
    if not 0 < risk <= buffer_size:
        raise refused(
            "{risk!}: the number of examples that may be lost on the average, above 0 and at "
            "most the size of the buffer, {}; for certain nothing is lost only where the epoch "
            "is read again from its start, {mode=at-most-once} with {consumed} at its start",
            buffer_size,
            risk=risk,
        )


def of_all_hosts(buffers: Sequence[UnseededBuffer], risk: float | None) -> UnseededBuffer:
    """Return what the buffers of several hosts lose and repeat together; `risk` is that of all.

    Sizes and buffers read again are the largest of a host, since these are no amounts to add.

    >>> one = behind_buffer(buffer_size=10, emitted=20, num_elements=99, risk=None)
    >>> two = of_all_hosts([one, one], None)
    >>> two.emitted, two.num_read, two.most_lost, two.buffer_size
    (40, 58, 18, 10)
    """
    summed = ("emitted", "num_read", "first_read", "most_lost", "least_repeated", "most_repeated")
    return UnseededBuffer(
        **{name: sum(getattr(buffer, name) for buffer in buffers) for name in summed},
        buffer_size=max(buffer.buffer_size for buffer in buffers),
        buffers_again=max(buffer.buffers_again for buffer in buffers),
        expected_lost=float(f"{math.fsum(buffer.expected_lost for buffer in buffers):.6g}"),
        risk=risk,
    )


def expected_lost(first: int, *, buffer_size: int, emitted: int, num_elements: int | None) -> float:
    """Return how many of the inputs before `first` are still in the buffer, on the average.

    With a full buffer an input is there after t outputs with the chance (1 - 1/B) ** t. Once the
    input has run out the buffer empties, and what it holds comes out with one chance for all.

    >>> round(expected_lost(1, buffer_size=10, emitted=5, num_elements=None), 6) == round(.9**5, 6)
    True
    >>> expected_lost(4, buffer_size=8, emitted=6, num_elements=8)
    1.0
    """
    if buffer_size == 1 or not emitted or first <= 0:
        return 0.0  # of a buffer of one nothing stays there
    steps, left = emitted, 1.0
    if num_elements is not None:
        # From output n - B on the buffer is not filled up any more.
        steps = min(emitted, max(num_elements - buffer_size, 0))
        if emitted > steps:
            # The part of a full buffer that is still there while it empties.
            left = (num_elements - emitted) / min(num_elements, buffer_size)
    # The logarithm of (1 - 1/B), exact also for a large B; powers become products.
    stay = math.log1p(-1 / buffer_size)
    # The first B are there from the start; input j of the others since output j - B + 1.
    total = min(first, buffer_size) * math.exp(stay * steps)
    if (later := first - buffer_size) > 0:
        # The sum of stay ** (steps - i) over i = 1 .. later, which is a geometric series.
        newest = math.exp(stay * (steps - later))
        total += newest * buffer_size * -math.expm1(stay * later)
    return left * total
