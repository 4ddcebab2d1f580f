"""Rows of an order: a row is what a visit of a slot reads, folded where the screen ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.draw.drawn import simulated, text, without_codes
from tests.golden import assert_golden

ALL = "train[:2]+12+validation_of_a_long_name_indeed"
CASES: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "a row is what one visit of a slot reads": ("train", {"cycle": 2, "block": 2}, None),
    "one file at a time has no slots": (
        "train",
        {"cycle": 1, "block": 4, "skip": 3, "take": 6},
        80,
    ),
    "an example that comes again is of another visit": ("train[:1]+train[:1]", {"cycle": 1}, 80),
    "epochs and batches divide the rows": ("12", {"epochs": 2, "batch": 3}, 80),
    "several splits are named once a row": (ALL, {"block": 1}, None),
    "a long name of a split is cut on a terminal": (ALL, {"block": 1}, 80),
    "behind a buffer each id says its shard": (
        "train",
        {"cycle": 1, "buffer": 3, "buffer_seed": 1},
        80,
    ),
    "blocks that are long are folded": ("train", {"cycle": 1, "block": 100, "epochs": 20}, 40),
    "nothing is folded in a pipe": ("train", {"cycle": 1, "block": 100, "epochs": 20}, None),
    "a host's share": ("train", {"host": "1/3", "host_by": "examples", "block": 4}, 80),
    "files that repeat": ("train", {"repeat_files": True, "epochs": 2, "cycle": 2, "block": 3}, 80),
    "what a line says of settings": (
        "train",
        {"reverse": True, "shuffle_seed": 3, "reshuffle": False, "pass_index": 2, "take": 2},
        80,
    ),
    "and of others": (
        "train",
        {
            "shuffle_files": True,
            "global_seed": 3,
            "deterministic": True,
            "buffer": -2,
            "buffer_seed": 1,
            "batch": 4,
            "drop_remainder": True,
            "loop": "keras-fit",
            "take": 2,
        },
        None,
    ),
}


def test_rows_are_those_on_file() -> None:
    found = []
    for name, (spec, settings, width) in CASES.items():
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
