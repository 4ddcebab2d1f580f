"""The keys of Grain's shuffle: four words of C++'s `std::seed_seq`, for many seeds at once.

Source: `generate_keys` in grain/_src/python/experimental/index_shuffle/index_shuffle.cc; the
algorithm is in the C++ standard, [rand.util.seedseq].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s

ROUNDS = 4
_FIRST = 0x8B8B8B8B
_MIX, _SPREAD = 1664525, 1566083941
_MASK = np.uint64(0xFFFFFFFF)


def round_keys(seeds: Int64s) -> NDArray[np.uint64]:
    """Return what `std::seed_seq{seed}` generates for each seed, uint64[rounds, seeds].

    >>> round_keys(np.array([5489])).ravel().tolist()
    [3078589754, 2126075023, 4255833496, 582627599]
    """
    given = seeds.astype(np.uint64) & _MASK
    words = [np.full(len(seeds), _FIRST, np.uint64) for _ in range(ROUNDS)]
    # With one seed and four words the standard's t, p and q are 1, 1 and 2.
    for step in range(ROUNDS):
        here, near, far = step, (step + 1) % ROUNDS, (step + 2) % ROUNDS
        mixed = words[here] ^ words[near] ^ words[step - 1]
        drawn = _folded(mixed) * np.uint64(_MIX) & _MASK
        words[near] = words[near] + drawn & _MASK
        added = (1, 1 + given, 2, 3)[step]
        drawn = drawn + np.asarray(added, np.uint64) & _MASK
        words[far] = words[far] + drawn & _MASK
        words[here] = drawn
    for step in range(ROUNDS):
        here, near, far = step, (step + 1) % ROUNDS, (step + 2) % ROUNDS
        mixed = words[here] + words[near] + words[step - 1] & _MASK
        drawn = _folded(mixed) * np.uint64(_SPREAD) & _MASK
        words[near] = words[near] ^ drawn
        drawn = drawn - np.uint64(step) & _MASK
        words[far] = words[far] ^ drawn
        words[here] = drawn
    return np.stack(words)


def _folded(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return words ^ (words >> np.uint64(27))
