"""Philox 4x32-10: the counter-based random numbers behind TensorFlow's shuffles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.base.tfds_rules import PHILOX_KEY_STEPS, PHILOX_MULTIPLIERS, PHILOX_ROUNDS
from shardctl.base.tfds_rules import PHILOX_SAMPLES_PER_BLOCK as SAMPLES_PER_BLOCK

_MULTIPLIER_0, _MULTIPLIER_1 = map(np.uint64, PHILOX_MULTIPLIERS)
_KEY_STEP_0, _KEY_STEP_1 = map(np.uint64, PHILOX_KEY_STEPS)
_WORD = 0xFFFFFFFF

# Six lanes of 8 bytes a block: 16,384 blocks stay in a level 2 cache of 1 MiB.
_BLOCKS_PER_TILE = 1 << 14


def philox_samples(seed: int, seed2: int, start: int, count: int) -> NDArray[np.uint32]:
    """Return the samples [start, start + count) of a stream, shape (count,), dtype uint32.

    Sample i is number i mod 4 of block i div 4, so any part of the stream costs only itself. The
    key is `seed` and the counter is (block, seed2), each 64 bits with the low word first, as
    TensorFlow sets them (tsl/lib/random/philox_random.h).

    >>> [f"{sample:08x}" for sample in philox_samples(0, 0, 1, 3)]
    ['e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    first_block = start // SAMPLES_PER_BLOCK
    num_blocks = -(-(start + count) // SAMPLES_PER_BLOCK) - first_block
    blocks = np.arange(num_blocks, dtype=np.uint64) + np.uint64(first_block)
    skipped = start - first_block * SAMPLES_PER_BLOCK
    return philox_blocks(seed, seed2, blocks)[skipped : skipped + count]


def philox_blocks(seed: int, seed2: int, blocks: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the samples of any blocks, shape (4 * len(blocks),), dtype uint32.

    >>> philox_blocks(0, 0, np.array([7, 0], np.uint64))[4:5]
    array([1713891541], dtype=uint32)
    """
    samples = np.empty((len(blocks), SAMPLES_PER_BLOCK), np.uint32)
    room = np.empty((6, min(len(blocks), _BLOCKS_PER_TILE)), np.uint64)
    for start in range(0, len(blocks), _BLOCKS_PER_TILE):
        tile = blocks[start : start + _BLOCKS_PER_TILE]
        scratch = room[:, : len(tile)]
        np.bitwise_and(tile, np.uint64(_WORD), out=scratch[0])
        np.right_shift(tile, np.uint64(32), out=scratch[1])
        scratch[2], scratch[3] = seed2 & _WORD, seed2 >> 32
        philox_rounds(scratch[:4], np.uint64(seed & _WORD), np.uint64(seed >> 32), scratch[4:])
        for column, lane in enumerate(scratch[:4]):
            samples[start : start + len(tile), column] = lane
    return samples.reshape(-1)


def philox_rounds(
    words: NDArray[np.uint64],
    key_0: NDArray[np.uint64] | np.uint64,
    key_1: NDArray[np.uint64] | np.uint64,
    scratch: NDArray[np.uint64] | None = None,
) -> None:
    """Turn the four words of many counters into their samples, in place.

    words: shape (4, num_blocks), 32 bits in 64, so that a product keeps its high half.
    key_0, key_1: a word of the key, one for all blocks, or uint64[num_blocks].
    scratch: shape (2, num_blocks).

    >>> words = np.zeros((4, 1), np.uint64)
    >>> philox_rounds(words, np.uint64(0), np.uint64(0))
    >>> [f"{sample:08x}" for sample in words[:, 0]]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    x0, x1, x2, x3 = words
    low, high = np.empty((2, len(x0)), np.uint64) if scratch is None else scratch
    shift, word = np.uint64(32), np.uint64(_WORD)
    for _ in range(PHILOX_ROUNDS):
        np.multiply(x0, _MULTIPLIER_0, out=low)
        np.multiply(x2, _MULTIPLIER_1, out=high)
        np.right_shift(high, shift, out=x0)
        np.bitwise_xor(x0, x1, out=x0)
        np.bitwise_xor(x0, key_0, out=x0)
        np.right_shift(low, shift, out=x2)
        np.bitwise_xor(x2, x3, out=x2)
        np.bitwise_xor(x2, key_1, out=x2)
        np.bitwise_and(high, word, out=x1)
        np.bitwise_and(low, word, out=x3)
        key_0, key_1 = (key_0 + _KEY_STEP_0) & word, (key_1 + _KEY_STEP_1) & word
