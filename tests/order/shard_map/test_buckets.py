"""Values in groups: against groups counted one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from shardctl.order.shard_map import buckets
from tests.cases import check_cases


def test_groups_hold_each_value_once_and_differ_by_one_at_most() -> None:
    def check(case: tuple[list[int] | list[float], int]) -> None:
        values, most = case
        found = buckets(values, most)
        assert len(found) == min(most, len(values))
        together: list[int] = []
        for bucket in found:
            indices = list(range(bucket.first, bucket.last + 1))
            together += indices
            own = [values[index] for index in indices]
            assert bucket.count == len(own)
            assert (bucket.min, bucket.max) == (min(own), max(own))
            assert type(bucket.max) is type(values[0])
            assert abs(bucket.mean - sum(own) / len(own)) <= 1e-9 * max(1, abs(sum(own)))
            assert bucket.argmax == bucket.first + own.index(max(own))
        assert together == list(range(len(values)))
        sizes = [bucket.count for bucket in found]
        assert max(sizes, default=0) - min(sizes, default=0) <= 1

    numbers = st.lists(st.integers(-(10**15), 10**15), max_size=60)
    parts = st.lists(st.floats(-10, 10), max_size=60)
    check_cases(st.tuples(numbers | parts, st.integers(1, 70)), check, 150)


def test_a_million_values() -> None:
    found = buckets(np.arange(1_000_000), 3)
    assert [(bucket.first, bucket.last) for bucket in found] == [
        (0, 333_332),
        (333_333, 666_665),
        (666_666, 999_999),
    ]
    assert found[1].mean == (333_333 + 666_665) / 2


def test_sums_beyond_64_bits() -> None:
    (found,) = buckets(np.full(10, 2**62), 1)
    assert found.mean == 2.0**62
    assert found.max == 2**62
    (found,) = buckets([2**63, 1, 2**70], 1)
    assert (found.min, found.max, found.argmax) == (1, 2**70, 2)
