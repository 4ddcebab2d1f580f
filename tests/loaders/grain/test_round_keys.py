"""Keys of Grain's shuffle, beside the standard's own example and a plain reading of its text."""

from __future__ import annotations

import random

import numpy as np

from shardctl.loaders.grain_shuffle import ROUNDS, round_keys
from tests.cases import counted


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
