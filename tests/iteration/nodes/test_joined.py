"""Iterations one after the other, looked up across them."""

from __future__ import annotations

import numpy as np

from shardctl.iteration.batch import Batch
from shardctl.iteration.iteration import Source
from shardctl.iteration.repeat import Joined, in_order
from tests.iteration.elements import check_lookups


class ThreePieces(Joined):
    """Batches of two, of three, and none."""

    def __init__(self) -> None:
        super().__init__()
        nodes = (Batch(Source(range(5)), 2), Batch(Source(range(3)), 3), Batch(Source(()), 3))
        self.pieces = [node.iterate() for node in nodes]

    def _advance(self, count: int) -> int:
        return sum(piece.pull(count) for piece in self.pieces)


def test_elements_of_all_pieces_are_looked_up() -> None:
    joined = ThreePieces()
    assert joined.pull(9) == 4
    assert check_lookups(joined) == [[0, 1], [2, 3], [4], [0, 1, 2]]
    assert joined.starts.tolist() == [0, 3, 4, 4]
    assert joined.example_starts.tolist() == [0, 5, 8, 8]


def test_elements_may_be_asked_for_in_any_order() -> None:
    joined = ThreePieces()
    joined.pull(9)
    assert joined.examples(np.array([3, 0, 2, 3])).tolist() == [0, 1, 2, 0, 1, 4, 0, 1, 2]
    assert joined.widths(np.array([3, 0, 2])).tolist() == [3, 2, 1]


def test_of_no_piece_there_is_nothing() -> None:
    joined = ThreePieces()
    joined.pieces = []
    assert (joined.num_examples, joined.width) == (0, 1)


def test_ordered_by_query_then_place() -> None:
    query, places = in_order(np.array([1, 0, 1]), np.array([2, 9, 1]))
    assert (query.tolist(), places.tolist()) == ([0, 1, 1], [9, 1, 2])
