"""A window gives the bytes of the source, however it reads them, and reads no more than it says."""

from __future__ import annotations

import random

from shardctl.records.streams import Window
from tests.byte_sources import far, near
from tests.cases import counted


def test_bytes_are_those_of_the_source_wherever_they_are_asked_for() -> None:
    rng = random.Random(1)
    data = rng.randbytes(700_000)
    for case in counted(range(60)):
        source = (near if case % 2 else far)(data)
        report: list[int] = []
        window = Window(source, report.append)
        position = 0
        while position <= len(data):
            size = rng.choice([1, 8, 512, 4000, 300_000])
            assert window.at(position, size) == data[position : position + size]
            position += rng.choice([1, 100, 5_000, 200_000])
        assert window.num_bytes_read == sum(report) == source.num_bytes_read


def test_near_records_are_read_in_blocks_and_far_ones_alone() -> None:
    data = bytes(1 << 24)
    dense, sparse = near(data), near(data)
    window = Window(dense)
    for position in range(0, 1 << 20, 512):
        window.at(position, 512)
    assert len(dense.ranges) <= 5
    window = Window(sparse)
    for position in range(0, len(data), 1 << 20):
        window.at(position, 512)
    assert sparse.num_bytes_read == 15 * 512 + (1 << 12)  # the first time nothing is known


def test_a_request_far_away_is_worth_some_megabytes() -> None:
    data = bytes(1 << 24)
    source = far(data)
    window = Window(source)
    for position in range(0, len(data), 100_000):
        window.at(position, 512)
    assert len(source.ranges) <= 5
    assert window.is_within(len(data))
    assert not window.is_within(len(data) + 1)


def test_behind_the_end_is_nothing() -> None:
    window = Window(near(b"abc"))
    assert (window.at(0, 2), window.at(2, 5), window.at(3, 1), window.at(99, 1)) == (
        b"ab",
        b"c",
        b"",
        b"",
    )
