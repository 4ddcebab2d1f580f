"""Many shuffles of as many elements at once: what takes a step each alone takes one for all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.core.shuffle.buffer import shuffle_permutation
from shardctl.core.shuffle.philox import philox_rounds
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as SAMPLES_PER_BLOCK

Seeds = NDArray[np.uint64]  # [e, 2]: the pair of each shuffle

ROOM = 1 << 20  # elements of all shuffles that are worked on together
_FEWEST = 32  # shuffles from which on steps of all of them are quicker than one after the other
_PER_SHUFFLE = 64  # elements of each for which there must be one more
_LANES = 1 << 14  # blocks of Philox that stay in a cache
_WORD = np.uint64(0xFFFFFFFF)


def permutations(num_elements: int, seeds: Seeds) -> NDArray[np.int32]:
    """Return shuffles with a buffer of all elements, int32[num_elements, e]: one in each column.

    Column i is `shuffle_permutation(num_elements, num_elements, seeds[i])`. Memory is some 30 bytes
    an element, so that the caller asks for `ROOM` elements at once.

    >>> permutations(5, np.array([[87654321, 7], [0, 1]], np.uint64)).T.tolist()
    [[2, 4, 3, 0, 1], [2, 3, 0, 1, 4]]
    """
    if len(seeds) < max(_FEWEST, num_elements // _PER_SHUFFLE):
        order = np.empty((num_elements, len(seeds)), np.int32)
        for column, (seed, seed2) in enumerate(seeds.tolist()):
            one = KernelSeeds(seed=seed, seed2=seed2)
            order[:, column] = shuffle_permutation(num_elements, num_elements, one)
        return order
    return _swapped(_places(num_elements, seeds))


def shuffled_in_turn(num_elements: int, seeds: Seeds) -> NDArray[np.int64]:
    """Return those shuffles one after the other, int64[e * num_elements], in bounded memory."""
    order = np.empty((len(seeds), num_elements), np.int64)
    size = max(1, ROOM // max(num_elements, 1))
    for start in range(0, len(seeds), size):
        order[start : start + size] = permutations(num_elements, seeds[start : start + size]).T
    return order.reshape(-1)


def _swapped(places: NDArray[np.uint32]) -> NDArray[np.int32]:
    """Return what the swaps of Fisher and Yates, from the front, make of each column."""
    num_elements, count = places.shape
    order = np.empty((num_elements, count), np.int32)
    order[:] = np.arange(num_elements, dtype=np.int32)[:, None]
    flat, columns = order.reshape(-1), np.arange(count)
    at = np.empty(count, np.intp)
    for step in range(num_elements - 1):
        np.multiply(places[step], count, out=at, casting="unsafe")
        at += columns
        taken = flat[at]
        flat[at] = order[step]
        order[step] = taken
    return order


def _places(num_elements: int, seeds: Seeds) -> NDArray[np.uint32]:
    """Return the place that each step swaps with, uint32[num_elements, e]."""
    count = len(seeds)
    num_blocks = -(-num_elements // SAMPLES_PER_BLOCK)
    samples = np.empty((num_blocks, SAMPLES_PER_BLOCK, count), np.uint32)
    tile = max(1, _LANES // count)
    (key_0, key_1), (low, high) = (np.ascontiguousarray(part) for part in _words(seeds))
    room = np.empty((6, min(tile, num_blocks), count), np.uint64)
    for start in range(0, num_blocks, tile):
        stop = min(start + tile, num_blocks)
        words, scratch = room[:4, : stop - start], room[4:, : stop - start]
        words[0] = np.arange(start, stop, dtype=np.uint64)[:, None]
        words[1] = 0
        words[2], words[3] = low, high
        philox_rounds(words, key_0, key_1, scratch)
        for lane in range(SAMPLES_PER_BLOCK):
            samples[start:stop, lane] = words[lane]
    places = samples.reshape(-1, count)[:num_elements]
    left = np.arange(num_elements, 0, -1, dtype=np.uint32)[:, None]
    places -= places // left * left  # NumPy has no vector instructions for remainders
    places += np.arange(num_elements, dtype=np.uint32)[:, None]
    return places


def _words(seeds: Seeds) -> tuple[tuple[Seeds, Seeds], tuple[Seeds, Seeds]]:
    """Return the (low, high) words of both seeds, uint64[e] each."""
    first, second = seeds[:, 0], seeds[:, 1]
    shift = np.uint64(32)
    return (first & _WORD, first >> shift), (second & _WORD, second >> shift)
