"""Elements as rows of codes, read on or looked up."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.iteration import iteration as module
from shardctl.core.iteration.iteration import Iteration
from shardctl.core.iteration.nodes.batch import Batch
from shardctl.core.iteration.nodes.repeat import Repeat
from shardctl.core.iteration.nodes.shuffle import FILLER, Rows
from shardctl.core.iteration.nodes.source import Source

ROWS = [[0, 1], [2, 3], [4, FILLER]] * 2


def batches() -> Iteration:
    iteration = Repeat(Batch(Source(range(5)), 2), 2).iterate()
    iteration.pull(9)
    return iteration


@pytest.mark.parametrize("piece", [1, 2, 100])
def test_rows_are_read_on_in_any_steps(piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", piece)
    rows = Rows(batches(), 2)
    steps = [(0, 1), (1, 4), (4, 4), (4, 6), (2, 5), (0, 6)]
    for start, stop in steps:
        assert rows.codes(start, stop).tolist() == ROWS[start:stop]


def test_rows_are_looked_up() -> None:
    assert Rows(batches(), 2).codes_at(np.array([5, 0])).tolist() == [ROWS[5], ROWS[0]]


def test_single_examples_are_no_rows() -> None:
    iteration = Source(range(5)).iterate()
    iteration.pull(5)
    assert Rows(iteration, 1).codes(1, 3).tolist() == [1, 2]
