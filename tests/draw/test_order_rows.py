"""Rows of an order: a row is what a visit of a slot reads, folded where the screen ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.draw.drawn import simulated, text, without_codes
from tests.golden import assert_golden, rows

ALL = "train[:2]+12+validation_of_a_long_name_indeed"
CASES = rows(Path(__file__).with_name("rows.txt"))


def test_rows_are_those_on_file() -> None:
    found = []
    for name, text_of_case in CASES.items():
        spec, settings, width = eval(text_of_case, {"ALL": ALL})
        stretch = simulated(spec, **settings)
        plain, colored = text(stretch, width), text(stretch, width, color=True)
        assert without_codes(colored) == plain
        assert width is None or max(map(len, plain.splitlines())) <= width
        found += [f"== {name}\n{plain}", colored.replace("\x1b", "\\e")]
    assert_golden(Path(__file__).with_name("golden") / "rows.txt", "".join(found))


def test_every_id_is_in_its_row() -> None:
    settings: dict[str, Any]
    for settings in (
        {},
        {"cycle": 3, "block": 2, "shuffle_seed": 4, "epochs": 3},
        {"host": "1/3", "host_by": "examples", "block": 4},
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
