"""Shuffle buffers: recorded orders, TensorFlow's, and the laws of a replay and of following."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.order.epoch_reading import EpochReading
from shardctl.tfdata import shuffle_buffer
from shardctl.tfdata.interleave import Interleave
from shardctl.tfdata.philox import philox_samples
from shardctl.tfdata.shuffle_buffer import (
    ShuffleReplay,
    inputs_of_places,
    outputs_of_inputs,
    permutations,
    shuffle_permutation,
    shuffled_codes,
    shuffled_in_turn,
)
from shardctl.tfdata.shuffle_seeds import KernelSeeds, shuffle_kernel_seeds
from tests.cases import FUZZ, add_cases, check_cases, fuzzed, seed_of_test
from tests.golden import assert_evaluated
from tests.tfdata.shuffle_oracles import tf_order

# range(n).shuffle(B, seed=7, reshuffle_each_iteration=False): TensorFlow 2.21.0, CPU.
RECORDED = {
    (0, 4): [],
    (1, 1): [0],
    (10, 1): [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    (10, 2): [1, 2, 3, 0, 4, 6, 5, 8, 7, 9],
    (10, 3): [0, 2, 3, 4, 5, 7, 6, 1, 8, 9],
    (10, 9): [3, 2, 7, 9, 8, 4, 5, 1, 6, 0],
    (10, 10): [7, 2, 0, 9, 8, 4, 5, 1, 6, 3],
    (10, 99): [7, 2, 0, 9, 8, 4, 5, 1, 6, 3],
    (7, 4): [3, 4, 0, 5, 2, 6, 1],
}

kernels = st.builds(KernelSeeds, seed=st.integers(0, 2**32 - 1), seed2=st.integers(0, 2**32 - 1))
lengths = st.one_of(st.integers(0, 40), st.integers(0, 3000))
buffers = st.one_of(st.integers(1, 8), st.integers(1, 3500))
# A length, a buffer, an op seed, and where a part begins.
cases = st.tuples(lengths, buffers, st.integers(0, 2**31 - 2), st.floats(0, 1))


def replay_of(num_elements: int, buffer_size: int, op_seed: int) -> ShuffleReplay:
    seeds = shuffle_kernel_seeds(op_seed, None)
    return ShuffleReplay(num_elements=num_elements, buffer_size=buffer_size, seeds=seeds)


def _agrees_with_tensorflow(case: tuple[int, int, int, float]) -> None:
    num_elements, buffer_size, op_seed, cut = case
    expected = tf_order(num_elements, buffer_size, op_seed)
    replay = replay_of(num_elements, buffer_size, op_seed)
    assert shuffle_permutation(num_elements, buffer_size, replay.seeds).tolist() == expected, case
    start = int(cut * len(expected))
    rest = [position for chunk in replay.chunks(start, chunk_size=97) for position in chunk]
    assert rest == expected[start:], case
    assert replay.inputs_at(range(start, len(expected))).tolist() == expected[start:]
    outputs = np.argsort(np.array(expected, np.int64))[start:]
    assert replay.outputs_of(range(start, len(expected))).tolist() == outputs.tolist()
    read = set(range(replay.num_read(start)))
    assert replay.pending(start).tolist() == sorted(read - set(expected[:start]))


@pytest.mark.parametrize(("sizes", "order"), RECORDED.items())
def test_orders_are_those_recorded(sizes: tuple[int, int], order: list[int]) -> None:
    assert shuffle_permutation(*sizes, KernelSeeds(seed=87654321, seed2=7)).tolist() == order


@fuzzed(20)
def test_orders_are_tensorflows_for_any_length_and_buffer(num_cases: int) -> None:
    check_cases(cases, _agrees_with_tensorflow, num_cases)


@pytest.mark.parametrize(
    ("num_elements", "buffer_size"), [(140_000, 3), (50_001, 50_000), (50_000, 50_001)]
)
def test_long_orders_are_tensorflows(num_elements: int, buffer_size: int) -> None:
    order = shuffle_permutation(num_elements, buffer_size, shuffle_kernel_seeds(11, None))
    assert order.tolist() == tf_order(num_elements, buffer_size, 11)


@pytest.mark.parametrize("num_elements", [2**31 - 1, 2**31, 2**40])
def test_orders_are_tensorflows_beyond_32_bits(num_elements: int) -> None:
    replay = replay_of(num_elements, 500, 3)
    expected = tf_order(num_elements, 500, 3, stop=4000)
    assert np.concatenate(list(replay.chunks(0, 4000))).tolist() == expected


@pytest.mark.parametrize("buffer_size", [1, 7, 20, 99])
def test_input_is_read_as_far_as_tensorflow_reads_it(buffer_size: int) -> None:
    import tensorflow as tf

    read: list[int] = []

    def count() -> object:
        for element in range(20):
            read.append(element)
            yield element

    signature = tf.TensorSpec((), tf.int64)
    dataset = tf.data.Dataset.from_generator(count, output_signature=signature)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    shuffled = dataset.shuffle(buffer_size, seed=7, reshuffle_each_iteration=False)
    elements = iter(shuffled.with_options(options))
    replay = replay_of(20, buffer_size, 7)
    emitted: set[int] = set()
    for num_emitted in range(21):
        assert replay.num_read(num_emitted) == len(read)
        assert replay.pending(num_emitted).tolist() == sorted(set(read) - emitted)
        if num_emitted < 20:
            emitted.add(int(next(elements)))


@given(lengths, buffers, kernels, st.data())
def test_chunks_joined_are_the_whole_permutation(
    n: int, buffer_size: int, seeds: KernelSeeds, data: st.DataObject
) -> None:
    whole = shuffle_permutation(n, buffer_size, seeds).tolist()
    assert sorted(whole) == list(range(n))
    replay = ShuffleReplay(num_elements=n, buffer_size=buffer_size, seeds=seeds)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    chunk_size = data.draw(st.integers(1 + n // 50, n + 2))
    chunks = list(replay.chunks(start, stop, chunk_size=chunk_size))
    assert all(chunk.dtype == np.int64 and 0 < len(chunk) <= chunk_size for chunk in chunks)
    assert [p for chunk in chunks for p in chunk] == whole[start:stop]


@given(kernels, st.sampled_from([2**33, 10**12]), st.integers(1, 300), st.data())
def test_far_into_a_long_input_nothing_is_lost_or_doubled(
    seeds: KernelSeeds, n: int, buffer_size: int, data: st.DataObject
) -> None:
    replay = ShuffleReplay(num_elements=n, buffer_size=buffer_size, seeds=seeds)
    start = data.draw(st.one_of(st.integers(2**31 - 500, 2**31), st.integers(n - 900, n - 500)))
    stop = start + data.draw(st.integers(1, 500))
    outputs = np.concatenate(list(replay.chunks(start, stop))).tolist()
    newly_read = range(replay.num_read(start), replay.num_read(stop))
    before = [*replay.pending(start).tolist(), *newly_read]
    assert sorted(outputs + replay.pending(stop).tolist()) == sorted(before)
    assert replay.outputs_of(outputs).tolist() == list(range(start, stop))


@pytest.mark.parametrize("lookback_buffers", [0, 1, 3])
def test_what_a_late_start_does_not_look_back_to_is_followed(
    lookback_buffers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = replay_of(20_000, 150, 5)
    expected = shuffle_permutation(20_000, 150, replay.seeds).tolist()
    for size in ("_LOOKBACK_OF_SMALL", "_LOOKBACK"):
        monkeypatch.setattr(shuffle_buffer, size, lookback_buffers)
    for small in (1, 1 << 17):
        monkeypatch.setattr(shuffle_buffer, "_SMALL", small)
        for start in (1, 151, 5_000, 19_851, 19_999):
            assert np.concatenate(list(replay.chunks(start))).tolist() == expected[start:]


def test_positions_are_found_in_any_order_and_more_than_once() -> None:
    # As far as a full buffer is read for each one that is handed out.
    assert [replay_of(8, 3, 7).num_read(n) for n in range(9)] == [0, 3, 4, 5, 6, 7, 8, 8, 8]
    assert replay_of(8, 3, 7).pending(4).tolist() == [1, 5]
    replay = replay_of(10**12, 50, 5)
    outputs = [10**11, 3, 10**12 - 1, 3, 0, 10**11 + 1]
    inputs = replay.inputs_at(outputs)
    assert inputs[1] == inputs[3] == np.concatenate([*replay.chunks(0, 4)])[3]
    assert replay.outputs_of(inputs).tolist() == outputs
    assert replay.inputs_at([]).tolist() == replay.outputs_of([]).tolist() == []


def test_a_buffer_that_tensorflow_refuses_is_refused() -> None:
    import tensorflow as tf

    for buffer_size in (0, -1, -3):
        with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size"):
            tf.data.Dataset.range(5).shuffle(buffer_size)
        with pytest.raises(UsageError, match=f"buffer of {buffer_size}:"):
            replay_of(5, buffer_size, 1)


def test_what_is_outside_the_epoch_is_refused() -> None:
    assert_evaluated(globals(), "outside")
    assert replay_of(10**10, 10**10, 5).follows(5 * 10**9, 5 * 10**9 + 100)


# Elements followed through a shuffle: they come from and go to where a replay has them.


def _follow_a_random_shuffle(seed: int) -> None:
    """Compare what is found, in pieces and windows of any size, with all steps done one by one."""
    draw = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        sizes = draw.choice([1, 3, 16, 256]), draw.choice([4, 64, 1000, 1 << 18])
        patch.setattr(shuffle_buffer, "_WINDOW_SIZES", sizes)
        patch.setattr(shuffle_buffer, "_AT_ONCE", draw.choice([1, 40, 1 << 18]))
        patch.setattr(shuffle_buffer, "_TABLE", (draw.choice([1, 2, 64]), 1 << 24))
        size = draw.randint(1, draw.choice([5, 60, 700]))
        buffer = draw.randint(1, draw.choice([3, size, size + 50]))
        kernel = KernelSeeds(seed=draw.getrandbits(32), seed2=draw.getrandbits(32))
        replay = ShuffleReplay(num_elements=size, buffer_size=buffer, seeds=kernel)
        order = shuffle_permutation(size, buffer, kernel)
        count = draw.choice([0, 1, 2, 10, size])
        wanted = np.array([draw.randrange(size) for _ in range(count)], np.int64)
        places = replay.places(np.arange(size // 4 + 1))[:size]
        said = f"seed {seed}: {replay}, {wanted.tolist()}"
        assert (inputs_of_places(replay, places[wanted], wanted) == order[wanted]).all(), said
        assert (outputs_of_inputs(replay, wanted) == np.argsort(order)[wanted]).all(), said
        step = draw.randint(0, size)
        contents = np.arange(size)
        for earlier in range(step):
            contents[places[earlier]] = contents[earlier]
        later = np.concatenate((wanted[wanted >= step], np.arange(step, size)[:5]))
        before = np.full(len(later), step)
        assert (inputs_of_places(replay, later, before) == contents[later]).all(), said
    add_cases()


@pytest.mark.parametrize("seeds", [range(70), pytest.param(None, marks=pytest.mark.fuzz)])
def test_random_shuffles_are_followed_both_ways(seeds: range | None) -> None:
    for seed in seeds or range(seed_of_test(), seed_of_test() + FUZZ):
        _follow_a_random_shuffle(seed)


@pytest.mark.parametrize("buffer", [1, 3, 4_000, 120_000])
@pytest.mark.parametrize("count", [1, 1_200])
def test_what_is_followed_is_what_is_replayed(
    buffer: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = replay_of(40_000, buffer, 11)
    expected = shuffle_permutation(40_000, buffer, replay.seeds).tolist()
    draw = random.Random(count)
    start = draw.randrange(40_000 - count)
    spread = [draw.randrange(40_000) for _ in range(count)]
    for always in (True, False):
        monkeypatch.setattr(
            ShuffleReplay, "_follows", lambda _, first, *__, way=always: np.full(len(first), way)
        )
        for outputs in (spread, [*range(start, start + count)]):
            inputs = [expected[output] for output in outputs]
            assert replay.inputs_at(outputs).tolist() == inputs
            assert replay.outputs_of(inputs).tolist() == outputs
        found = np.concatenate(list(replay.chunks(start, start + count, chunk_size=17)))
        assert found.tolist() == expected[start : start + count]


def test_a_buffer_of_more_than_32_bits_is_followed_without_one() -> None:
    replay = replay_of(1 << 40, 1 << 33, 3)
    samples = philox_samples(replay.seeds.seed, replay.seeds.seed2, 0, 3000).astype(np.int64)
    moved: dict[int, int] = {}
    taken = []
    for step, sample in enumerate(samples.tolist()):
        taken.append(moved.get(step + sample, step + sample))
        moved[step + sample] = moved.get(step, step)
    assert replay.inputs_at(np.arange(3000)).tolist() == taken
    assert np.concatenate(list(replay.chunks(1000, 2000))).tolist() == taken[1000:2000]
    assert replay.outputs_of(taken[:20]).tolist() == [*range(20)]
    # The end of an epoch of as many elements as there are numbers.
    size = 2**63 - 1
    replay = replay_of(size, 50, 3)
    outputs = np.arange(size - 60, size)
    inputs = replay.inputs_at(outputs)
    assert (replay.outputs_of(inputs) == outputs).all()
    assert replay.pending(size - 49).tolist() == sorted(inputs[-49:].tolist())


# Many shuffles at once, and a buffer over a reading.


@pytest.mark.parametrize("count", [0, 1, 31, 32, 70])
@pytest.mark.parametrize("num_elements", [1, 2, 3, 4, 17, 301])
def test_each_column_is_the_shuffle_of_its_seeds(
    num_elements: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = np.random.default_rng(num_elements).integers(0, 2**64, (count, 2), np.uint64)
    drawn[::3] &= np.uint64(0xFFFFFFFF)  # as TensorFlow draws them
    pairs = [KernelSeeds(seed=seed, seed2=seed2) for seed, seed2 in drawn.tolist()]
    expected = [shuffle_permutation(num_elements, num_elements, one).tolist() for one in pairs]
    assert permutations(num_elements, drawn).T.tolist() == expected
    for room in (shuffle_buffer.ROOM, 180):
        monkeypatch.setattr(shuffle_buffer, "ROOM", room)
        in_turn = shuffled_in_turn(num_elements, drawn)
        assert in_turn.reshape(count, num_elements).tolist() == expected


# Codes of old inputs are looked up one by one; with a reach of 0 nearly all are old. Over so many
# examples the window slides several times.
@pytest.mark.parametrize("reach", [0, 4])
@pytest.mark.parametrize("buffer", [1, 3, 5_000, 400_000])
def test_what_comes_out_is_the_codes_at_the_shuffled_inputs(
    buffer: int, reach: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shuffle_buffer, "_REACH", reach)
    interleave = Interleave([50_000] * 6, cycle_length=3, block_length=2)
    reads = EpochReading(interleave=interleave, row_codes=1000 * np.arange(6))
    size = reads.num_examples
    replay = replay_of(size, buffer, 3)
    expected = reads.codes(0, size)[shuffle_permutation(size, buffer, replay.seeds)]
    for start, stop in ((0, size), (size - 100_000, size), (70_000, 70_003)):
        found = np.concatenate(list(shuffled_codes(reads, replay, start, stop)))
        np.testing.assert_array_equal(found, expected[start:stop])
    assert list(shuffled_codes(reads, replay, 5, 5)) == []
