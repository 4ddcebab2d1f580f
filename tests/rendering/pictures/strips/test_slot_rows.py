"""How many visits are drawn in rows of slots, and where the names of shards stand."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.planning.shard_map import strips
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.pictures.picture import Box, Label
from shardctl.rendering.pictures.simulate import first_slots, slot_rows
from tests.rendering.pictured import dataset


def simulated(*lengths: int, **settings: Any) -> Simulation:
    return simulate(dataset(*lengths), "train", settings, take=None)


@pytest.mark.parametrize(("cycle", "number"), [(2, 48), (24, 48), (25, 24), (4096, 24)])
def test_as_many_visits_as_there_is_room_for(cycle: int, number: int) -> None:
    order = simulated(*[100] * 30, cycle=cycle, block=1).order
    found = first_slots(strips(order, 0, 3000))
    assert len(found.visits) == number
    assert found.is_cut
    assert found.stop == number
    few = strips(order, 0, 10)
    assert first_slots(few) is few


def test_names_that_have_no_room_in_their_blocks_stand_beside_them() -> None:
    order = simulated(*[100] * 12, cycle=12, block=1).order
    marks, height = slot_rows(strips(order, 0, 48), order)
    names = [m for m in marks if isinstance(m, Label) and not m.quiet]
    assert [label.text for label in names] == [str(slot) for slot in range(12)] * 4
    assert not [label for label in names if label.on_slot is not None]
    assert {label.anchor for label in names} == {"start", "end"}  # at the right end before them
    assert len([mark for mark in marks if isinstance(mark, Box)]) == 48
    assert height > 12 * 22
