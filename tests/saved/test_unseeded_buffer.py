"""What is sure of a buffer without a seed, beside tf.data and beside arithmetic by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.saved.unseeded_buffer import behind_buffer, expected_lost
from tests.cases import add_cases, check_cases, fuzzed


@st.composite
def stops(draw: st.DrawFn) -> tuple[int, int, int, int, float]:
    """Inputs of an epoch, buffer, epochs, examples handed out, and a risk."""
    num, epochs = draw(st.integers(1, 60)), draw(st.integers(1, 3))
    buffer_size = draw(st.integers(1, 12) | st.integers(1, num + 3))
    risk = draw(st.floats(0.001, buffer_size) | st.sampled_from([0.5, float(buffer_size)]))
    return num, buffer_size, epochs, draw(st.integers(0, num * epochs)), risk


def check_bounds(drawn: tuple[int, int, int, int, float]) -> None:
    """Run a shuffle with any seed, a prefetch behind it, and count what a plan would read."""
    import tensorflow as tf

    num, buffer_size, epochs, consumed, risk = drawn
    dataset = tf.data.Dataset.range(num).shuffle(buffer_size).repeat(epochs)
    if consumed % 2:  # takes more out of the buffer than the loop gets
        dataset = dataset.prefetch(7)
    whole: list[int] = []
    for element in dataset:
        if len(whole) == consumed:
            break
        whole.append(int(element))
    epoch = min(consumed // num, epochs - 1)
    handed = set(whole[epoch * num :])
    for limit in (None, risk):
        found = behind_buffer(
            buffer_size=buffer_size, emitted=len(handed), num_elements=num, risk=limit
        )
        again = set(range(found.first_read, num))
        lost, repeated = num - len(handed | again), len(handed & again)
        assert lost <= found.most_lost <= buffer_size - 1
        assert found.least_repeated <= repeated <= found.most_repeated
        if limit is None:
            assert (lost, repeated) == (found.most_lost, 0)


@fuzzed(30)
def test_no_seed_loses_or_repeats_more_than_is_said(num_cases: int) -> None:
    pytest.importorskip("tensorflow")
    check_cases(stops(), check_bounds, num_cases)


def epochs_of_any_seed(num: int, buffer_size: int, count: int) -> Any:
    """Return when each input comes out in so many epochs, int64[count, num]: each has its seed."""
    import numpy as np
    import tensorflow as tf

    dataset = tf.data.Dataset.range(num).shuffle(buffer_size).repeat(count).batch(num)
    return np.argsort(np.stack([batch.numpy() for batch in dataset]), axis=1)


@pytest.mark.parametrize(
    ("num", "buffer_size"), [(40, 5), (60, 8), (30, 2), (25, 24), (20, 20), (12, 30), (64, 16)]
)
def test_the_mean_number_lost_over_many_seeds_is_the_expected_one(
    num: int, buffer_size: int
) -> None:
    pytest.importorskip("tensorflow")
    count = 2000
    came_out = epochs_of_any_seed(num, buffer_size, count)
    for emitted in {1, buffer_size // 2 + 1, num // 2, num - buffer_size, num - 3, num - 1}:
        if not 1 <= emitted <= num:
            continue
        for risk in (2.0, 0.5, 0.1):
            if risk > buffer_size:
                continue
            found = behind_buffer(
                buffer_size=buffer_size, emitted=emitted, num_elements=num, risk=risk
            )
            lost = (came_out[:, : found.first_read] >= emitted).sum(axis=1)
            assert found.expected_lost < risk
            assert lost.max(initial=0) <= found.most_lost
            # Five standard errors: one of these in a million would fail by chance.
            near = 5 * lost.std() / math.sqrt(count) + 1e-3
            assert abs(lost.mean() - found.expected_lost) < near, (emitted, risk, lost.mean())
    add_cases(count)


def by_hand(first: int, buffer_size: int, emitted: int, num: int) -> Fraction:
    """Return the expected number as the sum of chances, each a product over the outputs."""
    total = Fraction(0)
    for index in range(first):
        chance = Fraction(1)
        for step in range(max(0, index - buffer_size + 1), emitted):
            chance *= 1 - Fraction(1, min(buffer_size, num - step))
        total += chance
    return total


def test_the_closed_form_is_the_sum_over_all_inputs() -> None:
    def check(drawn: tuple[int, int, int, int, float]) -> None:
        num, buffer_size, _, consumed, risk = drawn
        emitted = consumed % (num + 1)
        for endless in (False, True):
            size = None if endless else num
            found = behind_buffer(
                buffer_size=buffer_size, emitted=emitted, num_elements=size, risk=risk
            )
            steps = 10**6 if endless else num
            for first in {found.first_read, found.num_read, found.num_read // 2}:
                exact = float(by_hand(first, buffer_size, emitted, steps)) if emitted else 0.0
                closed = expected_lost(
                    first, buffer_size=buffer_size, emitted=emitted, num_elements=size
                )
                assert math.isclose(closed, exact, rel_tol=1e-9, abs_tol=1e-12)
            # One buffer less would not do.
            if found.buffers_again and emitted:
                before = max(found.num_read - (found.buffers_again - 1) * buffer_size, 0)
                assert float(by_hand(before, buffer_size, emitted, steps)) >= risk * (1 - 1e-9)

    check_cases(stops(), check, 40)


@pytest.mark.parametrize("risk", [0, 0.0, -1.0, math.nan, math.inf, 10.5])
def test_a_risk_is_above_0_and_at_most_the_buffer(risk: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most the size of the buffer, 10"):
        behind_buffer(buffer_size=10, emitted=50, num_elements=90, risk=risk)
