"""A stretch of an order as people and programs read it."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import chain
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.simulate import FORMATS, array_num_bytes, simulate_document, simulate_table
from shardctl.rendering.text.screen import PLAIN, Screen

LENGTHS = {"train": (5, 0, 3, 6), "12": (2,), "validation_of_a_long_name_indeed": (2, 1)}
TOY = Dataset(
    name="d",
    splits=tuple(
        Split(
            name=name,
            shard_lengths=lengths,
            files=(ShardFiles(pattern=f"d-{name}-\0", num_shards=len(lengths)),),
        )
        for name, lengths in LENGTHS.items()
    ),
)


def simulated(
    spec: str = "train", *, skip: int = 0, take: int | None = None, **settings: object
) -> Simulation:
    return simulate(TOY, spec, ReadSettings(**settings), skip=skip, take=take)  # type: ignore[arg-type]


def text(simulation: Simulation, width: int | None = None, *, color: bool = False) -> str:
    return "".join(simulate_table(simulation, Screen(width=width, color=color)))


def written(simulation: Simulation, name: str) -> bytes:
    pieces = FORMATS[name](simulation)
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


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


def test_epochs_and_batches_part_the_rows() -> None:
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
        "position  slot  shard                   ids\n"
        "       0     0  train:0                 0\n"
        "       1     1  12:0                    0\n"
        "       2     2  validation_of_a_lon…:0  0\n"
        "       3     3  validation_of_a_lon…:1  2\n"
        "       4     0  train:0                 1\n"
        "       5     1  12:0                    1\n"
        "       6     2  validation_of_a_lon…:0  1\n"
    )


def test_behind_a_buffer_each_id_says_its_shard() -> None:
    lines = text(simulated(cycle=1, buffer=3, buffer_seed=1)).splitlines()
    assert lines[0] == "train of d: cycle 1, block 16, shuffle buffer 3 with seed 1"
    assert lines[2] == "position  id@shard"
    cells = [cell for line in lines[3:] for cell in line.split()[1:]]
    expected = simulated(cycle=1, buffer=3, buffer_seed=1).ids().tolist()
    assert cells == [f"{i}@{0 if i < 5 else 2 if i < 8 else 3}" for i in expected]
    assert [line.split()[0] for line in lines[3:]] == ["0", "8"]


def test_every_id_stands_in_its_row() -> None:
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


def test_colours_tell_shards_apart_and_change_no_character() -> None:
    pipelines: list[dict[str, Any]] = [{"cycle": 2, "block": 2}, {"buffer": 4, "buffer_seed": 1}]
    for settings in pipelines:
        plain = text(simulated(**settings), 80)
        colored = text(simulated(**settings), 80, color=True)
        assert re.sub(r"\x1b\[[\d;]*m", "", colored) == plain
        assert "\x1b[36m" in colored
        assert "\x1b[33m" in colored
        assert "\x1b" not in plain


def test_nothing_to_show_is_said() -> None:
    assert text(simulated(take=0)).splitlines()[1:] == ["none of 14 positions"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reverse": True}, "files reversed"),
        (
            {"shuffle_seed": 3, "reshuffle": False},
            "files shuffled with seed 3, the same each epoch",
        ),
        (
            {"shuffle_files": True, "global_seed": 3, "deterministic": True},
            "files shuffled, global seed 3",
        ),
        ({"repeat_files": True}, "files repeated"),
        ({"host": Host(index=1, count=2), "host_by": "files"}, "host 1/2 by files"),
        ({"buffer": -2, "buffer_seed": 1}, "shuffle buffer the whole epoch with seed 1"),
        ({"batch": 4, "drop_remainder": True}, "batches of 4, last dropped"),
        ({"pass_index": 2, "loop": "keras-fit"}, "pass 2, Keras fit"),
    ],
)
def test_one_line_names_the_pipeline_in_force(settings: dict[str, Any], words: str) -> None:
    assert text(simulated(**settings)).splitlines()[0].endswith(words)


def test_the_fields_of_the_document() -> None:
    document = simulate_document(simulated(skip=2, take=3, cycle=1))
    assert list(document) == [
        *("format_version", "kind", "dataset", "spec", "pipeline"),
        *("num_examples", "skip", "take", "ids"),
    ]
    assert (document["format_version"], document["kind"]) == (1, "simulate")
    assert list(document["dataset"]) == [
        *("name", "config", "version", "file_format", "data_dir", "fingerprint"),
    ]
    assert [document[name] for name in ("num_examples", "skip", "take", "ids")] == [
        14,
        2,
        3,
        [2, 3, 4],
    ]


@given(
    st.sampled_from(["train", "12", "all", "12+train"]),
    st.integers(0, 14),
    st.none() | st.integers(0, 20),
)
def test_json_and_yaml_written_in_chunks_are_the_document(
    spec: str, skip: int, take: int | None
) -> None:
    skip = min(skip, simulated(spec).order.num_examples)
    simulation = simulated(spec, skip=skip, take=take, cycle=2, block=2)
    document = simulate_document(simulation)
    assert json.loads(written(simulation, "json")) == document
    assert yaml.safe_load(written(simulation, "yaml")) == document


def test_the_ids_of_a_long_order_are_one_list_in_json_and_yaml() -> None:
    files = ShardFiles(pattern="d-\0", num_shards=1)
    split = Split(name="train", shard_lengths=(40_000,), files=(files,))
    simulation = simulate(Dataset(name="d", splits=(split,)), take=None)
    assert json.loads(written(simulation, "json"))["ids"] == list(range(40_000))
    assert yaml.load(written(simulation, "yaml"), yaml.CSafeLoader)["ids"] == list(range(40_000))


def test_lines_rows_and_records_say_the_same() -> None:
    for spec in ("train", "all"):
        simulation = simulated(spec, skip=3, epochs=2, batch=4, cycle=2, block=2)
        records = [json.loads(line) for line in written(simulation, "jsonl").splitlines()]
        rows = list(csv.DictReader(io.StringIO(written(simulation, "csv").decode())))
        assert [{name: str(v) for name, v in record.items()} for record in records] == rows
        assert list(records[0]) == [
            *("position", "epoch", "step", "id", "tfds_id", "filename", "index_in_shard"),
        ]
        names = simulation.order.codes.ids(simulation.ids())
        assert [record["id"] for record in records] == names
        assert written(simulation, "ids").decode().splitlines() == list(map(str, names))
        tfds_ids = written(simulation, "tfds-ids").decode().splitlines()
        assert tfds_ids == [record["tfds_id"] for record in records]
        assert tfds_ids == [f"{r['filename']}__{r['index_in_shard']}" for r in records]
        assert [record["position"] for record in records] == list(range(3, 3 + len(records)))
        assert [record["step"] for record in records] == [
            i // 4 for i in range(3, 3 + len(records))
        ]


def test_an_npy_file_is_what_numpy_saves() -> None:
    for take in (0, 1, None):
        simulation = simulated(take=take, shuffle_seed=1)
        expected = io.BytesIO()
        np.save(expected, simulation.ids())
        assert written(simulation, "npy") == expected.getvalue()
        assert array_num_bytes(simulation) == len(expected.getvalue())


def test_ids_of_several_splits_are_no_array() -> None:
    with pytest.raises(UsageError, match="npy holds numbers, and train\\+12 reads several"):
        list(chain(FORMATS["npy"](simulated("train+12"))))


def test_a_piped_table_is_never_folded() -> None:
    lines = "".join(simulate_table(simulated("train", block=32), PLAIN)).splitlines()
    assert lines[3].split() == ["0", "0", "0", "0", "1", "2", "3", "4"]
