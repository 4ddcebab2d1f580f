"""Runs: whole numbers that count on one by one, as (first, length)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from shardctl.core.arrays import Int64s

Runs = tuple[Int64s, Int64s]  # the first number of each run, and its length, above 0


def runs_in(values: Int64s) -> Runs:
    """Return the runs of some numbers, as long as can be.

    >>> [column.tolist() for column in runs_in(np.array([4, 5, 6, 6, 9, 8]))]
    [[4, 6, 9, 8], [3, 1, 1, 1]]
    """
    # The first number of each run.
    begins = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1] + 1, out=begins[1:])
    starts = np.flatnonzero(begins)
    return values[starts], np.diff(starts, append=len(values))


def joined_runs(pieces: Iterable[Runs]) -> Iterator[Runs]:
    """Yield runs that came in pieces, with those made one that count on from one to the next.

    So the runs of some numbers are the same however they were cut before.

    >>> pieces = [(np.array([0, 4]), np.array([4, 1])), (np.array([5, 0]), np.array([2, 3]))]
    >>> [[column.tolist() for column in piece] for piece in joined_runs(pieces)]
    [[[0], [7]], [[0], [3]]]
    """
    last: Runs | None = None  # which may go on in the next piece
    for piece in pieces:
        firsts, lengths = _joined(piece if last is None else _behind(last, piece))
        if len(firsts) > 1:
            yield firsts[:-1], lengths[:-1]
        last = firsts[-1:], lengths[-1:]
    if last is not None and len(last[0]):
        yield last


def _behind(last: Runs, piece: Runs) -> Runs:
    return np.concatenate([last[0], piece[0]]), np.concatenate([last[1], piece[1]])


def _joined(piece: Runs) -> Runs:
    firsts, lengths = piece
    follows = firsts[1:] == firsts[:-1] + lengths[:-1]
    if not follows.any():
        return piece
    starts = np.concatenate([[0], np.flatnonzero(~follows) + 1])
    return firsts[starts], np.add.reduceat(lengths, starts)
