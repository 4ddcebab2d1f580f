"""Grain: its shuffle of an index, a process's stream, its workers' batches, and what it refuses."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.loaders.grain import grain_sequence
from shardctl.loaders.grain_rows import NUM_SEEDS
from shardctl.loaders.grain_shuffle import (
    ROUNDS,
    block_bits,
    is_permutation,
    round_keys,
    shuffled,
    unshuffled,
)
from shardctl.loaders.loader_sequence import LoaderConfig
from tests.cases import add_cases, counted
from tests.loaders.agreement import check_agreement
from tests.loaders.recorded import FILES, config_of, loader_of, read

RECORDED = [file for file in FILES if loader_of(file) == "grain"]


def asked(num_examples: int, version: str = "0.2.18", **settings: Any) -> LoaderConfig:
    return config_of("grain", {"num_examples": num_examples, **settings}, version)


@pytest.mark.parametrize("file", RECORDED)
def test_an_index_becomes_the_example_that_the_real_shuffle_returned(file: str) -> None:
    for one in counted(read(file)["shuffles"]):
        indices, seeds = np.array(one["indices"]), np.array([one["seed"]])
        examples, size = np.array(one["examples"]), one["num_examples"]
        assert shuffled(indices, seeds, size).tolist() == one["examples"]
        assert shuffled(indices, np.repeat(seeds, len(indices)), size).tolist() == one["examples"]
        query, found = unshuffled(examples, seeds, size)
        for number, index in enumerate(one["indices"]):
            assert index in found[query == number]
        assert shuffled(found, seeds, size).tolist() == examples[query].tolist()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100, 4095, 4096, 4097, 65535, 65536, 65538, 70000])
def test_all_indices_become_all_examples_and_back(size: int) -> None:
    seeds = np.array([20261122])
    there = shuffled(np.arange(size), seeds, size)
    assert is_permutation(size)
    assert np.array_equal(np.sort(there), np.arange(size))
    query, back = unshuffled(np.arange(size), seeds, size)
    assert np.array_equal(there[back], query)
    assert np.array_equal(np.sort(query), np.arange(size))


@pytest.mark.long
@pytest.mark.parametrize("size", [65537, 262145])
def test_the_last_of_4_to_the_k_and_1_examples_is_lost_and_the_first_comes_twice(size: int) -> None:
    seeds = np.array([7])
    there = shuffled(np.arange(size), seeds, size)
    assert not is_permutation(size)
    assert there[0] == there[-1]
    assert np.array_equal(np.unique(there), np.arange(size - 1))
    query, back = unshuffled(np.arange(size), seeds, size)
    assert size - 1 not in query
    assert sorted(back[query == there[0]].tolist()) == [0, size - 1]
    assert np.array_equal(there[back], query)
    assert len(back) == size


def test_each_query_may_have_a_seed_of_its_own() -> None:
    for size in (6, 5000, 65537):
        indices, seeds = np.arange(size)[-6:], np.array([3, 3, 9, 1, 9, 2**32 - 1])
        alone = [
            shuffled(indices[at : at + 1], seeds[at : at + 1], size).tolist()[0] for at in range(6)
        ]
        assert shuffled(indices, seeds, size).tolist() == alone
        query, back = unshuffled(np.array(alone), seeds, size)
        assert all(indices[at] in back[query == at] for at in range(6) if alone[at] < size)


def test_the_cipher_has_an_even_number_of_bits_16_at_least() -> None:
    sizes = (1, 2, 65536, 65537, 65538, 2**18, 2**18 + 1, 2**18 + 2, 10**9)
    assert [block_bits(size) for size in sizes] == [16, 16, 16, 16, 18, 18, 18, 20, 30]


def folded(word: int) -> int:
    return word ^ (word >> 27)


def seed_seq(seed: int, size: int = ROUNDS) -> list[int]:
    """The C++ standard's [rand.util.seedseq], word by word, for one seed and 4 to 6 words."""
    full = 2**32
    words = [0x8B8B8B8B] * size
    p, q, m = (size - (size - 1) // 2) // 2, (size - (size - 1) // 2) // 2 + (size - 1) // 2, size
    for k in range(m):
        drawn = (
            1664525 * folded(words[k % size] ^ words[(k + p) % size] ^ words[(k - 1) % size]) % full
        )
        words[(k + p) % size] = (words[(k + p) % size] + drawn) % full
        drawn = (drawn + (1 if k == 0 else k % size + seed if k == 1 else k % size)) % full
        words[(k + q) % size] = (words[(k + q) % size] + drawn) % full
        words[k % size] = drawn
    for k in range(m, m + size):
        mixed = (words[k % size] + words[(k + p) % size] + words[(k - 1) % size]) % full
        drawn = 1566083941 * folded(mixed) % full
        words[(k + p) % size] ^= drawn
        drawn = (drawn - k % size) % full
        words[(k + q) % size] ^= drawn
        words[k % size] = drawn
    return words


def test_keys_are_those_of_the_standard_for_many_seeds_at_once() -> None:
    chance = random.Random(1)
    seeds = [0, 1, 2**32 - 1, *(chance.randrange(2**32) for _ in range(50))]
    keys = round_keys(np.array(seeds))
    assert keys.shape == (ROUNDS, len(seeds))
    for number, seed in enumerate(counted(seeds)):
        assert keys[:, number].tolist() == seed_seq(seed)


@cache
def whole(seed: int, size: int) -> list[int]:
    found: list[int] = shuffled(np.arange(size), np.array([seed]), size).tolist()
    return found


def one_shuffled(index: int, seed: int, size: int) -> int:
    return whole(seed, size)[index]


def read_by_hand(num: int, epochs: int, seed: Any, window: Any, own: slice) -> list[int]:
    """As MapDataset does: the slice asks the windows, these the shuffle, and that the source."""
    found = []
    for place in range(num * epochs)[own]:
        which, within = divmod(place, window or 1)
        within = one_shuffled(within, 7 + which, window) if window else 0
        epoch, within = divmod(which * (window or 1) + within, num)
        found.append(
            within if seed is None else one_shuffled(within, (seed + epoch) % NUM_SEEDS, num)
        )
    return found


@pytest.mark.long
def test_every_place_is_read_as_step_by_step_and_found_again() -> None:
    chance = random.Random(4)
    for _ in counted(range(40)):
        num, epochs, count = (
            chance.randrange(1, 20),
            chance.choice([1, 2, 5]),
            chance.choice([1, 3]),
        )
        seed, window = chance.choice([None, 0, NUM_SEEDS - 1]), chance.choice([None, 1, 4, 9])
        host = chance.randrange(count)
        found = grain_sequence(
            asked(
                num,
                seed=seed,
                epochs=epochs,
                host=(host, count),
                host_by="examples",
                buffer=window,
                buffer_seed=7,
            )
        )
        read = read_by_hand(num, epochs, seed, window, slice(host, None, count))
        batches = [[index] for index in read]
        check_agreement(found, batches, num + 3, batched=False)
        places = range(num * epochs)[host::count]
        epochs_of = found.epochs_at(np.arange(len(read))).tolist()
        assert epochs_of == [place // num for place in places]
        assert found.epoch_size == len(range(num)[host::count])


def test_how_well_an_order_mixes() -> None:
    kinds: list[dict[str, Any]] = [{}, {"buffer": 2, "buffer_seed": 1}, {"seed": 2}]
    found = [grain_sequence(asked(3, **kind)) for kind in kinds]
    assert [one.shuffles for one in found] == [False, True, True]
    assert [one.is_uniform for one in found] == [False, False, True]
    assert not grain_sequence(asked(65537, seed=2)).is_uniform
    nothing = grain_sequence(asked(0, seed=1, host_by="examples"))
    assert nothing.positions_of(np.arange(3))[0].tolist() == []


def dealt_by_hand(num_places: int, size: int, workers: int, *, drop: bool) -> list[list[int]]:
    """Each worker reads each so-manieth place and cuts that; then one batch of each, in turn."""
    own = []
    for worker in range(max(workers, 1)):
        read = list(range(num_places))[worker :: max(workers, 1)]
        cut = [read[start : start + size] for start in range(0, len(read), size)]
        own.append([batch for batch in cut if len(batch) == size or not drop])
    return [batch for turn in itertools.zip_longest(*own) for batch in turn if batch is not None]


@pytest.mark.parametrize("drop", [False, True])
def test_batches_of_workers_are_those_dealt_by_hand_both_ways(drop: bool) -> None:
    for num, size, workers in itertools.product((1, 2, 7, 12, 29), (1, 2, 5), (0, 1, 2, 3, 7)):
        dealt = grain_sequence(asked(num, batch=size, workers=workers, drop_remainder=drop))
        check_agreement(dealt, dealt_by_hand(num, size, workers, drop=drop), num, batched=True)
        add_cases()


def test_a_trillion_reads_are_dealt_without_a_list_of_batches() -> None:
    dealt = grain_sequence(asked(10**12 + 1, batch=256, workers=3)).batches
    assert dealt is not None
    # Two workers read 1,302,083,333 * 256 + 86, the third one less.
    assert dealt.num_batches == 3 * 1_302_083_334
    assert dealt.bounds(dealt.num_batches - 1) == (10**12 + 1 - 85, 10**12 + 1)


@pytest.mark.parametrize(("drops", "sizes"), [(False, [4, 4, 3]), (True, [3, 3, 3])])
def test_a_rest_is_of_the_first_hosts_or_dropped(drops: bool, sizes: list[int]) -> None:
    for host, size in enumerate(sizes):
        found = grain_sequence(asked(11, seed=1, host=(host, 3), drop_shard_remainder=drops))
        assert found.among is not None
        assert len(found.among[0]) == size


REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"seed": 2**32}, "--shuffle-seed 4294967296: Grain takes seeds from 0 to 4294967295"),
    ({"seed": -1}, "--shuffle-seed -1"),
    ({"host_by": "files"}, "no --host-by files"),
    ({"buffer": 3}, "give --buffer-seed N"),
    ({"buffer": -2, "buffer_seed": 1}, "--buffer -2: Grain shuffles windows of 1 example at least"),
    ({"buffer": 3, "buffer_seed": -1}, "--buffer-seed -1"),
    ({"buffer": 3, "buffer_seed": 2**32 - 3}, "number of the window, up to 3"),
    ({"buffer": 3, "buffer_seed": 1, "host": (0, 2)}, "share by --host-by examples"),
    ({"host_by": "examples", "drop_shard_remainder": True}, "drops nothing"),
    ({"host": (10, 11), "epochs": 2}, "host 10 of 11 has no example of its own"),
    ({"num_examples": 0}, "IndexSampler refuses to read no examples"),
    ({"num_examples": 2**61}, "cannot count"),
)


@pytest.mark.parametrize(("settings", "why"), REFUSED)
def test_what_grain_refuses_is_refused_with_the_setting_and_the_rule(
    settings: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError) as refused:
        grain_sequence(asked(**{"num_examples": 10, **settings}))
    assert why in str(refused.value)


def test_the_nearest_settings_are_not_refused() -> None:
    nearest: tuple[dict[str, Any], ...] = (
        {"seed": 2**32 - 1},
        {"buffer": 3, "buffer_seed": 2**32 - 4},
        {"buffer": 3, "buffer_seed": 1, "host": (0, 2), "host_by": "examples"},
        {"host": (9, 11), "epochs": 1},
        {"host": (10, 11), "epochs": 1},
        {"host": (10, 11), "epochs": 2, "drop_shard_remainder": True},
        {"num_examples": 0, "host_by": "examples"},
    )
    for settings in nearest:
        grain_sequence(asked(**{"num_examples": 10, **settings}))


def test_a_billion_examples_are_located_without_a_list_of_them() -> None:
    handed = grain_sequence(
        asked(10**9, seed=7, epochs=3, host=(5, 8), workers=4, batch=256, drop_remainder=True)
    )
    query, positions = handed.positions_of(np.array([700_000_000]))
    assert query.tolist() == [0, 0, 0]
    assert handed.indices_at(positions).tolist() == [700_000_000] * 3
    assert sorted(handed.epochs_at(positions).tolist()) == [0, 1, 2]
