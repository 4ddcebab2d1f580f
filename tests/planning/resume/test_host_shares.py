"""What is left, split evenly among hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.dataset.shard_files import ShardFiles
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.errors import UsageError
from shardctl.planning.resume.host_shares import MAX_HOSTS, even_shares
from tests.strategies import shard_lengths


@given(shard_lengths(), st.integers(1, 9))
def test_shares_are_stretches_of_the_list_as_even_as_can_be(
    lengths: tuple[int, ...], num_hosts: int
) -> None:
    files = ShardFiles(pattern="d-\0", num_shards=len(lengths))
    split = Split(name="train", shard_lengths=lengths, files=(files,))
    whole = SplitRange(split=split, start=0, stop=split.num_examples)
    shares = even_shares(reads_of(Dataset(name="d", splits=(split,)), [whole]), num_hosts)
    assert [(share.index, share.count) for share in shares] == [
        (index, num_hosts) for index in range(num_hosts)
    ]
    ids = [[i.first_id + k for i in s.instructions for k in range(i.take)] for s in shares]
    assert [example for share in ids for example in share] == list(range(split.num_examples))
    sizes = [len(share) for share in ids]
    assert sizes == [share.num_examples for share in shares]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("num_hosts", [0, -1, MAX_HOSTS + 1])
def test_so_many_hosts_there_are_not(num_hosts: int) -> None:
    split = Split(name="train", shard_lengths=(1,))
    reads = reads_of(Dataset(name="d", splits=(split,)), [SplitRange(split=split, start=0, stop=1)])
    with pytest.raises(UsageError, match="a number from 1 to 100000 is needed"):
        even_shares(reads, num_hosts)
