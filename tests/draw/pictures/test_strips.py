"""The first blocks of an order in a terminal."""

from __future__ import annotations

import re
from typing import Any

from shardctl.draw.tables import PLAIN, Screen, display_width
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.view import simulate_table
from tests.cases import check_cases, few_or_many
from tests.draw.pictured import dataset, simulations
from tests.draw.pictures.drawn import drawn


def simulated(*lengths: int, skip: int = 0, take: int | None = None, **settings: Any) -> Simulation:
    return simulate(dataset(*lengths), "train", settings, skip=skip, take=take)


def lines(simulation: Simulation, width: int = 80, *, color: bool = False) -> list[str]:
    return drawn(simulation, width, color=color)


def test_cycle_3_block_2_by_hand() -> None:
    # Shards of 3, 5, 4 and 2: 0 1 | 3 4 | 8 9 | 2 | 5 6 | 10 11 | shard 3 takes slot 0: 12 13 | 7
    # 30 columns: 2 for each of 8 visits, and 14 more for 14 examples.
    assert lines(simulated(3, 5, 4, 2, cycle=3, block=2), 40) == [
        "To see: positions 0 to 13: a row is a",
        "slot, a number the shard it reads then",
        "  slot 0  0───        0──        3───",
        "  slot 1      1───       1───        1──",
        "  slot 2          2───       2───",
        "position  0   2   4   6  7   9   11  13",
    ]


def test_epochs_and_batches_stand_below_their_positions() -> None:
    found = lines(simulated(2, 2, cycle=2, block=1, epochs=2, batch=3))
    position, epoch, step = found[-3:]
    # Epoch 1 begins at position 4; steps at 0, 3 and 6.
    assert epoch.index("1") == position.index("4")
    assert [step.index(number) for number in "12"] == [position.index("3"), position.index("6")]


def test_without_slots_runs_follow_each_other() -> None:
    # A buffer of one mixes nothing: 0 0 | 1 | 2 nine times | 3 three times and both of epoch 1.
    found = lines(simulated(2, 1, 9, 3, buffer=1, buffer_seed=1, cycle=1, epochs=2), 100)
    assert found == [
        "To see: positions 0 to 29: a number is a shard (×N: N examples), read from left",
        "to right",
        "position  shard",
        "       0  0×2 1   2×9 3×3 0×2 1   2×9 3×3",
    ]


def test_as_many_rows_as_a_picture_has_follow_each_other() -> None:
    found = lines(simulated(*[1] * 300, buffer=1, buffer_seed=1, cycle=1), 50)
    rows = [list(map(int, re.findall(r"\d+", line))) for line in found if re.match(" +\\d", line)]
    assert len(rows) == 8
    shown = [shard for row in rows for shard in row[1:]]
    assert shown == list(range(len(shown)))
    assert [row[0] for row in rows] == [row[1] for row in rows]


def test_an_empty_stretch_has_no_picture() -> None:
    assert lines(simulated(3, 5, take=0)) == ["To see: no positions"]
    assert "".join(simulate_table(simulated(0), Screen(pictures=True))).count("\n") == 2


def test_a_table_has_them_where_the_screen_shows_pictures() -> None:
    simulation = simulated(3, 5, cycle=2, block=2)
    with_them = "".join(simulate_table(simulation, Screen(width=80, pictures=True)))
    assert "\n".join(lines(simulation)) in with_them
    assert "─" not in "".join(simulate_table(simulation, PLAIN))


def _without_codes(line: str) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", line)


@few_or_many(30, 120)
def test_no_line_is_wider_than_the_screen_and_shards_come_in_their_order(num_cases: int) -> None:
    def check(simulation: Simulation) -> None:
        order = simulation.order
        for width in (40, 57, 120):
            found = lines(simulation, width)
            assert all(display_width(line) <= width for line in found), found
            colored = lines(simulation, width, color=True)
            assert [_without_codes(line) for line in colored] == found
            if len(found) < 2 or order.codes.several_splits:
                continue
            head = " ".join(found[: next(i for i, line in enumerate(found) if line[:1] == " ")])
            last = int(re.findall(r"position(?:s \d+ to)? (\d+):", head)[0])
            codes = order.read(simulation.skip, last + 1)
            shards = order.codes.places(codes)[1].tolist()
            named = set()
            for line in found:
                match = re.match(r" *(slot )?\d+ (?P<row>.*)", line)
                if match:
                    named |= set(map(int, re.findall(r"(?<![×\d])\d+", match["row"])))
            assert set(shards) == named, found

    check_cases(simulations(), check, num_cases)
