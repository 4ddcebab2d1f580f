"""Where in storage the examples of an epoch lie, as a few thousand points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.planning.quality.sample import Floats, OrderSample

_MOST = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Places:
    """Points of an epoch: how far into it each is, and how far into storage its example lies.

    Both are parts from 0 to 1, float64[k]: the middle of what an example takes of either.
    """

    positions: Floats
    storage: Floats

    def __len__(self) -> int:
        return len(self.positions)


def places(sample: OrderSample, *, most: int = _MOST) -> Places:
    """Return at most so many points of what is measured of an epoch, all where there are fewer.

    One point in each equal part of what is measured, at random there: at equal distances they
    would show the same slot of the interleave again and again. The same sample has the same points.

    >>> from shardctl.planning.quality.sample import sample_of
    >>> found = places(sample_of(np.array([1, 0]), np.array([0, 0])))
    >>> found.positions.tolist(), found.storage.tolist()
    ([0.25, 0.75], [0.75, 0.25])
    """
    count = min(most, sample.num_measured)
    edges = np.arange(count + 1) * sample.num_measured // max(count, 1)
    chosen = np.random.default_rng(0).integers(edges[:-1], edges[1:]) if count else edges[:0]
    rows, columns = np.divmod(chosen, max(sample.length, 1))
    positions = sample.starts[rows] + columns
    return Places(
        positions=(positions + 0.5) / sample.num_positions,
        storage=(sample.ranks[rows, columns] + 0.5) / sample.num_ranks,
    )
