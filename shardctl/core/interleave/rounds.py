"""Round-robin with slots that stop: the ordinal of each visit, and the visit of each ordinal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shardctl.core.arrays import Int64s


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Rounds:
    """Slots visited in turn, round after round, each until the round from which on it is idle.

    A visit is (round, slot); its ordinal counts the visits before it, from 0. Between two stops
    the active slots stay the same, so an ordinal is `first_ordinal + (round - first_round) *
    num_active + rank`, the rank being the number of active slots before this one. Nothing here
    multiplies a round by more slots than are active in it, so no int64 overflows while the visits
    themselves can be counted in one.

    `stops` is int64[slots], each at least 1; the segments are the stretches of rounds without a
    stop (`first_round`, `first_ordinal`, `num_active`: int64[segments], the last one has no slot).
    """

    stops: Int64s
    first_round: Int64s
    first_ordinal: Int64s
    num_active: Int64s
    latest_first: Int64s
    zeros_before: tuple[npt.NDArray[np.int32], ...]

    @classmethod
    def until(cls, stops: Int64s) -> Rounds:
        """Return the rounds of slots that stop at `stops` (int64[slots], each >= 1).

        >>> rounds = Rounds.until(np.array([2, 1, 3]))  # visits: 0 1 2, 0 2, 2
        >>> [list(map(int, x)) for x in rounds.places(np.arange(6))]
        [[0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 2, 2]]
        >>> rounds.ordinals(np.array([1, 2]), np.array([2, 2])).tolist()
        [4, 5]
        """
        # The last of each run of equal stops: where it is, and how long the run was.
        ascending = np.sort(stops)
        last = np.flatnonzero(np.diff(ascending, append=ascending[-1:] + 1))
        borders, num_stopping = ascending[last], np.diff(last, prepend=-1)
        first_round = np.concatenate([[0], borders])
        num_active = len(stops) - np.concatenate([[0], np.cumsum(num_stopping)])
        visits = np.diff(first_round) * num_active[:-1]
        latest_first = np.argsort(-stops, kind="stable")
        return cls(
            stops=stops,
            first_round=first_round,
            first_ordinal=np.concatenate([[0], np.cumsum(visits)]),
            num_active=num_active,
            latest_first=latest_first,
            zeros_before=_wavelet_tree(latest_first),
        )

    def ordinals(self, rounds: Int64s, slots: Int64s) -> Int64s:
        """Return how many visits come before (round, slot); both int64[q], of visits that exist."""
        # Before the first stop all slots are active. Products that wrap around are of later
        # rounds, the tail, and are replaced.
        ordinals = rounds * len(self.stops) + slots
        tail = np.flatnonzero(rounds >= self.first_round[1])
        if tail.size:
            rounds, slots = rounds[tail], slots[tail]
            segment = self.first_round.searchsorted(rounds, side="right") - 1
            num_active = self.num_active[segment]
            ordinals[tail] = (
                self.first_ordinal[segment]
                + (rounds - self.first_round[segment]) * num_active
                + self._rank(num_active, slots)
            )
        return ordinals

    def places(self, ordinals: Int64s) -> tuple[Int64s, Int64s]:
        """Return (round, slot), both int64[q], of the visits with these ordinals (int64[q])."""
        rounds, slots = np.divmod(ordinals, len(self.stops))
        tail = np.flatnonzero(ordinals >= self.first_ordinal[1])
        if tail.size:
            late = ordinals[tail]
            # The last segment has no active slot and no visit: no ordinal falls into it.
            segment = self.first_ordinal[:-1].searchsorted(late, side="right") - 1
            num_active = self.num_active[segment]
            full_rounds, rank = np.divmod(late - self.first_ordinal[segment], num_active)
            rounds[tail] = self.first_round[segment] + full_rounds
            slots[tail] = self._select(num_active, rank)
        return rounds, slots

    def _rank(self, num_active: Int64s, slots: Int64s) -> Int64s:
        """Return how many of the `num_active` slots that stop last are smaller than `slots`."""
        # Down the tree along the bits of each slot: `inside` counts the active slots in the node.
        inside, rank = num_active, np.zeros_like(slots)
        for bit, zeros_before in _levels(self.zeros_before):
            node = slots >> (bit + 1) << (bit + 1)
            zeros = zeros_before[node + inside] - zeros_before[node]
            is_one = (slots >> bit & 1).astype(bool)
            rank += np.where(is_one, zeros, 0)
            inside = np.where(is_one, inside - zeros, zeros)
        return rank

    def _select(self, num_active: Int64s, rank: Int64s) -> Int64s:
        """Return the slot with this rank among the `num_active` slots that stop last."""
        # Down the tree to where the rank falls; the bits of the path are the slot.
        inside, slots = num_active, np.zeros_like(rank)
        for bit, zeros_before in _levels(self.zeros_before):
            zeros = zeros_before[slots + inside] - zeros_before[slots]
            is_one = rank >= zeros
            rank = np.where(is_one, rank - zeros, rank)
            inside = np.where(is_one, inside - zeros, zeros)
            slots += is_one.astype(np.int64) << bit
        return slots


def _wavelet_tree(values: Int64s) -> tuple[npt.NDArray[np.int32], ...]:
    """Return, for each bit from the highest, the count of zero bits before each place.

    `values` is a permutation of 0..n-1, so that the node of the values sharing their high bits
    starts, at its level, at the smallest of them: no table of nodes is needed. The tree answers
    "how many of the first a values are below s" and its inverse in log2(n) steps (Grossi, Gupta
    and Vitter 2003), for any mix of a, which a loop over the stops could not.
    """
    levels = []
    for bit in reversed(range((len(values) - 1).bit_length())):
        values = values[np.argsort(values >> (bit + 1), kind="stable")]
        zeros = np.zeros(len(values) + 1, dtype=np.int32)
        np.cumsum((values >> bit & 1) == 0, out=zeros[1:])
        levels.append(zeros)
    return tuple(levels)


def _levels(
    zeros_before: tuple[npt.NDArray[np.int32], ...],
) -> list[tuple[int, npt.NDArray[np.int32]]]:
    return list(zip(reversed(range(len(zeros_before))), zeros_before, strict=True))
