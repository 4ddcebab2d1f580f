"""The generator of torch, and its permutations, beside a loop that swaps one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.loaders.torch import Generator, check_seed, num_draws
from tests.cases import counted


def swapped_one_by_one(num_elements: int, seed: int, skip: int) -> list[int]:
    bits = np.random.MT19937()
    np.random.RandomState(bits).seed(seed & 0xFFFFFFFF)
    drawn = bits.random_raw(skip + num_elements).tolist()[skip:]
    order = list(range(num_elements))
    for place in range(num_elements - 1):
        other = place + drawn[place] % (num_elements - place)
        order[place], order[other] = order[other], order[place]
    return order


def test_the_first_draws_are_those_of_the_reference_implementation() -> None:
    """Of `init_genrand(5489)` in mt19937ar.c, whose 10,000th number is in the standard of C++."""
    assert Generator(5489).draws(0, 2).tolist() == [3499211612, 581869302]
    assert Generator(5489).draws(9999, 10000).tolist() == [4123659995]


def test_a_permutation_is_that_of_swaps_one_by_one() -> None:
    rng = random.Random(3)
    sizes = [0, 1, 2, 3, 4, 100, 32767, 32768, 32769, *(rng.randrange(5, 400) for _ in range(40))]
    for size in counted(sizes):
        seed, skip = rng.randrange(-(1 << 63), 1 << 64), rng.choice([0, 0, 1, 7, 3 * size])
        found = Generator(seed).randperm(size, skip)
        assert found.tolist() == swapped_one_by_one(size, seed, skip)


def test_draws_are_the_same_in_whatever_order_they_are_asked_for() -> None:
    generator = Generator(7)
    drawn = generator.draws(0, 60).tolist()
    for start, stop in ((50, 60), (3, 5), (5, 5), (5, 9), (40, 41), (0, 60)):
        assert generator.draws(start, stop).tolist() == drawn[start:stop]


def test_a_number_of_64_bits_is_two_draws_the_first_of_them_on_top() -> None:
    high, low = Generator(9).draws(4, 6).tolist()
    assert Generator(9).int64(4) == (high * 2**32 + low) % 2**63


def test_seeds_count_by_their_last_32_bits() -> None:
    orders = [Generator(seed).randperm(9).tolist() for seed in (-1, 2**32 - 1, 2**64 - 1)]
    assert orders[0] == orders[1] == orders[2] != Generator(1).randperm(9).tolist()
    assert check_seed(2**64 - 1, "it") == 2**64 - 1
    with pytest.raises(UsageError, match=f"^it is {2**64}, which torch refuses as a seed"):
        check_seed(2**64, "it")


def test_what_takes_too_much_memory_or_time_is_refused() -> None:
    with pytest.raises(UsageError, match=r"134,217,728 are refused; read fewer of them"):
        Generator(1).randperm((1 << 27) + 1)
    with pytest.raises(UsageError, match=r"more than a day is refused; ask for an earlier epoch"):
        Generator(1).draws(10**15, 10**15 + 1)
    assert num_draws(0) == num_draws(1) == 0
