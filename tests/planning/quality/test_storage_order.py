"""Places in storage: against a sorted list of the examples."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.reads import reads_of
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.order.example_codes import ExampleCodes
from shardctl.planning.quality.storage_order import StorageOrder
from tests.cases import check_cases
from tests.strategies import shard_lengths


@st.composite
def _cases(draw: st.DrawFn) -> tuple[tuple[int, ...], list[tuple[int, int]]]:
    lengths = draw(shard_lengths().filter(any))
    bounds = st.tuples(st.integers(0, sum(lengths)), st.integers(0, sum(lengths)))
    ranges = draw(st.lists(bounds.map(lambda b: (min(b), max(b))), min_size=1, max_size=4))
    return lengths, ranges


def test_a_rank_is_the_place_among_the_examples_that_are_read() -> None:
    def check(case: tuple[tuple[int, ...], list[tuple[int, int]]]) -> None:
        lengths, bounds = case
        split = Split(name="train", shard_lengths=lengths)
        dataset = Dataset(name="d", splits=(split,))
        several = [
            reads_of(dataset, [SplitRange(split=split, start=start, stop=stop)])
            for start, stop in bounds
        ]
        ids = sorted({i for start, stop in bounds for i in range(start, stop)})
        shard_of = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        read = sorted({shard_of[i] for i in ids})
        storage = StorageOrder(several, ExampleCodes(dataset, ["train"]))
        assert storage.num_ranks == len(ids)
        assert storage.num_read == sum(stop - start for start, stop in bounds)
        assert storage.shard_sizes.tolist() == [
            sum(shard_of[i] == shard for i in ids) for shard in read
        ]
        if ids:
            for asked in (ids, ids[::-1], ids[-1:]):  # by a table of all codes, or one by one
                ranks, shards = storage.of(np.array(asked))
                assert ranks.tolist() == [ids.index(i) for i in asked]
                assert shards.tolist() == [read.index(shard_of[i]) for i in asked]
        firsts = [min(i for i in ids if shard_of[i] == shard) for shard in read]
        assert storage.first_codes.tolist() == firsts
        assert storage.read_sizes.tolist() == [
            sum(shard_of[i] == shard for start, stop in bounds for i in range(start, stop))
            for shard in read
        ]

    check_cases(_cases(), check, 150)
