"""Rows of an order: a row is what a visit of a slot reads, folded where the screen ends."""

from __future__ import annotations

import re
from typing import Any

import pytest

from shardctl.draw.tables import PLAIN
from shardctl.spec.host import Host
from shardctl.verbs.simulate.view import simulate_table
from tests.draw.drawn import simulated, text


def test_a_row_is_what_one_visit_of_a_slot_reads() -> None:
    assert text(simulated(cycle=2, block=2)) == (
        "train of d: cycle 2, block 2\n"
        "positions 0 to 13 of 14\n"
        "position  slot  shard  ids\n"
        "       0     0  0      0 1\n"
        "       2     1  2      5 6\n"
        "       4     0  0      2 3\n"
        "       6     1  2      7\n"
        "       7     0  0      4\n"
        "       8     1  3      8 9\n"
        "      10     1  3      10 11\n"
        "      12     1  3      12 13\n"
    )


def test_one_file_at_a_time_has_no_slots_and_rows_of_a_block() -> None:
    assert text(simulated(cycle=1, block=4, skip=3, take=6)) == (
        "train of d: cycle 1, block 4\n"
        "positions 3 to 8 of 14\n"
        "position  shard  ids\n"
        "       3  0      3\n"
        "       4  0      4\n"
        "       5  2      5 6 7\n"
        "       8  3      8\n"
    )


def test_an_example_that_comes_again_is_of_another_visit() -> None:
    assert text(simulated("train[:1]+train[:1]", cycle=1)).splitlines()[2:] == [
        "position  shard  ids",
        "       0  0      0",
        "       1  0      0",
    ]


def test_epochs_and_batches_divide_the_rows() -> None:
    assert text(simulated("12", epochs=2, batch=3)) == (
        "12 of d: cycle 16, block 16, 2 epochs, batches of 3\n"
        "positions 0 to 3 of 4\n"
        "position  epoch  step  slot  shard  ids\n"
        "       0      0     0     0  0      0 1\n"
        "       2      1     0     0  0      0\n"
        "       3      1     1     0  0      1\n"
    )


def test_several_splits_are_named_once_a_row() -> None:
    assert text(simulated("train[:2]+12+validation_of_a_long_name_indeed", block=1)) == (
        "train[:2]+12+validation_of_a_long_name_indeed of d: cycle 16, block 1\n"
        "positions 0 to 6 of 7\n"
        "position  slot  shard                               ids\n"
        "       0     0  train:0                             0\n"
        "       1     1  12:0                                0\n"
        "       2     2  validation_of_a_long_name_indeed:0  0\n"
        "       3     3  validation_of_a_long_name_indeed:1  2\n"
        "       4     0  train:0                             1\n"
        "       5     1  12:0                                1\n"
        "       6     2  validation_of_a_long_name_indeed:0  1\n"
    )


def test_a_long_name_of_a_split_is_cut_on_a_terminal() -> None:
    lines = text(simulated("train[:2]+validation_of_a_long_name_indeed", block=1), 80).splitlines()
    assert lines[2:5] == [
        "position  slot  shard                   ids",
        "       0     0  train:0                 0",
        "       1     1  validation_of_a_lon…:0  0",
    ]


def test_behind_a_buffer_each_id_says_its_shard() -> None:
    lines = text(simulated(cycle=1, buffer=3, buffer_seed=1)).splitlines()
    assert lines[0] == "train of d: cycle 1, block 16, shuffle buffer 3 with seed 1"
    assert lines[2] == "position  id@shard"
    cells = [cell for line in lines[3:] for cell in line.split()[1:]]
    expected = simulated(cycle=1, buffer=3, buffer_seed=1).ids().tolist()
    assert cells == [f"{i}@{0 if i < 5 else 2 if i < 8 else 3}" for i in expected]
    assert [line.split()[0] for line in lines[3:]] == ["0", "8"]


def test_every_id_is_in_its_row() -> None:
    settings: dict[str, Any]
    for settings in (
        {},
        {"cycle": 3, "block": 2, "shuffle_seed": 4, "epochs": 3},
        {"host": Host(index=1, count=3), "host_by": "examples", "block": 4},
        {"repeat_files": True, "epochs": 3, "cycle": 2, "block": 3, "shuffle_seed": 1},
        {"cycle": 1, "block": 100, "epochs": 20},
    ):
        simulation = simulated(**settings)
        expected = simulation.ids().tolist()
        for width in (None, 30, 60):
            rows = text(simulation, width).split("ids\n", 1)[1]
            # After the position, the epoch, the slot and the shard; further lines are ids alone.
            columns = rows.splitlines()
            lead = len(text(simulation).split("ids\n", 1)[0].splitlines()[-1])
            ids = [int(word) for line in columns for word in line[lead:].split()]
            assert ids == expected
            starts = [int(line[:lead].split()[0]) for line in columns if line[:lead].strip()]
            assert starts == sorted(set(starts))


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("settings", [{}, {"buffer": 5, "buffer_seed": 1}, {"batch": 3}])
def test_no_line_is_wider_than_the_screen(width: int, settings: dict[str, Any]) -> None:
    for spec in ("train", "all") if width >= 60 else ("train",):
        lines = text(simulated(spec, epochs=2, **settings), width).splitlines()
        assert max(map(len, lines)) <= width


def test_looks_tell_slots_or_shards_apart_and_change_no_character() -> None:
    pipelines: list[dict[str, Any]] = [{"cycle": 2, "block": 2}, {"buffer": 4, "buffer_seed": 1}]
    for settings in pipelines:
        plain = text(simulated(**settings), 80)
        colored = text(simulated(**settings), 80, color=True)
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
        assert "\x1b[4m" in colored
        assert "\x1b" not in plain


def test_an_id_looks_like_its_slot_whichever_shard_it_comes_from() -> None:
    # Slot 0 reads shard 0, slot 1 shard 2 and then shard 3; slot 1 is underlined.
    rows = text(simulated(cycle=2, block=2), 80, color=True).splitlines()[3:]
    assert [row.split("  ")[-1].strip() for row in rows] == [
        "0 1", "\x1b[4m5 6\x1b[0m", "2 3", "\x1b[4m7\x1b[0m", "4",
        "\x1b[4m8 9\x1b[0m", "\x1b[4m10 11\x1b[0m", "\x1b[4m12 13\x1b[0m",
    ]  # fmt: skip


def test_without_slots_each_shard_gets_the_next_look() -> None:
    rows = text(simulated(cycle=1, block=4), 80, color=True).splitlines()[3:]
    looks = [row.count("\x1b[4m") - row.count("\x1b[1m") for row in rows]
    assert looks == [0, 0, 1, -1, -1]  # shards 0, 0, 2, 3, 3: as it is, underlined, bold


def test_a_piped_table_is_never_folded() -> None:
    lines = "".join(simulate_table(simulated("train", block=32), PLAIN)).splitlines()
    assert lines[3].split() == ["0", "0", "0", "0", "1", "2", "3", "4"]
