"""What one process of Grain reads, beside its MapDataset read step by step."""

from __future__ import annotations

import random
from functools import cache

import numpy as np
import pytest

from shardctl.loaders.grain import NUM_SEEDS, Stream
from shardctl.loaders.grain_shuffle import shuffled
from tests.cases import counted


@cache
def whole(seed: int, size: int) -> list[int]:
    found: list[int] = shuffled(np.arange(size), np.array([seed]), size).tolist()
    return found


def one_shuffled(index: int, seed: int, size: int) -> int:
    return whole(seed, size)[index]


def read_by_hand(stream: Stream) -> list[int]:
    """As MapDataset does: the slice asks the windows, these the shuffle, and that the source."""
    found = []
    for place in range(stream.size):
        number = stream.start + place * stream.stride
        if stream.window is not None:
            window, within = divmod(number, stream.window)
            within = one_shuffled(within, stream.window_seed + window, stream.window)
            number = window * stream.window + within
        epoch, within = divmod(number, stream.share)
        if stream.seed is not None:
            within = one_shuffled(within, (stream.seed + epoch) % NUM_SEEDS, stream.share)
        found.append(stream.first + within)
    return found


def random_stream(chance: random.Random) -> Stream:
    stride = chance.choice([1, 1, 2, 3])
    return Stream(
        size=chance.randrange(0, 40),
        share=chance.randrange(1, 20),
        first=chance.choice([0, 5]),
        seed=chance.choice([None, 0, NUM_SEEDS - 1, chance.randrange(NUM_SEEDS)]),
        window=chance.choice([None, None, 1, 4, 9]),
        window_seed=chance.randrange(1000),
        start=chance.randrange(stride),
        stride=stride,
    )


@pytest.mark.long
def test_every_place_is_read_as_step_by_step_and_found_again() -> None:
    chance = random.Random(4)
    for stream in counted(random_stream(chance) for _ in range(30)):
        read = read_by_hand(stream)
        assert stream.indices_at(np.arange(stream.size)).tolist() == read
        query, places = stream.places_of(np.arange(stream.first + stream.share + 3))
        assert sorted(zip(places.tolist(), query.tolist(), strict=True)) == list(enumerate(read))


def test_the_seed_of_an_epoch_goes_round_at_2_to_the_32() -> None:
    last = Stream(size=10, share=5, seed=NUM_SEEDS - 1)
    first = Stream(size=5, share=5, seed=0)
    second_epoch = last.indices_at(np.arange(5, 10)).tolist()
    assert second_epoch == first.indices_at(np.arange(5)).tolist()


def test_epochs_are_those_of_places() -> None:
    stream = Stream(size=6, share=4, seed=1, start=1, stride=2)
    assert stream.epochs_at(np.arange(6)).tolist() == [0, 0, 1, 1, 2, 2]
    assert stream.size_of_first_epoch == 2


def test_a_process_that_reads_nothing_has_no_places() -> None:
    query, places = Stream(size=0, share=0, seed=1).places_of(np.arange(3))
    assert (query.tolist(), places.tolist()) == ([], [])


def test_who_mixes_and_how_well() -> None:
    assert not Stream(size=3, share=3).shuffles
    assert Stream(size=3, share=3, window=2).shuffles
    assert not Stream(size=3, share=3, window=2).is_uniform
    assert Stream(size=3, share=3, seed=2).is_uniform
    assert not Stream(size=65537, share=65537, seed=2).is_uniform
