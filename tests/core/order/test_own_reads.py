"""What one host reads, and which row reads an example."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.hosts.host import Host
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.own_reads import RowLookup, own_rows, sorted_reads
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError

TRAIN = Split(
    name="train",
    shard_lengths=(3, 5, 3),
    files=(ShardFiles(pattern="d-train-\0", num_shards=3),),
)
TOY = Dataset(name="d", splits=(TRAIN,))
WHOLE = [SplitRange(split=TRAIN, start=0, stop=11)]
SECOND = Host(index=1, count=2)


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        (ReadSettings(), [(0, 0, 3), (1, 0, 5), (2, 0, 3)]),
        (ReadSettings(reverse=True), [(2, 0, 3), (1, 0, 5), (0, 0, 3)]),
        # Ids 6 to 10 of 11.
        (ReadSettings(host=SECOND), [(1, 3, 2), (2, 0, 3)]),
        (ReadSettings(host=SECOND, reverse=True), [(2, 0, 3), (1, 3, 2)]),
        (ReadSettings(host=SECOND, host_by="files"), [(1, 0, 5)]),
        (ReadSettings(host=Host(index=0, count=2), host_by="files"), [(0, 0, 3), (2, 0, 3)]),
        (ReadSettings(host=SECOND, host_by="examples"), [(0, 0, 3), (1, 0, 5), (2, 0, 3)]),
    ],
)
def test_a_host_reads_its_own(settings: ReadSettings, rows: list[tuple[int, int, int]]) -> None:
    reads = own_rows(sorted_reads(TOY, WHOLE, settings), settings)
    assert list(zip(reads.shard, reads.skip, reads.take, strict=True)) == rows


def test_hosts_of_input_context_need_a_file_each() -> None:
    settings = ReadSettings(host=Host(index=0, count=4), host_by="files")
    with pytest.raises(UsageError, match="3 file instructions for 4 hosts"):
        own_rows(sorted_reads(TOY, WHOLE, settings), settings)


def test_an_example_of_two_parts_of_a_sum_is_read_by_two_rows() -> None:
    ranges = [
        SplitRange(split=TRAIN, start=0, stop=5),
        SplitRange(split=TRAIN, start=4, stop=11),
    ]
    reads = reads_of(TOY, ranges)
    found = RowLookup(reads, reads.first).rows_of(np.array([4, 1, 10, 5]))
    # Rows: ids 0-2, 3-4 of the first part; 4-7, 8-10 of the second.
    assert sorted(zip(*map(np.ndarray.tolist, found), strict=True)) == [
        (0, 1, 1),
        (0, 2, 0),
        (1, 0, 1),
        (2, 3, 2),
        (3, 2, 1),
    ]


def test_what_is_not_read_has_no_row() -> None:
    reads = reads_of(TOY, [SplitRange(split=TRAIN, start=2, stop=4)])
    for codes in ([0, 1, 4, 10], []):
        query, row, offset = RowLookup(reads, reads.first).rows_of(np.array(codes, np.int64))
        assert len(query) == len(row) == len(offset) == 0
