"""Blocks of shards and where their names stand."""

from __future__ import annotations

import pytest

from shardctl.planning.shard_map import strips
from shardctl.planning.simulate import simulate
from shardctl.rendering.pictures.picture import Label, text_width
from shardctl.rendering.pictures.simulate import block, block_label, cut, names_of
from tests.rendering.pictured import dataset

ORDER = simulate(dataset(30, 30), "train", {"cycle": 2, "block": 4}, take=None).order


@pytest.mark.parametrize(
    ("right", "room", "x", "anchor", "on"),
    [
        (40, (0, 100), 25, "middle", 3),  # in a block of 30 units
        (12, (0, 100), 15, "start", None),  # behind a block of 2
        (12, (-40, 14), 7, "end", None),  # before it, where another follows
        (12, (10, 14), None, None, None),  # nowhere
    ],
)
def test_a_name_is_in_its_block_else_behind_or_before_it(
    right: float, room: tuple[float, float], x: float | None, anchor: str | None, on: int | None
) -> None:
    assert text_width("7") < 12
    found = block_label("7", 3, (10, right), room, 0)
    labels = [(m.x, m.anchor, m.on_slot) for m in found if isinstance(m, Label)]
    assert labels == ([] if x is None else [(x, anchor, on)])


def test_a_block_says_its_ids_where_a_pointer_rests() -> None:
    found = strips(ORDER, 0, 60)
    box = block(found.visits[1], found, ORDER, (10, 30, 5), 2)
    assert box.title == "shard 1: slot 1, positions 4 to 7, ids 30–33"
    assert (box.x, box.width, box.role, box.slot) == (10, 19, "slot", 2)


def test_what_is_cut_ends_where_the_next_visit_begins() -> None:
    found = strips(ORDER, 0, 60)
    assert cut(found, len(found.visits)) is found
    first = cut(found, 2)
    assert (first.stop, first.is_cut, names_of(first)) == (8, True, ["0", "1"])
