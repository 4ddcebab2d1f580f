"""Batches put together, and what was handed out before an error."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.errors import UsageError
from shardctl.live.process import GaveUpError, in_pieces


def test_small_batches_come_together_and_large_ones_alone() -> None:
    batches = iter([np.arange(3), np.arange(5000), np.arange(4095), np.arange(2), np.arange(1)])
    assert [(sizes, len(indices)) for sizes, indices in in_pieces(batches)] == [
        ([3, 5000], 5003),
        ([4095, 2], 4097),
        ([1], 1),
    ]
    assert list(in_pieces(iter([]))) == []


def test_what_came_before_an_error_is_handed_out_first() -> None:
    def broken() -> Iterator[Int64s]:
        yield np.arange(2)
        raise ValueError("\nfirst line\nsecond")

    pieces = in_pieces(broken())
    assert next(pieces)[0] == [2]
    with pytest.raises(GaveUpError, match=r"^first line$"):
        next(pieces)


def test_what_a_loader_of_ours_refuses_stays_as_it_is() -> None:
    def refused() -> Iterator[Int64s]:
        yield np.arange(1)
        raise UsageError("no")

    pieces = in_pieces(refused())
    next(pieces)
    with pytest.raises(UsageError, match="no"):
        next(pieces)


def test_closing_closes_what_hands_out() -> None:
    closed = []

    def batches() -> Iterator[Int64s]:
        try:
            while True:
                yield np.arange(5000)
        finally:
            closed.append(True)

    pieces = in_pieces(batches())
    next(pieces)
    pieces.close()
    assert closed == [True]
