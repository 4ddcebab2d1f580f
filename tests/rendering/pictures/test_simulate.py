"""The first blocks of an order as a picture: what stands where, by hand and at random."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from shardctl.planning.shard_map import strips
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.pictures.picture import WIDTH, Box, Label, Line, Picture
from shardctl.rendering.pictures.simulate import simulate_pictures, strips_picture
from shardctl.rendering.pictures.svg import svg_file
from tests.cases import check_cases, few_or_many
from tests.rendering.pictured import dataset, simulations
from tests.rendering.pictures.drawn import check_labels


def drawn(*lengths: int, skip: int = 0, take: int | None = None, **settings: Any) -> Picture:
    simulation = simulate(dataset(*lengths), "train", settings, skip=skip, take=take)
    (picture,) = simulate_pictures(simulation)
    return picture


def blocks(picture: Picture) -> list[Box]:
    return [mark for mark in picture.marks if isinstance(mark, Box) and mark.role == "slot"]


def on_blocks(picture: Picture) -> list[str]:
    """Return the texts that are not of axes."""
    return [mark.text for mark in picture.marks if isinstance(mark, Label) and not mark.quiet]


def test_cycle_3_block_2_by_hand() -> None:
    # Shards of 3, 5, 4 and 2: ids 0-2, 3-7, 8-11, 12-13. Slots 0, 1, 2 take two each in turn:
    # 0 1 | 3 4 | 8 9 | 2 | 5 6 | 10 11 | shard 3 takes slot 0: 12 13 | 7
    picture = drawn(3, 5, 4, 2, cycle=3, block=2)
    assert [tuple(row) for row in picture.numbers.rows] == [
        (0, 0, 0, "0", 2, "0–1"),
        (2, 0, 1, "1", 2, "3–4"),
        (4, 0, 2, "2", 2, "8–9"),
        (6, 0, 0, "0", 1, "2"),
        (7, 0, 1, "1", 2, "5–6"),
        (9, 0, 2, "2", 2, "10–11"),
        (11, 0, 0, "3", 2, "12–13"),
        (13, 0, 1, "1", 1, "7"),
    ]
    assert picture.numbers.headings == ("position", "epoch", "slot", "shard", "examples", "ids")
    found = blocks(picture)
    # A row a slot, below each other; x is the position.
    rows = sorted({box.y for box in found})
    assert [rows.index(box.y) for box in found] == [0, 1, 2, 0, 1, 2, 0, 1]
    unit = (found[1].x - found[0].x) / 2
    assert [(box.x - found[0].x) / unit for box in found] == pytest.approx(
        [0, 2, 4, 6, 7, 9, 11, 13]
    )
    assert on_blocks(picture) == ["0", "1", "2", "0", "1", "2", "3", "1"]
    assert [box.slot for box in found] == [0, 1, 2, 0, 1, 2, 3, 1]
    assert found[3].title == "shard 0: slot 0, position 6, id 2"
    assert found[4].title == "shard 1: slot 1, positions 7 to 8, ids 5–6"
    assert picture.note is None
    assert picture.alternative.startswith("8 visits of 4 shards in 3 slots, positions 0 to 13.")


def test_epochs_and_batches_are_marked_where_they_begin() -> None:
    picture = drawn(2, 2, cycle=2, block=1, epochs=2, batch=3)
    labels = {m.text: m.x for m in picture.marks if isinstance(m, Label)}
    found = blocks(picture)
    # Positions 0 to 7; epoch 1 begins at 4, steps at 0, 3 and 6.
    assert labels["epoch 1"] == pytest.approx(found[4].x)
    assert labels["step 1"] == pytest.approx(found[3].x)
    lines = [m.points[0][0] for m in picture.marks if isinstance(m, Line) and m.dashed]
    assert sorted(lines) == pytest.approx(sorted(found[at].x for at in (0, 4, 0, 3, 6)))


def test_a_new_shard_in_a_slot_has_another_hue() -> None:
    found = blocks(drawn(*[1] * 24, cycle=8, block=1))
    by_row: dict[float, list[int]] = {}
    for box in found:
        by_row.setdefault(box.y, []).append(box.slot)
    assert all(one != after for row in by_row.values() for one, after in pairwise(row))


def test_without_slots_positions_follow_each_other_in_rows() -> None:
    picture = drawn(30, 30, buffer=1, buffer_seed=1, cycle=1, block=30)  # stays as it is stored
    assert [tuple(row) for row in picture.numbers.rows] == [
        (0, 0, "0", 30, "0–29"),
        (30, 0, "1", 30, "30–59"),
    ]
    rows = [
        mark.text
        for mark in picture.marks
        if isinstance(mark, Label) and mark.quiet and mark.anchor == "end" and mark.text.isdigit()
    ]
    assert rows[:3] == ["0", "20", "40"]
    # The first is cut at the end of its row: 20 and 10 positions, then 10 and 20.
    widths = [round(box.width + 1) for box in blocks(picture)]
    assert widths[0] == pytest.approx(2 * widths[1], abs=2)
    assert len(widths) == 4
    assert on_blocks(picture) == ["0", "1"]


def test_one_slot_is_read_as_lines_too() -> None:
    picture = drawn(3, 5, cycle=1, block=2)
    assert "row by row" in picture.caption
    assert [row[2] for row in picture.numbers.rows] == [0] * 5
    assert on_blocks(picture) == ["0", "0", "1", "1", "1"]


def test_an_empty_stretch_says_so() -> None:
    for picture in (drawn(3, 5, take=0), drawn(0), drawn(3, skip=3)):
        assert on_blocks(picture) == []
        assert [m.text for m in picture.marks if isinstance(m, Label)] == ["no positions"]
        assert picture.alternative == "There are no positions."
        assert picture.numbers.rows == []


def test_of_a_long_stretch_the_first_visits_are_drawn_and_a_note_says_so() -> None:
    picture = drawn(*[1000] * 100, cycle=4096, block=16)
    assert len(blocks(picture)) == len(picture.numbers.rows) == 24
    assert picture.note == (
        "The first 24 visits, positions 0 to 383; those after them are left out."
    )
    assert drawn(*[1000] * 100, cycle=4096, block=16, take=384).note is None


def test_a_stretch_in_the_middle_has_its_own_positions_and_slots() -> None:
    picture = drawn(*[10] * 40, cycle=40, block=1, skip=30, take=4)
    assert [tuple(row)[:4] for row in picture.numbers.rows] == [
        (30 + n, 0, 30 + n, str(30 + n)) for n in range(4)
    ]
    slots = [m.text for m in picture.marks if isinstance(m, Label) and m.anchor == "end"]
    assert slots[:4] == ["30", "31", "32", "33"]


def test_batches_too_many_to_mark_are_left_out_with_a_note() -> None:
    picture = drawn(30, 30, cycle=2, block=1, batch=1, take=40)
    assert picture.note == "Batches are too many here to mark where they begin."
    assert not [m for m in picture.marks if isinstance(m, Line) and m.dashed]


def _numbers(text: str) -> list[int]:
    """Return the ids that a cell of the table stands for; those left out are -1."""
    found: list[int] = []
    for part in text.split(", "):
        first, _, last = part.partition("–")
        found += [-1] if part == "…" else range(int(first), int(last or first) + 1)
    return found


@few_or_many(40, 120)
def test_labels_never_meet_and_the_table_has_the_ids_of_the_order(num_cases: int) -> None:
    def check(simulation: Simulation) -> None:
        (picture,) = simulate_pictures(simulation)
        check_labels(picture.marks, picture.height)
        for box in (mark for mark in picture.marks if isinstance(mark, Box)):
            assert box.x >= 0
            assert box.x + box.width <= WIDTH + 0.51
            assert 0 <= box.y <= box.y + box.height <= picture.height
            assert box.width > 0
        assert len(picture.numbers.rows) <= 96
        order, position = simulation.order, simulation.skip
        for row in picture.numbers.rows:
            codes = order.read(position, position + int(str(row[-2])))
            ids = _numbers(str(row[-1]))
            real = order.codes.split_ids(codes).tolist()
            if -1 in ids:
                ids, real = ids[:6] + ids[-1:], real[:6] + real[-1:]
            assert (row[0], ids) == (position, real)
            splits, shards, _ = order.codes.places(codes)
            names = {order.dataset.splits[split].name for split in splits.tolist()}
            (shard,) = set(shards.tolist())
            (name,) = names
            called = f"{name}:{shard}" if order.codes.several_splits else str(shard)
            assert row[-3] == called
            position += len(codes)
        if picture.note is None:
            assert position == simulation.skip + simulation.take
        assert len("".join(svg_file([picture])).encode()) < 40 * 1024

    check_cases(simulations(), check, num_cases)


def test_the_picture_of_a_report_is_that_of_the_command() -> None:
    simulation = simulate(dataset(30, 30, 30), "train", {"cycle": 3, "block": 2}, take=None)
    found = strips(simulation.order, 0, simulation.take)
    assert (
        strips_picture(found, simulation.order).numbers == simulate_pictures(simulation)[0].numbers
    )
