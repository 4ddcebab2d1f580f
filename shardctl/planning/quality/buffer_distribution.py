"""The distribution of a shuffle buffer: stretches of its order, drawn at random."""

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

    Each has the distribution of a `ShuffleReplay` whose random numbers are uniform:
    every step empties one of B places and fills it with the next input, until the input ends. The
    cost is that of the stretches, however large the buffer and late the start.

    For a small buffer its contents at the start are drawn, and its steps played from there. For a
    large one the examples are drawn one by one, with the age that a chance of 1 / B a step gives
    them; no two are the same, and a place emptied twice gives a new one. For stretches that are
    short beside the buffer both come out alike.

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
    for number in range(length):  # all stretches at once, a step at a time
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

    Looking back from the start, step by step: a step emptied a place that no later step did with
    probability (places not met yet) / size. So new places are met at geometric distances, as
    coupons are by a collector. Places never emptied still hold some of the first inputs.
    """
    # Steps that a new input has replaced what they took: after the end of the input none has.
    seen = np.minimum(starts, num_elements - size)[:, None]

    chance = 1.0 - np.arange(size) / size
    ago = np.cumsum(generator.geometric(chance, (len(starts), size)), axis=1)
    # Step s brings in input s + size; `ago` beyond the first step is a place never emptied.
    contents = np.where(ago <= seen, size + seen - ago, -1)
    first = np.flatnonzero(contents[:, -1] < 0)
    some = generator.permuted(np.broadcast_to(np.arange(size), (len(first), size)), axis=1)
    contents[first] = np.where(contents[first] < 0, some, contents[first])
    # After the end of the input the buffer shrinks. Which inputs are left is uniform, so they are
    # the first of any random arrangement, which is where `_played` takes them from.
    ending = np.flatnonzero(starts > num_elements - size)
    contents[ending] = generator.permuted(contents[ending], axis=1)
    return contents


def _drawn(
    num_elements: int, size: int, starts: Int64s, length: int, generator: np.random.Generator
) -> Int64s:
    steps = starts[:, None] + np.arange(length)
    last_full = num_elements - size
    # Once nothing comes in, no place is emptied twice: numbers beyond the buffer, all different.
    places = generator.integers(0, size, steps.shape)
    places = np.where(steps <= last_full, places, size + np.arange(length))
    later, earlier = _emptied_again(places)
    seen = np.broadcast_to(np.minimum(starts, last_full)[:, None], steps.shape)
    inputs = _contents(size, seen, generator)
    # A place that is emptied again holds what came in when it was emptied before.
    inputs.flat[later] = steps.flat[earlier] + size
    # Only rows that repeat an input are drawn again, and of them only the repeated entries. What
    # still repeats after the last round is too rare to show in a mean.
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

    It came in g steps before the newest input with probability (1 - 1/B)**g / B; where that is
    before the first step, it is one of the first B inputs.
    """
    # The distance between two events of chance 1/B is geometric; less one, the age.
    age = generator.geometric(1.0 / size, steps.shape) - 1
    first = generator.integers(0, size, steps.shape)
    return np.where(age < steps, size + steps - 1 - age, first)


def _repeated(inputs: Int64s) -> NDArray[np.bool_]:
    """Return which entries (bool, the shape of `inputs`) are in their row a second time."""
    # The sort is stable, so of equal entries the first one stays unmarked.
    by_input = np.argsort(inputs, axis=1, kind="stable")
    ordered = np.take_along_axis(inputs, by_input, axis=1)
    again = np.zeros(inputs.shape, bool)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    repeated = np.empty_like(again)
    np.put_along_axis(repeated, by_input, again, axis=1)
    return repeated
