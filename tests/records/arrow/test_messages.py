"""Metadata of messages, as pyarrow writes them, and any other bytes."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from shardctl.records.arrow import read_message
from tests.cases import counted


def batch(num_rows: int) -> pa.RecordBatch:
    return pa.record_batch({"x": list(range(num_rows)), "t": ["é"] * num_rows})


def metadata(serialized: pa.Buffer) -> bytes:
    """Return the metadata of a message without its prefix of eight bytes."""
    data = serialized.to_pybytes()
    assert data[:4] == b"\xff\xff\xff\xff"
    return bytes(data[8 : 8 + int.from_bytes(data[4:8], "little")])


@pytest.mark.parametrize("num_rows", [0, 1, 1000, 70_000])
def test_the_rows_and_the_body_of_a_batch(num_rows: int) -> None:
    serialized = batch(num_rows).serialize()
    head = metadata(serialized)
    kind, rows, num_bytes = read_message(head)
    assert (kind, rows) == (3, num_rows)
    assert 8 + len(head) + num_bytes == serialized.size
    assert pa.ipc.read_message(serialized).body.size == num_bytes


def test_a_batch_is_as_long_as_its_first_column() -> None:
    head, three = metadata(batch(3).serialize()), (3).to_bytes(8, "little")
    num_refused = 0
    for place in counted(range(len(head) - 7)):
        if head[place : place + 8] == three:
            damaged = head[:place] + (7 << 40).to_bytes(8, "little") + head[place + 8 :]
            try:
                assert read_message(damaged)[1] == 3
            except ValueError as error:
                num_refused += "3" in str(error)
    assert num_refused == 2  # the length of the batch, and that of its first column


def test_a_schema_has_no_rows() -> None:
    assert read_message(metadata(batch(3).schema.serialize())) == (1, 0, 0)


def test_any_bytes_are_read_or_refused() -> None:
    rng, head = random.Random(12), metadata(batch(5).serialize())
    num_refused = 0
    for _ in counted(range(4000)):
        damaged = bytearray(head)
        for _ in range(rng.randrange(1, 4)):
            damaged[rng.randrange(len(head))] = rng.randrange(256)
        data = bytes(damaged[: rng.randrange(len(head) + 1)] if rng.random() < 0.3 else damaged)
        try:
            assert read_message(data)[1] >= 0
        except ValueError as error:
            num_refused += bool(str(error))
    assert 500 < num_refused < 4000
