"""A stretch of an order as people and programs read it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.files.documents import to_csv
from shardctl.planning.simulate import Simulation, simulate
from shardctl.rendering.simulate import (
    CSV_HEADER,
    array_file,
    array_num_bytes,
    id_lines,
    simulate_document,
    simulate_json,
    simulate_lines,
    simulate_rows,
    simulate_yaml,
    tfds_id_lines,
)
from tests.rendering.simulations import simulated, text

WRITERS: dict[str, Callable[[Simulation], Iterable[Any]]] = {
    "json": simulate_json,
    "yaml": simulate_yaml,
    "csv": lambda simulation: to_csv(CSV_HEADER, simulate_rows(simulation)),
    "ids": id_lines,
    "tfds-ids": tfds_id_lines,
    "jsonl": simulate_lines,
    "npy": array_file,
}


def written(simulation: Simulation, name: str) -> bytes:
    pieces: Iterable[str | bytes | memoryview] = WRITERS[name](simulation)
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def test_nothing_to_show_is_said() -> None:
    assert text(simulated(take=0)).splitlines()[1:] == ["none of 14 positions"]


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


def test_ids_of_several_splits_are_not_an_array() -> None:
    with pytest.raises(UsageError, match="npy holds numbers, and train\\+12 reads several"):
        list(chain(array_file(simulated("train+12"))))
