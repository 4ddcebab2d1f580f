"""The shuffle buffers of `IterableDataset`, and streams that are read in turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shardctl.core.arrays import Int64s

# Random numbers that the buffer draws at once: `_iter_random_indices(random_batch_size)`.
_DRAWN_AT_ONCE = 1000


def in_turn(streams: Sequence[Int64s], block: int) -> tuple[Int64s, Int64s]:
    """Return `block` of each stream in turn until all are read, and the lengths of those blocks.

    >>> in_turn([np.array([1, 2, 3]), np.array([7])], 2)
    (array([1, 2, 7, 3]), array([2, 1, 1]))
    """
    sizes, rounds = [], []
    for stream in streams:
        full, rest = divmod(len(stream), block)
        sizes.append(np.append(np.full(full, block, np.int64), [rest] if rest else []))
        rounds.append(np.arange(len(sizes[-1])))
    if not streams:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(np.concatenate(rounds), kind="stable")
    lengths = np.concatenate(sizes).astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    lengths, starts = lengths[order], starts[order]
    # Where each block begins in the result, so that its examples follow one another from there.
    shift = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return np.concatenate(streams)[np.arange(len(shift)) + shift], lengths


def one_for_one(stream: Int64s, size: int, generator: np.random.Generator) -> Int64s:
    """Return a stream through a buffer that hands out an example for each that comes.

    What a draw takes is what came when the place was drawn before, or what filled it at first, so
    no step waits for another.
    """
    if len(stream) <= size:
        left = stream.copy()
        generator.shuffle(left)
        return left
    steps = len(stream) - size
    drawn = -(-steps // _DRAWN_AT_ONCE) * _DRAWN_AT_ONCE
    places = generator.integers(0, size, size=drawn)[:steps]
    by_place = np.argsort(places, kind="stable")
    sorted_places = places[by_place]
    again = sorted_places[1:] == sorted_places[:-1]
    taken = np.empty(steps, np.int64)
    taken[by_place] = sorted_places
    taken[by_place[1:][again]] = by_place[:-1][again] + size
    left = np.arange(size)
    last = np.append(~again, True)
    left[sorted_places[last]] = by_place[last] + size
    generator.shuffle(left)
    return np.concatenate([stream[taken], stream[left]])


def by_halves(
    stream: Int64s, blocks: Int64s | None, size: int, generator: np.random.Generator
) -> Int64s:
    """Return a stream through a buffer that, when it is full, hands out all but half its size.

    It takes blocks whole, so it may hold more than `size` then; `blocks` are their lengths, None
    where examples come one by one.
    """
    if size == 1 and blocks is None:
        return stream.copy()  # each is handed out as it comes, and one alone draws nothing
    keep = size // 2
    ends = None if blocks is None else np.cumsum(blocks)
    found = np.empty(len(stream), np.int64)
    held, read, done = stream[:0], 0, 0
    while True:
        upto = read + size - len(held)
        if ends is not None and upto <= len(stream):
            upto = int(ends[np.searchsorted(ends, upto)])
        if upto > len(stream):
            break
        held = np.concatenate([held, stream[read:upto]])
        held = held[generator.permutation(len(held))]
        count = len(held) - keep
        found[done : done + count] = held[:count]
        held, read, done = held[count:], upto, done + count
    held = np.concatenate([held, stream[read:]])
    found[done:] = held[generator.permutation(len(held))] if len(held) else held
    return found
