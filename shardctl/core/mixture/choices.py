"""Choices of `sample_from_datasets`: which input each one takes, at any place of the sequence.

TensorFlow makes them of `Dataset.random(seed).batch(2)`: the two numbers of choice k are the seed
of `stateless_multinomial`, which draws one uniform number of 52 bits and looks it up in the running
totals of the weights (tensorflow/core/kernels/stateless_random_ops.cc, GenerateKey, and
multinomial_op.cc). So choice k costs only itself, wherever it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shardctl.core.arrays import EqualByItems, Int64s
from shardctl.core.mixture.weights import Float64s
from shardctl.core.shuffle.philox import philox_rounds, philox_samples
from shardctl.core.shuffle.seeds import KernelSeeds
from shardctl.core.tfds_rules import STATELESS_KEY

_KEY_0, _KEY_1 = map(np.uint64, STATELESS_KEY)
_LOW_20 = np.uint64(0xFFFFF)
_WORD_BITS = np.uint64(32)
_TILE = 1 << 14  # choices made at once: their twelve words stay in a level 2 cache
_FEW = 16  # running totals that are compared one by one faster than looked up


@dataclass(frozen=True, kw_only=True, eq=False)
class SampledChoices(EqualByItems):
    """The choices of one iterator: those that `seeds` and `cumulative` weights fix.

    >>> from shardctl.core.mixture.weights import cumulative_of
    >>> seeds = KernelSeeds(seed=87654321, seed2=42)
    >>> choices = SampledChoices(seeds=seeds, cumulative=cumulative_of([0.7, 0.3]))
    >>> choices.between(0, 12).tolist()
    [1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    """

    seeds: KernelSeeds
    cumulative: Float64s

    def between(self, start: int, stop: int) -> Int64s:
        """Return the input of each choice from `start` up to `stop`, int64."""
        choices = np.empty(stop - start, np.int64)
        for first in range(start, stop, _TILE):
            last = min(first + _TILE, stop)
            choices[first - start : last - start] = self._tile(first, last)
        return choices

    def _tile(self, start: int, stop: int) -> Int64s:
        draws = philox_samples(self.seeds.seed, self.seeds.seed2, 2 * start, 2 * (stop - start))
        words = np.zeros((4, stop - start), np.uint64)
        words[0], words[2] = draws[::2], draws[1::2]
        philox_rounds(words, _KEY_0, _KEY_1)
        key_0, key_1 = words[:2].copy()
        words[:2] = 0
        philox_rounds(words, key_0, key_1)
        bits = (words[0] & _LOW_20) << _WORD_BITS | words[1]
        wanted = bits.astype(np.float64) * 2.0**-52 * self.cumulative[-1]
        if len(self.cumulative) > _FEW:
            return np.asarray(np.searchsorted(self.cumulative, wanted, "right"), np.int64)
        found = np.zeros(len(wanted), np.int8)
        for total in self.cumulative[:-1]:
            found += wanted >= total
        return found.astype(np.int64)
