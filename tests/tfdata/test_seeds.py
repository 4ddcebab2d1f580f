"""Seeds of a shuffle: Philox, recorded orders, TensorFlow over any seeds, iterators and passes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.tfdata.philox import philox_samples
from shardctl.tfdata.shuffle_buffer import shuffle_permutation
from shardctl.tfdata.shuffle_seeds import (
    KernelSeeds,
    ScriptSeeds,
    SeedGenerator,
    shuffle_kernel_seeds,
)
from tests.cases import check_cases, fuzzed
from tests.tfdata.shuffle_oracles import (
    EDGE_SEEDS,
    global_seed,
    iterator_seeds,
    philox_block,
    tf_order,
)

# Random123 1.14, tests/kat_vectors, "philox4x32 10": counter words, key words, result.
PUBLISHED = """
00000000 00000000 00000000 00000000 00000000 00000000 6627e8d5 e169c58d bc57ac4c 9b00dbd8
ffffffff ffffffff ffffffff ffffffff ffffffff ffffffff 408f276d 41c83b0e a20bc7c6 6d5451fd
243f6a88 85a308d3 13198a2e 03707344 a4093822 299f31d0 d16cfe09 94fdcceb 5001e420 24126ea1
"""


@pytest.mark.parametrize("line", PUBLISHED.split("\n")[1:-1])
def test_samples_are_those_published(line: str) -> None:
    c0, c1, c2, c3, k0, k1, *result = (int(word, 16) for word in line.split())
    seed, seed2, block = (high << 32 | low for low, high in ((k0, k1), (c2, c3), (c0, c1)))
    assert list(philox_block(seed, seed2, block)) == result
    assert philox_samples(seed, seed2, 4 * block, 4).tolist() == result


words_64 = st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**64 - 1]) | st.integers(0, 2**64 - 1)


@settings(max_examples=40, deadline=None)
@given(words_64, words_64, st.integers(0, 2**64 - 100), st.integers(1, 300))
def test_samples_are_those_of_tensorflows_generator(
    seed: int, seed2: int, block: int, count: int
) -> None:
    import tensorflow as tf

    state = [word - (word >> 63 << 64) for word in (block, seed2, seed)]
    generator = tf.random.Generator.from_state(state, alg="philox")
    expected = generator.uniform_full_int([count], dtype=tf.uint32).numpy()
    assert philox_samples(seed, seed2, 4 * block, count).tolist() == expected.tolist()


@given(words_64, words_64, st.integers(0, 2**66 - 100), st.integers(0, 99))
def test_any_part_of_a_stream_is_its_blocks_cut(
    seed: int, seed2: int, start: int, count: int
) -> None:
    blocks = range(start // 4, (start + count) // 4 + 1)
    stream = [sample for block in blocks for sample in philox_block(seed, seed2, block)]
    samples = philox_samples(seed, seed2, start, count)
    assert samples.tolist() == stream[start % 4 : start % 4 + count]
    assert samples.dtype == "uint32"


def test_long_parts_are_their_short_parts_joined() -> None:
    whole = philox_samples(5, 6, 3, 200_000)
    for start in (0, 65_532, 65_533, 131_069, 199_990):
        assert philox_samples(5, 6, 3 + start, 10).tolist() == whole[start : start + 10].tolist()


# range(9).shuffle(9, seed, reshuffle_each_iteration) after set_seed: TensorFlow 2.21.0, CPU.
RECORDED = [
    # op seed, global seed, reshuffle, iterator
    (0, None, True, 0, [3, 7, 2, 8, 1, 6, 5, 4, 0]),
    (7, None, None, 0, [1, 4, 3, 2, 8, 6, 0, 7, 5]),
    (7, None, True, 5, [5, 3, 1, 0, 2, 8, 4, 6, 7]),
    (-1, None, False, 0, [3, 2, 0, 1, 6, 5, 7, 4, 8]),
    (-(2**63), None, True, 2, [6, 8, 7, 0, 4, 5, 1, 2, 3]),
    (0, 0, True, 0, [4, 2, 0, 1, 8, 3, 7, 6, 5]),
    (2**31 - 1, 0, False, 0, [0, 3, 1, 5, 2, 7, 6, 8, 4]),
    (7, 2**31 - 1, True, 5, [0, 6, 4, 8, 3, 1, 5, 7, 2]),
    (7, 42, None, 0, [7, 5, 2, 1, 8, 6, 0, 3, 4]),  # also after keras.utils.set_random_seed(42)
    (10**31, 10**31, True, 0, [5, 3, 8, 1, 2, 4, 7, 0, 6]),
    (None, 0, True, 0, [2, 3, 5, 7, 0, 1, 8, 6, 4]),
    (None, 10**31, False, 0, [1, 2, 3, 6, 5, 7, 0, 4, 8]),
]

# Four range(9).shuffle(9), built one after the other after set_seed(42): TensorFlow 2.21.0, CPU.
RECORDED_WITHOUT_OP_SEED = [
    [3, 2, 6, 0, 4, 5, 8, 7, 1],
    [1, 4, 6, 5, 7, 2, 8, 3, 0],
    [1, 3, 0, 7, 4, 6, 5, 2, 8],
    [3, 0, 5, 1, 2, 8, 6, 4, 7],
]

seeds = st.sampled_from(EDGE_SEEDS) | st.integers() | st.integers(-(2**66), 2**66)
cases = st.tuples(
    seeds,
    st.none() | seeds,
    st.sampled_from([True, False, None]),
    st.integers(0, 5) | st.integers(0, 40),
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


def test_a_shuffle_without_a_seed_takes_the_next_one_of_the_global_seed() -> None:
    for op_index, order in enumerate(RECORDED_WITHOUT_OP_SEED):
        kernel = iterator_seeds(None, 42, True, 0, op_index=op_index)
        assert shuffle_permutation(9, 9, kernel).tolist() == order


def test_a_draw_for_random_numbers_counts_as_an_op_without_a_seed() -> None:
    import tensorflow as tf

    with global_seed(42):
        tf.random.uniform([])
        order = tf_order(9, 9, None, reshuffle=True)
    assert order == RECORDED_WITHOUT_OP_SEED[1]


@fuzzed(20)
def test_orders_are_tensorflows_for_any_seeds_and_iterator(num_cases: int) -> None:
    check_cases(cases, _agrees_with_tensorflow, num_cases)


@settings(max_examples=10, deadline=None)
@given(seeds, st.integers(0, 4), st.booleans())
def test_seedless_orders_are_tensorflows_for_any_global_seed(
    set_seed: int, op_index: int, reshuffle: bool
) -> None:
    with global_seed(set_seed):
        orders = [tf_order(20, 20, None, reshuffle=reshuffle) for _ in range(op_index + 1)]
    kernel = iterator_seeds(None, set_seed, reshuffle, 0, op_index=op_index)
    assert shuffle_permutation(20, 20, kernel).tolist() == orders[-1]


def test_what_fixes_no_order_is_refused() -> None:
    with pytest.raises(UnpredictableOrderError, match="set its seed"):
        iterator_seeds(None, None, True, 0)
    with pytest.raises(UsageError, match="seed2"):
        KernelSeeds(seed=0, seed2=2**64)
    with pytest.raises(UsageError, match=f"iterator {2**62} of a shuffle: TensorFlow counts them"):
        iterator_seeds(1, None, True, 2**62)


def test_the_seeds_of_many_iterators_are_those_of_each() -> None:
    generator = SeedGenerator(KernelSeeds(seed=87654321, seed2=7), True, stage="shuffle(3)")
    for iterators in (range(0), range(1), range(5, 12), range(2**60, 2**60 + 3)):
        expected = [generator.seeds_of(one) for one in iterators]
        found = generator.seeds_of_several(iterators)
        assert found.tolist() == [[pair.seed, pair.seed2] for pair in expected]


# Seed generators: a pair for each iterator, as TensorFlow's kernel draws them.


def test_each_iterator_takes_the_next_pair_of_a_generator() -> None:
    kernel = shuffle_kernel_seeds(7, None)
    generator = SeedGenerator(kernel, None, stage="shuffle(3)")
    taken = [generator.take() for _ in range(3)]
    expected = [iterator_seeds(7, None, True, e) for e in range(3)]
    assert [each.seeds for each in taken] == expected
    assert (generator.state, generator.is_fixed) == (3, False)
    generator.make_uncertain()  # those taken before stand
    assert taken[0].seeds == expected[0]
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(3\) depend on timing"):
        _ = generator.take().seeds
    # Without reshuffling all iterators get the seeds of the kernel.
    generator = SeedGenerator(kernel, False, stage="shuffle(3)")
    generator.make_uncertain()
    assert {generator.take().seeds for _ in range(3)} == {kernel}
    assert (generator.state, generator.is_fixed) == (0, True)
    # Those of the machine are refused once they are asked for.
    unknown = SeedGenerator(None, True, stage="shuffle(3)").take()
    with pytest.raises(UnpredictableOrderError, match=r"shuffle\(3\) has no seed"):
        _ = unknown.seeds


def test_seeds_of_a_script_are_drawn_one_after_the_other() -> None:
    script = ScriptSeeds(3)
    drawn = [script.kernel(seed) for seed in (None, 5, None)]
    expected = [(None, 0), (5, 0), (None, 1)]
    assert drawn == [iterator_seeds(seed, 3, False, 0, op_index=index) for seed, index in expected]
    # A pair is taken as it is; of two zeros the kernel takes those of the machine.
    assert ScriptSeeds(3).kernel((8, 9)) == KernelSeeds(seed=8, seed2=9)
    assert ScriptSeeds(3).kernel((0, 0)) is ScriptSeeds().kernel(None) is None
