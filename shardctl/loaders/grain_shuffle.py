"""Grain's shuffle of an index, and its inverse: no list of the examples is ever made.

A block cipher of four rounds permutes all numbers of as many bits as the largest index has; what it
makes of an index is enciphered again until it is an index ("cycle walking").

Source: grain/_src/python/experimental/index_shuffle/index_shuffle.cc.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shardctl.base.arrays import Int64s

LEAST_BITS = 16
# So few indices are mostly walked past; then the whole cipher is made, and the walks with it.
_FEW = 4096
# How many numbers are enciphered at once: as many as fit a processor's cache.
_AT_ONCE = 1 << 15
_TABLES = 64  # permutations that are kept, of 8 KiB each

_Words = NDArray[Any]


def block_bits(num_examples: int) -> int:
    """Return how many bits the cipher permutes.

    They are too few for the last of 4 ** k + 1 examples (65,537): it comes out as the first does.

    >>> block_bits(65_536), block_bits(65_537), block_bits(65_538)
    (16, 16, 18)
    """
    largest = num_examples - 1
    # Two halves of equal size, so an even number of bits, at least 16. log2 of a double, as in C++.
    bits = math.ceil(math.log2(float(largest))) if largest > 0 else 0
    return max(bits + bits % 2, LEAST_BITS)


def is_permutation(num_examples: int) -> bool:
    """Return whether a shuffle yields each of so many examples once."""
    return num_examples <= 1 << block_bits(num_examples)


def shuffled(indices: Int64s, seeds: Int64s, num_examples: int) -> Int64s:
    """Return which example is at each index of its shuffle, int64[q].

    seeds: int64[q], or int64[1] for all of them; each of 0 to 2**32 - 1.
    """
    return _walked(indices, seeds, num_examples, backwards=False)


def unshuffled(examples: Int64s, seeds: Int64s, num_examples: int) -> tuple[Int64s, Int64s]:
    """Return (which of `examples`, index), int64[r] each: where a shuffle yields examples.

    That is one index each; where `is_permutation` is not, the last example has none, and another
    has two.
    """
    # Only for 4 ** k + 1 examples is `size` smaller than their number: the cipher cannot reach the
    # last one.
    size = 1 << block_bits(num_examples)
    if num_examples <= size:
        return np.arange(len(examples)), _walked(examples, seeds, num_examples, backwards=True)
    # The last example (index == size) is enciphered like index 0, so it never comes out.
    query = np.flatnonzero(examples < size)
    own = seeds if len(seeds) == 1 else seeds[query]
    found = _walked(examples[query], own, size, backwards=True)
    # An index i + size is enciphered as i is, so an example may stand at both.
    again = np.flatnonzero(found + size < num_examples)
    return np.append(query, query[again]), np.append(found, found[again] + size)


def _walked(indices: Int64s, seeds: Int64s, num_examples: int, *, backwards: bool) -> Int64s:
    # One example has one place; the cipher of 16 bits would walk for long.
    if num_examples == 1 or not len(indices):
        return np.zeros_like(indices)
    if num_examples < _FEW:
        return _looked_up(indices, seeds, num_examples, backwards=backwards)
    found = np.empty_like(indices)
    bits = block_bits(num_examples)
    keys = round_keys(seeds) if len(seeds) == 1 else None
    for start in range(0, len(indices), _AT_ONCE):
        here = slice(start, start + _AT_ONCE)
        own = round_keys(seeds[here]) if keys is None else keys
        found[here] = _walked_together(indices[here], own, bits, num_examples, backwards)
    return found


def _walked_together(
    indices: Int64s, keys: NDArray[np.uint64], bits: int, num_examples: int, backwards: bool
) -> Int64s:
    found = _enciphered(indices, keys, bits, backwards=backwards)
    # Cycle walking: what is outside of the index is enciphered again. A permutation of a finite set
    # returns, so this ends.
    todo = np.flatnonzero(found >= num_examples)
    while len(todo):
        own = keys if keys.shape[1] == 1 else keys[:, todo]
        again = _enciphered(found[todo], own, bits, backwards=backwards)
        found[todo] = again
        todo = todo[again >= num_examples]
    return found


def _enciphered(numbers: Int64s, keys: NDArray[np.uint64], bits: int, *, backwards: bool) -> Int64s:
    """Return the cipher of numbers, whose bits beyond `bits` are lost, int64[q]."""
    half = bits // 2
    # Rotations are cut from a word that is written twice.
    # The smallest word that holds two copies of a half; overflow beyond it is intended.
    word: Any = np.uint16 if bits <= 16 else np.uint32 if bits <= 32 else np.uint64
    mask = word((1 << half) - 1)
    left: _Words = (numbers >> half & int(mask)).astype(word)
    right: _Words = (numbers & int(mask)).astype(word)
    _encipher(left, right, keys.astype(word), half, backwards)
    found: Int64s = (left.astype(np.int64) << half) | right.astype(np.int64)
    return found


def _encipher(left: _Words, right: _Words, keys: _Words, half: int, backwards: bool) -> None:
    """Change the halves of numbers, of `half` bits each, to those of the cipher."""
    mask = left.dtype.type((1 << half) - 1)
    # A Feistel network: each round changes one half by a function of the other, in turns.
    rounds = [(left, right, key) for key in keys]
    for number in range(1, ROUNDS, 2):
        # Odd rounds swap the halves' roles.
        rounds[number] = (right, left, rounds[number][2])
    room = np.empty_like(left), np.empty_like(left), np.empty_like(left)
    # Each round undoes itself (it is an xor), so the inverse is the same rounds in reverse order.
    for changed, by, key in reversed(rounds) if backwards else rounds:
        _round(changed, by, key, half, mask, room)


def _round(
    changed: _Words,
    by: _Words,
    key: _Words,
    half: int,
    mask: Any,
    room: tuple[_Words, _Words, _Words],
) -> None:
    """Change one half of each number by the other: twice the same round is none."""
    word = by.dtype.type
    # Three arrays that are reused: a round allocates nothing.
    doubled, found, turned = room
    # `doubled` holds the half twice, so a shift right by half - r is a rotation left by r.
    np.left_shift(by, word(half), out=doubled)
    np.bitwise_or(doubled, by, out=doubled)
    # The round function: (rotl 1 & rotl 8) ^ rotl 2 ^ key, as in the Simon cipher.
    np.right_shift(doubled, word(half - 1), out=found)
    np.right_shift(doubled, word(half - 8), out=turned)
    np.bitwise_and(found, turned, out=found)
    np.right_shift(doubled, word(half - 2), out=turned)
    np.bitwise_xor(found, turned, out=found)
    np.bitwise_xor(found, key, out=found)
    np.bitwise_and(found, mask, out=found)
    np.bitwise_xor(changed, found, out=changed)


def _looked_up(indices: Int64s, seeds: Int64s, num_examples: int, *, backwards: bool) -> Int64s:
    """Return the same for few examples, from the whole permutation of each seed."""
    if len(seeds) == 1:
        return _permutation(int(seeds[0]), num_examples, backwards)[indices].astype(np.int64)
    found = np.empty_like(indices)
    # One permutation for each seed: the queries are grouped by seed.
    by_seed = np.argsort(seeds, kind="stable")
    for here in np.split(by_seed, np.flatnonzero(np.diff(seeds[by_seed])) + 1):
        own = _permutation(int(seeds[here[0]]), num_examples, backwards)
        found[here] = own[indices[here]]
    return found


@lru_cache(_TABLES)
def _permutation(seed: int, num_examples: int, backwards: bool) -> NDArray[np.uint16]:
    """Return what the smallest cipher makes of each index, until it is one."""
    half, size = LEAST_BITS // 2, 1 << LEAST_BITS
    # All 2**16 numbers as (left, right): left repeats, right runs.
    left = np.repeat(np.arange(1 << half, dtype=np.uint16), 1 << half)
    right = np.tile(np.arange(1 << half, dtype=np.uint16), 1 << half)
    _encipher(left, right, round_keys(np.array([seed])).astype(np.uint16), half, backwards)
    cipher: NDArray[np.uint16] = (left << half | right).astype(np.uint16)
    found: NDArray[np.uint16] = cipher[:num_examples].copy()
    # Steps of walks become two, four, .. of them, which stop at an index: then walks are short.
    cipher[:num_examples] = np.arange(num_examples)
    # Each round doubles the length of a step.
    for _ in range((size // (64 * num_examples)).bit_length()):
        cipher = cipher.take(cipher)
    while len(walked := np.flatnonzero(found >= num_examples)):
        found[walked] = cipher.take(found[walked])
    return found


# The keys of Grain's shuffle: four words of C++'s `std::seed_seq`, for many seeds at once.
#
# Source: `generate_keys` in grain/_src/python/experimental/index_shuffle/index_shuffle.cc; the
# algorithm is in the C++ standard, [rand.util.seedseq].

ROUNDS = 4
_FIRST = 0x8B8B8B8B
_MIX, _SPREAD = 1664525, 1566083941
_MASK = np.uint64(0xFFFFFFFF)


def round_keys(seeds: Int64s) -> NDArray[np.uint64]:
    """Return what `std::seed_seq{seed}` generates for each seed, uint64[rounds, seeds].

    >>> round_keys(np.array([5489])).ravel().tolist()
    [3078589754, 2126075023, 4255833496, 582627599]
    """
    # seed_seq takes the low 32 bits.
    given = seeds.astype(np.uint64) & _MASK
    # seed_seq::generate starts with words of 0x8b8b8b8b and mixes twice; the steps below are the
    # standard's k.
    words = [np.full(len(seeds), _FIRST, np.uint64) for _ in range(ROUNDS)]
    # With one seed and four words the standard's t, p and q are 1, 1 and 2.
    for step in range(ROUNDS):
        here, near, far = step, (step + 1) % ROUNDS, (step + 2) % ROUNDS
        # words[step - 1] is the standard's begin[(k - 1) % n]; -1 is the last word.
        mixed = words[here] ^ words[near] ^ words[step - 1]
        drawn = _folded(mixed) * np.uint64(_MIX) & _MASK
        words[near] = words[near] + drawn & _MASK
        # What the standard adds in step k: s (the number of seeds, 1), then k + the seed, then k.
        added = (1, 1 + given, 2, 3)[step]
        drawn = drawn + np.asarray(added, np.uint64) & _MASK
        words[far] = words[far] + drawn & _MASK
        words[here] = drawn
    # The second loop mixes by addition and subtraction with another factor.
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
