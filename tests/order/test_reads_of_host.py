"""The reads of a host: its part of what is sorted, and the rows that read an example."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.order.epoch_reading import own_rows, sorted_reads
from shardctl.order.example_codes import RowLookup
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.reads import Reads
from shardctl.spec.subsplit import resolve_subsplit
from tests.verbs.resume.resume_cases import dataset

TOY = dataset(train=(3, 0, 5, 3), test=(4,))


def given_to(spec: str = "train", toy: Dataset = TOY, **settings: Any) -> Reads:
    ranges = resolve_subsplit(spec, toy).ranges
    return sorted_reads(toy, ranges, ReadSettings(**settings))


def rows(reads: Reads) -> list[tuple[int, int, int]]:
    """Return (shard, skip, take) of each."""
    columns = (reads.shard, reads.skip, reads.take)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, [(0, 0, 3), (2, 0, 5), (3, 0, 3)], id="all, no empty file among them"),
        pytest.param({"reverse": True}, [(3, 0, 3), (2, 0, 5), (0, 0, 3)], id="from the last on"),
        pytest.param(
            {"host": Host(index=1, count=2)}, [(2, 3, 2), (3, 0, 3)], id="the even part of a host"
        ),
        pytest.param(
            {"host": Host(index=1, count=2), "reverse": True},
            [(3, 0, 3), (2, 3, 2)],
            id="the part is taken before it is sorted",
        ),
        pytest.param(
            {"host": Host(index=1, count=2), "host_by": "files"},
            [(0, 0, 3), (2, 0, 5), (3, 0, 3)],
            id="hosts of an InputContext are given the same",
        ),
        pytest.param(
            {"host": Host(index=1, count=2), "host_by": "examples"},
            [(0, 0, 3), (2, 0, 5), (3, 0, 3)],
            id="and those of ds.shard",
        ),
    ],
)
def test_the_reader_is_given_the_even_part_of_a_host_or_all(
    settings: dict[str, Any], expected: list[tuple[int, int, int]]
) -> None:
    assert rows(given_to(**settings)) == expected


@pytest.mark.parametrize(
    ("host_by", "index", "shards"),
    [
        ("files", 0, [0, 3]),
        ("files", 1, [2]),
        ("examples", 1, [0, 2, 3]),
        ("even", 1, [0, 2, 3]),
    ],
)
def test_by_files_a_host_reads_every_so_manieth_instruction(
    host_by: Any, index: int, shards: list[int]
) -> None:
    settings = ReadSettings(host=Host(index=index, count=2), host_by=host_by)
    assert own_rows(given_to(), settings).shard.tolist() == shards


def test_fewer_files_than_hosts_are_refused_as_tfds_refuses_them() -> None:
    by_files: dict[str, Any] = {"host_by": "files"}
    with pytest.raises(UsageError, match="3 file instructions for 4 hosts"):
        own_rows(given_to(), ReadSettings(host=Host(index=0, count=4), **by_files))
    alone = ReadSettings(host=Host(index=0, count=1), **by_files)
    assert len(own_rows(given_to("train[:0]"), alone)) == 0


SIZES = {"train": 11, "test": 4}
specs = st.lists(
    st.sampled_from(sorted(SIZES)).flatmap(
        lambda name: st.tuples(st.just(name), *[st.integers(0, SIZES[name])] * 2)
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.long
@given(specs, st.booleans())
def test_an_example_is_read_by_every_row_that_holds_it(
    drawn: list[tuple[str, int, int]], reverse: bool
) -> None:
    spec = "+".join(f"{name}[{min(a, b)}:{max(a, b)}]" for name, a, b in drawn)
    reads = given_to(spec, reverse=reverse)
    # One number for an example: split train has 0 to 10, split test 11 to 14.
    first_codes = reads.first + np.array([0, 11])[reads.split]
    asked = np.arange(15)[::-1]
    query, row, offset = RowLookup(reads, first_codes).rows_of(asked)
    assert sorted(zip(query.tolist(), row.tolist(), offset.tolist(), strict=True)) == sorted(
        (14 - code, row, code - first)
        for row, (first, take) in enumerate(zip(first_codes.tolist(), reads.take, strict=True))
        for code in range(first, first + int(take))
    )
