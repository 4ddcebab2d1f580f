"""Elements followed through a shuffle: they come from and go to where a replay has them."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from shardctl.tfdata import shuffle_buffer as following
from shardctl.tfdata.philox import philox_samples
from shardctl.tfdata.shuffle_buffer import (
    ShuffleReplay,
    inputs_of_places,
    outputs_of_inputs,
    shuffle_permutation,
)
from shardctl.tfdata.shuffle_seeds import KernelSeeds, shuffle_kernel_seeds
from tests.cases import FUZZ, add_cases, seed_of_test
from tests.tfdata.shuffle.shuffle_oracles import tf_order


def _follow_a_random_shuffle(seed: int) -> None:
    """Compare what is found, in pieces and windows of any size, with all steps done one by one."""
    draw = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "_PIECE", draw.choice([4, 64, 1000, 1 << 18]))
        patch.setattr(following, "_LEAST", draw.choice([1, 3, 16, 256]))
        patch.setattr(following, "_TABLE", (draw.choice([1, 2, 64]), 1 << 24))
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


@pytest.mark.long
def test_random_shuffles_are_followed_both_ways() -> None:
    for seed in range(70):
        _follow_a_random_shuffle(seed)


@pytest.mark.fuzz
def test_many_random_shuffles_are_followed_both_ways() -> None:
    for seed in range(seed_of_test(), seed_of_test() + FUZZ):
        _follow_a_random_shuffle(seed)


@functools.cache
def long_order(buffer: int) -> list[int]:
    return tf_order(40_000, buffer, 11)


@pytest.mark.parametrize("buffer", [1, 3, 4_000, 36_000, 120_000])
@pytest.mark.parametrize("count", [1, 40, 1_200])
def test_what_is_followed_is_tensorflows(
    buffer: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = long_order(buffer)
    replay = ShuffleReplay(
        num_elements=40_000, buffer_size=buffer, seeds=shuffle_kernel_seeds(11, None)
    )
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
    size, buffer = 1 << 40, 1 << 33
    replay = ShuffleReplay(num_elements=size, buffer_size=buffer, seeds=shuffle_kernel_seeds(3, 4))
    samples = philox_samples(replay.seeds.seed, replay.seeds.seed2, 0, 3000).astype(np.int64)
    moved: dict[int, int] = {}
    taken = []
    for step, sample in enumerate(samples.tolist()):
        taken.append(moved.get(step + sample, step + sample))
        moved[step + sample] = moved.get(step, step)
    assert replay.inputs_at(np.arange(3000)).tolist() == taken
    assert np.concatenate(list(replay.chunks(1000, 2000))).tolist() == taken[1000:2000]
    assert replay.outputs_of(taken[:20]).tolist() == [*range(20)]


def test_the_end_of_an_epoch_of_as_many_elements_as_there_are_numbers() -> None:
    size = 2**63 - 1
    replay = ShuffleReplay(num_elements=size, buffer_size=50, seeds=shuffle_kernel_seeds(3, 4))
    outputs = np.arange(size - 60, size)
    inputs = replay.inputs_at(outputs)
    assert (replay.outputs_of(inputs) == outputs).all()
    assert replay.pending(size - 49).tolist() == sorted(inputs[-49:].tolist())
