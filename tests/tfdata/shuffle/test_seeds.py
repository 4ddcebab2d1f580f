"""Seeds of a shuffle: recorded orders, and TensorFlow over any seeds and iterators."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds, shuffle_kernel_seeds
from tests.cases import FUZZ, check_cases
from tests.tfdata.shuffle.shuffle_oracles import EDGE_SEEDS, global_seed, iterator_seeds, tf_order

# range(9).shuffle(9, seed, reshuffle_each_iteration) after set_seed: TensorFlow 2.21.0, CPU.
RECORDED = [
    # op seed, global seed, reshuffle, iterator
    (0, None, True, 0, [3, 7, 2, 8, 1, 6, 5, 4, 0]),
    (7, None, None, 0, [1, 4, 3, 2, 8, 6, 0, 7, 5]),
    (7, None, True, 1, [7, 3, 5, 6, 0, 2, 8, 1, 4]),
    (7, None, True, 5, [5, 3, 1, 0, 2, 8, 4, 6, 7]),
    (-1, None, False, 0, [3, 2, 0, 1, 6, 5, 7, 4, 8]),
    (2**31 - 1, None, False, 0, [6, 0, 4, 8, 7, 2, 3, 5, 1]),
    (2**63, None, False, 0, [6, 5, 8, 2, 3, 4, 1, 0, 7]),
    (-(2**63), None, True, 2, [6, 8, 7, 0, 4, 5, 1, 2, 3]),
    (10**31, None, True, 0, [8, 6, 0, 7, 5, 3, 2, 4, 1]),
    (0, 0, True, 0, [4, 2, 0, 1, 8, 3, 7, 6, 5]),
    (2**31 - 1, 0, False, 0, [0, 3, 1, 5, 2, 7, 6, 8, 4]),
    (7, 2**31 - 1, True, 5, [0, 6, 4, 8, 3, 1, 5, 7, 2]),
    (7, -1, True, 1, [2, 5, 7, 1, 3, 4, 0, 6, 8]),
    (7, 42, None, 0, [7, 5, 2, 1, 8, 6, 0, 3, 4]),  # also after keras.utils.set_random_seed(42)
    (10**31, 10**31, True, 0, [5, 3, 8, 1, 2, 4, 7, 0, 6]),
    (None, 0, True, 0, [2, 3, 5, 7, 0, 1, 8, 6, 4]),
    (None, 2**31 - 1, True, 0, [4, 3, 0, 1, 6, 5, 2, 8, 7]),
    (None, -1, False, 0, [7, 5, 6, 0, 4, 8, 1, 3, 2]),
    (None, 10**31, False, 0, [1, 2, 3, 6, 5, 7, 0, 4, 8]),
]

# Four range(9).shuffle(9), built one after the other after set_seed(42): TensorFlow 2.21.0, CPU.
RECORDED_WITHOUT_OP_SEED = [
    [3, 2, 6, 0, 4, 5, 8, 7, 1],
    [1, 4, 6, 5, 7, 2, 8, 3, 0],
    [1, 3, 0, 7, 4, 6, 5, 2, 8],
    [3, 0, 5, 1, 2, 8, 6, 4, 7],
]

seeds = st.one_of(st.sampled_from(EDGE_SEEDS), st.integers(), st.integers(-(2**66), 2**66))
cases = st.tuples(
    seeds,
    st.one_of(st.none(), seeds),
    st.sampled_from([True, False, None]),
    st.one_of(st.integers(0, 5), st.integers(0, 40)),
)
Case = tuple[int, int | None, bool | None, int]


def _agrees_with_tensorflow(case: Case) -> None:
    op_seed, set_seed, reshuffle, iterator = case
    with global_seed(set_seed):
        expected = tf_order(20, 20, op_seed, reshuffle=reshuffle, iterator_index=iterator)
    kernel = iterator_seeds(op_seed, set_seed, reshuffle, iterator)
    assert shuffle_permutation(20, 20, kernel).tolist() == expected, case


@pytest.mark.parametrize(("op_seed", "set_seed", "reshuffle", "iterator", "order"), RECORDED)
def test_orders_are_those_recorded(
    op_seed: int | None, set_seed: int | None, reshuffle: bool | None, iterator: int, order: list
) -> None:
    kernel = iterator_seeds(op_seed, set_seed, reshuffle, iterator)
    assert shuffle_permutation(9, 9, kernel).tolist() == order


@pytest.mark.parametrize(("op_index", "order"), list(enumerate(RECORDED_WITHOUT_OP_SEED)))
def test_a_shuffle_without_a_seed_takes_the_next_one_of_the_global_seed(
    op_index: int, order: list[int]
) -> None:
    kernel = iterator_seeds(None, 42, True, 0, op_index=op_index)
    assert shuffle_permutation(9, 9, kernel).tolist() == order


def test_orders_are_tensorflows_for_any_seeds_and_iterator() -> None:
    def agree(batch: list[Case]) -> int:
        for case in batch:
            _agrees_with_tensorflow(case)
        return len(batch)

    check_cases(st.lists(cases, min_size=4, max_size=10), agree, 4)


@pytest.mark.fuzz
@settings(max_examples=FUZZ, deadline=None)
@given(cases)
def test_orders_are_tensorflows_for_many_seeds_and_iterators(case: Case) -> None:
    _agrees_with_tensorflow(case)


@settings(max_examples=16, deadline=None)
@given(seeds, st.integers(0, 4), st.booleans())
def test_seedless_orders_are_tensorflows_for_any_global_seed(
    set_seed: int, op_index: int, reshuffle: bool
) -> None:
    with global_seed(set_seed):
        orders = [tf_order(20, 20, None, reshuffle=reshuffle) for _ in range(op_index + 1)]
    kernel = iterator_seeds(None, set_seed, reshuffle, 0, op_index=op_index)
    assert shuffle_permutation(20, 20, kernel).tolist() == orders[-1]


def test_a_draw_for_random_numbers_counts_as_an_op_without_a_seed() -> None:
    import tensorflow as tf

    with global_seed(42):
        tf.random.uniform([])
        order = tf_order(9, 9, None, reshuffle=True)
    assert order == RECORDED_WITHOUT_OP_SEED[1]


@given(seeds, st.one_of(st.none(), seeds), st.integers(-5, 5))
def test_seeds_a_multiple_of_the_modulus_apart_are_one_seed(
    op_seed: int, set_seed: int | None, times: int
) -> None:
    other = op_seed + times * (2**31 - 1)
    assert shuffle_kernel_seeds(op_seed, set_seed) == shuffle_kernel_seeds(other, set_seed)


def test_no_seed_at_all_has_no_predictable_order() -> None:
    with pytest.raises(UnpredictableOrderError, match="set its seed"):
        shuffle_kernel_seeds(None, None)


def test_indices_below_0_and_seeds_beyond_64_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="op_index -1"):
        iterator_seeds(None, 7, True, 0, op_index=-1)
    with pytest.raises(UsageError, match="seed2"):
        KernelSeeds(seed=0, seed2=2**64)
