"""How many positions a row has, and where batches and epochs begin in it."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.planning.shard_map import strips
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.pictures.picture import Box, Label, Line
from shardctl.rendering.pictures.simulate import first_rows, position_rows
from tests.rendering.pictured import dataset


def simulated(*lengths: int, **settings: Any) -> Simulation:
    return simulate(dataset(*lengths), "train", settings, take=None)


@pytest.mark.parametrize(
    ("lengths", "settings", "per_row"),
    [
        ([50] * 9, {}, 20),  # names of one letter
        ([1] * 900, {"shuffle_seed": 1}, 12),  # of three
        ([50] * 9, {"batch": 8}, 24),  # whole batches
        ([50] * 9, {"batch": 100}, 20),  # one has no room
        ([1000] * 99, {"loader": "torch"}, 5000),  # 24 runs of 1000 in 8 rows
    ],
)
def test_a_row_has_room_for_names_for_whole_batches_and_for_long_runs(
    lengths: list[int], settings: dict[str, Any], per_row: int
) -> None:
    base = {} if "loader" in settings else {"buffer": 30, "buffer_seed": 1}
    order = simulated(*lengths, **base, **settings).order
    found, positions = first_rows(strips(order, 0, order.num_examples, most=200), order)
    assert positions == per_row
    assert len(found.visits) <= 96
    assert found.stop <= per_row * 8


def test_blocks_end_where_a_batch_begins_and_a_line_stands_there() -> None:
    order = simulated(6, 4, buffer=1, buffer_seed=1, cycle=1, batch=4, epochs=2).order
    found, per_row = first_rows(strips(order, 0, 20), order)
    assert per_row == 24  # six batches
    marks, _ = position_rows(found, order, per_row)
    boxes = [mark for mark in marks if isinstance(mark, Box)]
    # Runs 6 4 | 6 4, batches begin at 0, 4, 8, 12 and 16: 4 2 2 2 | 2 4 .. 4
    unit = (boxes[-1].x + boxes[-1].width - boxes[0].x) / 20
    assert [round(box.width / unit) for box in boxes] == [4, 2, 2, 2, 2, 4, 4]
    lines = [m for m in marks if isinstance(m, Line) and len(m.points) == 2 and m.role == "axis"]
    upright = [m for m in lines if abs(m.points[1][1] - m.points[0][1]) == pytest.approx(22)]
    assert [m.dashed for m in upright] == [True] * 5 + [False]
    said = [mark.text for mark in marks if isinstance(mark, Label)]
    assert said[:2] == ["a batch begins", "an epoch begins"]
    assert said[-1] == "epochs 0–1"


def test_a_run_that_goes_on_in_the_next_row_has_its_name_once() -> None:
    order = simulated(30, 3, buffer=1, buffer_seed=1, cycle=1).order
    found, per_row = first_rows(strips(order, 0, 33), order)
    marks, _ = position_rows(found, order, per_row)
    names = [mark for mark in marks if isinstance(mark, Label) and mark.on_slot is not None]
    assert [name.text for name in names] == ["0", "1"]
    assert len([mark for mark in marks if isinstance(mark, Box)]) == 3
