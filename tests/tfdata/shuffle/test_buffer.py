"""Shuffle buffers: recorded orders, TensorFlow's, and the laws of a replay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shardctl.errors import UsageError
from shardctl.tfdata import shuffle_buffer
from shardctl.tfdata.shuffle_buffer import ShuffleReplay, shuffle_permutation
from shardctl.tfdata.shuffle_seeds import KernelSeeds, shuffle_kernel_seeds
from tests.cases import FUZZ, check_cases
from tests.tfdata.shuffle.shuffle_oracles import tf_order

# range(n).shuffle(B, seed=7, reshuffle_each_iteration=False): TensorFlow 2.21.0, CPU.
RECORDED = [
    (0, 4, []),
    (1, 1, [0]),
    (10, 1, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
    (10, 2, [1, 2, 3, 0, 4, 6, 5, 8, 7, 9]),
    (10, 3, [0, 2, 3, 4, 5, 7, 6, 1, 8, 9]),
    (10, 9, [3, 2, 7, 9, 8, 4, 5, 1, 6, 0]),
    (10, 10, [7, 2, 0, 9, 8, 4, 5, 1, 6, 3]),
    (10, 99, [7, 2, 0, 9, 8, 4, 5, 1, 6, 3]),
    (7, 4, [3, 4, 0, 5, 2, 6, 1]),
]

kernels = st.builds(KernelSeeds, seed=st.integers(0, 2**32 - 1), seed2=st.integers(0, 2**32 - 1))
lengths = st.one_of(st.integers(0, 40), st.integers(0, 3000))
buffers = st.one_of(st.integers(1, 8), st.integers(1, 3500))


@st.composite
def replays(draw: st.DrawFn) -> tuple[ShuffleReplay, int]:
    """Draw a replay and the op seed that gives TensorFlow the same order."""
    op_seed = draw(st.integers(0, 2**31 - 2))
    replay = ShuffleReplay(
        num_elements=draw(lengths),
        buffer_size=draw(buffers),
        seeds=shuffle_kernel_seeds(op_seed, None),
    )
    return replay, op_seed


def _whole(replay: ShuffleReplay) -> list[int]:
    order = shuffle_permutation(replay.num_elements, replay.buffer_size, replay.seeds)
    return [int(position) for position in order]


def _agrees_with_tensorflow(replay: ShuffleReplay, op_seed: int, cut: float) -> None:
    expected = tf_order(replay.num_elements, replay.buffer_size, op_seed)
    assert _whole(replay) == expected, (replay, op_seed)
    start = int(cut * len(expected))
    rest = [position for chunk in replay.chunks(start, chunk_size=97) for position in chunk]
    assert rest == expected[start:], (replay, op_seed, start)
    assert replay.inputs_at(range(start, len(expected))).tolist() == expected[start:]
    outputs = np.argsort(np.array(expected, np.int64))[start:]
    assert replay.outputs_of(range(start, len(expected))).tolist() == outputs.tolist()
    read = set(range(replay.num_read(start)))
    assert replay.pending(start).tolist() == sorted(read - set(expected[:start]))


@pytest.mark.parametrize(("num_elements", "buffer_size", "order"), RECORDED)
def test_orders_are_those_recorded(num_elements: int, buffer_size: int, order: list[int]) -> None:
    seeds = KernelSeeds(seed=87654321, seed2=7)
    assert shuffle_permutation(num_elements, buffer_size, seeds).tolist() == order


def test_orders_are_tensorflows_for_any_length_and_buffer() -> None:
    def agree(batch: list[tuple[tuple[ShuffleReplay, int], float]]) -> int:
        for (replay, op_seed), cut in batch:
            _agrees_with_tensorflow(replay, op_seed, cut)
        return len(batch)

    batches = st.lists(st.tuples(replays(), st.floats(0, 1)), min_size=4, max_size=10)
    check_cases(batches, agree, 4)


@pytest.mark.fuzz
@settings(max_examples=FUZZ, deadline=None)
@given(replays(), st.floats(0, 1))
def test_orders_are_tensorflows_for_many_lengths_and_buffers(
    drawn: tuple[ShuffleReplay, int], cut: float
) -> None:
    _agrees_with_tensorflow(*drawn, cut)


@pytest.mark.parametrize(
    ("num_elements", "buffer_size"),
    [(140_000, 3), (200_000, 10_000), (100_001, 100_000), (100_000, 100_001)],
)
def test_long_orders_are_tensorflows(num_elements: int, buffer_size: int) -> None:
    kernel = shuffle_kernel_seeds(11, None)
    order = shuffle_permutation(num_elements, buffer_size, kernel)
    assert order.tolist() == tf_order(num_elements, buffer_size, 11)


@pytest.mark.parametrize("num_elements", [2**31 - 1, 2**31, 2**31 + 1, 2**40])
def test_orders_are_tensorflows_beyond_32_bits(num_elements: int) -> None:
    replay = ShuffleReplay(
        num_elements=num_elements, buffer_size=500, seeds=shuffle_kernel_seeds(3, None)
    )
    expected = tf_order(num_elements, 500, 3, stop=4000)
    assert np.concatenate(list(replay.chunks(0, 4000))).tolist() == expected


@pytest.mark.parametrize("buffer_size", [1, 2, 7, 20, 99])
def test_input_is_read_as_far_as_tensorflow_reads_it(buffer_size: int) -> None:
    import tensorflow as tf

    num_read = 0

    def count() -> object:
        nonlocal num_read
        for element in range(20):
            num_read += 1
            yield element

    dataset = tf.data.Dataset.from_generator(
        count, output_signature=tf.TensorSpec((), tf.int64)
    ).shuffle(buffer_size, seed=7, reshuffle_each_iteration=False)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    elements = iter(dataset.with_options(options))
    replay = ShuffleReplay(
        num_elements=20, buffer_size=buffer_size, seeds=shuffle_kernel_seeds(7, None)
    )
    emitted: set[int] = set()
    for num_emitted in range(21):
        assert replay.num_read(num_emitted) == num_read
        assert replay.pending(num_emitted).tolist() == sorted(set(range(num_read)) - emitted)
        if num_emitted < 20:
            emitted.add(int(next(elements)))


@given(lengths, buffers, kernels)
def test_an_order_is_a_permutation(n: int, buffer_size: int, seeds: KernelSeeds) -> None:
    assert sorted(shuffle_permutation(n, buffer_size, seeds).tolist()) == list(range(n))


@given(lengths, buffers, kernels, st.data())
def test_chunks_joined_are_the_whole(
    n: int, buffer_size: int, seeds: KernelSeeds, data: st.DataObject
) -> None:
    replay = ShuffleReplay(num_elements=n, buffer_size=buffer_size, seeds=seeds)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    chunk_size = data.draw(st.integers(1 + n // 50, n + 2))
    chunks = list(replay.chunks(start, stop, chunk_size=chunk_size))
    assert all(chunk.dtype == np.int64 and 0 < len(chunk) <= chunk_size for chunk in chunks)
    assert [p for chunk in chunks for p in chunk] == _whole(replay)[start:stop]


def test_the_few_that_are_followed_come_in_chunks_too() -> None:
    replay = ShuffleReplay(
        num_elements=20_000, buffer_size=150, seeds=shuffle_kernel_seeds(5, None)
    )
    assert replay.follows(19_000, 19_010)
    chunks = [chunk.tolist() for chunk in replay.chunks(19_000, 19_010, chunk_size=4)]
    expected = _whole(replay)[19_000:19_010]
    assert chunks == [expected[:4], expected[4:8], expected[8:]]


@given(st.integers(0, 500), st.integers(0, 500), kernels)
def test_a_buffer_beyond_the_input_acts_as_one_of_its_size(
    n: int, more: int, seeds: KernelSeeds
) -> None:
    whole = shuffle_permutation(n, max(n, 1), seeds)
    assert shuffle_permutation(n, max(n, 1) + more, seeds).tolist() == whole.tolist()


@given(lengths, kernels)
def test_a_buffer_of_one_keeps_the_order(n: int, seeds: KernelSeeds) -> None:
    assert shuffle_permutation(n, 1, seeds).tolist() == list(range(n))


@given(kernels, st.sampled_from([2**33, 10**12]), st.integers(1, 300), st.data())
def test_far_into_a_long_input_nothing_is_lost_or_doubled(
    seeds: KernelSeeds, n: int, buffer_size: int, data: st.DataObject
) -> None:
    replay = ShuffleReplay(num_elements=n, buffer_size=buffer_size, seeds=seeds)
    start = data.draw(st.one_of(st.integers(2**31 - 500, 2**31), st.integers(n - 900, n - 500)))
    stop = start + data.draw(st.integers(1, 500))
    outputs = np.concatenate(list(replay.chunks(start, stop))).tolist()
    left = replay.pending(stop).tolist()
    newly_read = range(replay.num_read(start), replay.num_read(stop))
    assert sorted(outputs + left) == sorted([*replay.pending(start).tolist(), *newly_read])
    assert replay.outputs_of(outputs).tolist() == list(range(start, stop))


@pytest.mark.parametrize("lookback_buffers", [0, 1, 3])
def test_what_a_late_start_does_not_look_back_to_is_followed(
    lookback_buffers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    replay = ShuffleReplay(
        num_elements=20_000, buffer_size=150, seeds=shuffle_kernel_seeds(5, None)
    )
    expected = tf_order(20_000, 150, 5)
    for size in ("_LOOKBACK_OF_SMALL", "_LOOKBACK"):
        monkeypatch.setattr(shuffle_buffer, size, lookback_buffers)
    for small in (1, 1 << 17):
        monkeypatch.setattr(shuffle_buffer, "_SMALL", small)
        for start in (1, 151, 5_000, 19_851, 19_999):
            chunks = list(replay.chunks(start))
            assert np.concatenate(chunks).tolist() == expected[start:]


def test_nothing_is_followed_from_the_start_of_an_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    def followed(*_: object) -> None:
        raise AssertionError("the buffer holds what was read, and nothing was moved before")

    replay = ShuffleReplay(num_elements=1000, buffer_size=1000, seeds=shuffle_kernel_seeds(5, None))
    expected = tf_order(1000, 1000, 5)
    monkeypatch.setattr(shuffle_buffer, "inputs_of_places", followed)
    assert np.concatenate(list(replay.chunks())).tolist() == expected


def test_all_of_a_buffer_that_cannot_be_replayed_is_refused_at_once() -> None:
    seeds = shuffle_kernel_seeds(5, None)
    replay = ShuffleReplay(num_elements=10**10, buffer_size=10**10, seeds=seeds)
    assert replay.follows(5 * 10**9, 5 * 10**9 + 100)
    with pytest.raises(UsageError, match=r"more than 134,217,728 examples are refused"):
        next(replay.chunks())


def test_positions_are_found_in_any_order_and_more_than_once() -> None:
    replay = ShuffleReplay(num_elements=10**12, buffer_size=50, seeds=shuffle_kernel_seeds(5, None))
    outputs = [10**11, 3, 10**12 - 1, 3, 0, 10**11 + 1]
    inputs = replay.inputs_at(outputs)
    assert inputs[1] == inputs[3] == tf_order(10**12, 50, 5, stop=4)[3]
    assert replay.outputs_of(inputs).tolist() == outputs
    assert replay.inputs_at([]).tolist() == replay.outputs_of([]).tolist() == []


@pytest.mark.parametrize("buffer_size", [0, -1, -3])
def test_a_buffer_that_tensorflow_refuses_is_refused(buffer_size: int) -> None:
    import tensorflow as tf

    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size"):
        tf.data.Dataset.range(5).shuffle(buffer_size)
    with pytest.raises(UsageError, match=f"buffer of {buffer_size}:"):
        shuffle_permutation(5, buffer_size, KernelSeeds(seed=1, seed2=2))


@pytest.mark.parametrize(
    "ask",
    [
        lambda replay: replay.chunks(-1),
        lambda replay: replay.chunks(0, 11),
        lambda replay: replay.chunks(6, 5),
        lambda replay: replay.chunks(chunk_size=0),
        lambda replay: replay.num_read(11),
        lambda replay: replay.pending(-1),
        lambda replay: replay.inputs_at([3, 10]),
        lambda replay: replay.outputs_of([-1, 3]),
    ],
)
def test_what_is_outside_the_epoch_is_refused(ask: Callable[[ShuffleReplay], object]) -> None:
    replay = ShuffleReplay(num_elements=10, buffer_size=3, seeds=KernelSeeds(seed=1, seed2=2))
    with pytest.raises(UsageError):
        ask(replay)


def test_a_negative_number_of_elements_is_refused() -> None:
    with pytest.raises(UsageError, match="-1 elements"):
        shuffle_permutation(-1, 3, KernelSeeds(seed=1, seed2=2))
