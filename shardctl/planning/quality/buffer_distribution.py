"""The law of a shuffle buffer: stretches of its order as they fall, whatever its seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shardctl.core.arrays import Int64s

_PLAYED = 8  # buffers up to so many stretches long are played step by step
_REDRAWS = 16


def drawn_stretches(
    num_elements: int, buffer_size: int, starts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    """Return input positions that come out at stretches of a shuffle, int64[len(starts), length].

    Each is drawn from the law that `ShuffleReplay` follows when its random numbers are uniform:
    every step empties one of B places and fills it with the next input, until the input ends. The
    cost is that of the stretches, however large the buffer and late the start.

    A small buffer is filled by its law and played. Of a large one the examples are drawn one by
    one, each as old as 1 / B a step makes it; that no two are the same, and that a place emptied
    twice gave a new one, is kept. Stretches that are short beside the buffer fall alike.

    >>> rng = np.random.default_rng(1)
    >>> drawn_stretches(10, 1, np.array([0, 7]), 3, rng).tolist()  # a buffer of one keeps the order
    [[0, 1, 2], [7, 8, 9]]
    """
    size = max(1, min(buffer_size, num_elements))
    if size <= _PLAYED * length:
        return _played(num_elements, size, starts, length, generator)
    return _drawn(num_elements, size, starts, length, generator)


def _played(
    num_elements: int, size: int, starts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    places = _filled(num_elements, size, starts, generator)
    row = np.arange(len(starts))
    chosen = generator.random((length, len(starts)))
    inputs = np.empty((len(starts), length), np.int64)
    for number in range(length):
        step = starts + number
        num_left = np.minimum(size, num_elements - step)
        place = (chosen[number] * num_left).astype(np.int64)
        inputs[:, number] = places[row, place]
        # The last place moves where nothing comes in any more.
        last = places[row, num_left - 1]
        places[row, place] = np.where(step + size < num_elements, step + size, last)
    return inputs


def _filled(num_elements: int, size: int, starts: Int64s, generator: np.random.Generator) -> Int64s:
    """Return what the buffer holds before each start, int64[len(starts), size], in no order.

    Looking back, each step emptied a place that none after it did with the chance of those not yet
    met, so the places come into sight at geometric distances, as coupons do for a collector. Those
    never emptied hold some of the first inputs.
    """
    seen = np.minimum(starts, num_elements - size)[:, None]
    chance = 1.0 - np.arange(size) / size
    ago = np.cumsum(generator.geometric(chance, (len(starts), size)), axis=1)
    contents = np.where(ago <= seen, size + seen - ago, -1)
    first = np.flatnonzero(contents[:, -1] < 0)
    some = generator.permuted(np.broadcast_to(np.arange(size), (len(first), size)), axis=1)
    contents[first] = np.where(contents[first] < 0, some, contents[first])
    ending = np.flatnonzero(starts > num_elements - size)
    contents[ending] = generator.permuted(contents[ending], axis=1)
    return contents


def _drawn(
    num_elements: int, size: int, starts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    steps = starts[:, None] + np.arange(length)
    last_full = num_elements - size
    # Once nothing comes in, no place is emptied twice.
    places = generator.integers(0, size, steps.shape)
    places = np.where(steps <= last_full, places, size + np.arange(length))
    later, earlier = _emptied_again(places)
    seen = np.broadcast_to(np.minimum(starts, last_full)[:, None], steps.shape)
    inputs = _contents(size, seen, generator)
    inputs.flat[later] = steps.flat[earlier] + size
    rows = np.arange(len(inputs))
    for _ in range(_REDRAWS):
        ordered = np.sort(inputs[rows], axis=1)
        rows = rows[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        if not len(rows):
            break
        twice = _repeated(inputs[rows])
        again = inputs[rows]
        again[twice] = _contents(size, seen[rows][twice], generator)
        inputs[rows] = again
    return inputs


def _emptied_again(places: Int64s) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (flat index of a visit, that of the visit before it to the same place in its row)."""
    by_place = np.argsort(places, axis=1, kind="stable")
    ordered = np.take_along_axis(places, by_place, axis=1)
    rows, columns = np.nonzero(ordered[:, 1:] == ordered[:, :-1])
    width = places.shape[1]
    return rows * width + by_place[rows, columns + 1], rows * width + by_place[rows, columns]


def _contents(size: int, steps: Int64s, generator: np.random.Generator) -> Int64s:
    """Return what some place holds before each step, int64 of the shape of `steps`.

    It came in g steps before the newest with probability (1 - 1/B)**g / B, and else is one of the
    first B inputs.
    """
    # The distance between two events of chance 1/B is geometric; less one, the age.
    age = generator.geometric(1.0 / size, steps.shape) - 1
    first = generator.integers(0, size, steps.shape)
    return np.where(age < steps, size + steps - 1 - age, first)


def _repeated(inputs: Int64s) -> NDArray[np.bool_]:
    """Return which entries (bool, the shape of `inputs`) stand in their row a second time."""
    by_input = np.argsort(inputs, axis=1, kind="stable")
    ordered = np.take_along_axis(inputs, by_input, axis=1)
    again = np.zeros(inputs.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    repeated = np.empty_like(again)
    np.put_along_axis(repeated, by_input, again, axis=1)
    return repeated
