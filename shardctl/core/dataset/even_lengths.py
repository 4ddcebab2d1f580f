"""The lengths of shards that TFDS writes: boundaries at round(num_examples * i / num_shards)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shardctl.core.dataset.packed_ints import PackedInts

_FEW = 1 << 14  # up to so many shards cost less than importing NumPy
_PIECE = 1 << 18
_EXACT = 1 << 52  # below it every half is a float


def even_lengths(num_examples: int, num_shards: int) -> Sequence[int]:
    """Return the lengths of `num_shards` shards that TFDS writes `num_examples` to.

    Source: TFDS core/utils/shard_utils.py, get_shard_boundaries (float division, then Python's
    round to even).

    >>> even_lengths(10, 4)
    (2, 3, 3, 2)
    """
    if num_shards <= _FEW or num_examples >= _EXACT:
        ends = [round(num_examples * i / num_shards) for i in range(1, num_shards + 1)]
        return tuple(b - a for a, b in itertools.pairwise(itertools.chain((0,), ends)))
    return _of_many(num_examples, num_shards)


def _of_many(num_examples: int, num_shards: int) -> PackedInts:
    import numpy as np

    each, rest = divmod(num_examples, num_shards)
    lengths = np.empty(num_shards, np.int64)
    before = 0
    for start in range(0, num_shards, _PIECE):
        i = np.arange(start + 1, min(start + _PIECE, num_shards) + 1, dtype=np.int64)
        # The true quotient: a whole number, and a fraction of `num_shards`.
        further, fraction = np.divmod(rest * i, num_shards)
        ends = each * i + further
        from_half = 2 * fraction - num_shards
        # So near to a half the float may be the half itself, which is rounded to even: there it is
        # divided as TFDS does. A float lies within 2**-53 of the quotient, of itself.
        distance = np.abs(from_half)
        near = np.flatnonzero(
            (distance * 2.0**50 <= ends.astype(float) * num_shards) & (distance > 0)
        )
        ends += np.where(distance > 0, from_half > 0, ends & 1)
        for place in near.tolist():
            ends[place] = round(num_examples * int(i[place]) / num_shards)
        lengths[start : start + len(i)] = np.diff(ends, prepend=before)
        before = int(ends[-1])
    return PackedInts.of_int64s(lengths)
