"""What is sure of a buffer without a seed, beside tf.data and beside arithmetic by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.saved.unseeded_buffer import behind_buffer, expected_lost
from tests.cases import FUZZ, add_cases, check_cases


@pytest.mark.parametrize("buffer_size", [1, 4, 9, 30])
def test_the_kernel_reads_a_buffer_less_one_more_than_it_hands_out(buffer_size: int) -> None:
    tf = pytest.importorskip("tensorflow")
    num_read = 0

    def inputs() -> Iterator[int]:
        nonlocal num_read
        for index in range(20):
            num_read += 1
            yield index

    dataset = tf.data.Dataset.from_generator(
        inputs, output_signature=tf.TensorSpec((), tf.int64)
    ).shuffle(buffer_size)
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    dataset = dataset.with_options(options)
    for emitted, _ in enumerate(dataset, 1):
        found = behind_buffer(buffer_size=buffer_size, emitted=emitted, num_elements=20, risk=None)
        assert found.num_read == num_read, emitted
        add_cases()


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


def test_no_seed_loses_or_repeats_more_than_is_said() -> None:
    pytest.importorskip("tensorflow")
    check_cases(stops(), check_bounds, 30)


@pytest.mark.fuzz
def test_no_seed_loses_or_repeats_more_than_is_said_fuzzed() -> None:
    pytest.importorskip("tensorflow")
    check_cases(stops(), check_bounds, FUZZ, fuzz=True)


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


def test_an_old_example_is_in_the_buffer_with_a_chance_of_exp_minus_k() -> None:
    lost = [
        expected_lost(10**7 - 10**4 * k, buffer_size=10**4, emitted=10**7, num_elements=None)
        for k in (1, 2, 3)
    ]
    assert math.isclose(lost[1] / lost[0], math.exp(-1), rel_tol=1e-3)
    assert math.isclose(lost[2] / lost[1], math.exp(-1), rel_tol=1e-3)


@pytest.mark.parametrize("risk", [0, 0.0, -1.0, math.nan, math.inf, 10.5])
def test_a_risk_is_above_0_and_at_most_the_buffer(risk: float) -> None:
    with pytest.raises(UsageError, match="above 0 and at most the size of the buffer, 10"):
        behind_buffer(buffer_size=10, emitted=50, num_elements=90, risk=risk)


def test_what_the_buffer_had_read_is_read_again_from_where_it_goes_on() -> None:
    # It has read 20 + 7, and two buffers of 8 back are 16 fewer.
    found = behind_buffer(buffer_size=8, emitted=20, num_elements=60, risk=1.5)
    assert found.buffers_again == 2
    assert (found.num_read, found.first_read, found.num_read_again) == (27, 11, 16)


def test_where_nothing_is_read_again_nothing_is_repeated() -> None:
    found = behind_buffer(buffer_size=8, emitted=20, num_elements=60, risk=None)
    assert (found.first_read, found.most_lost) == (27, 7)
    assert (found.least_repeated, found.most_repeated) == (0, 0)
