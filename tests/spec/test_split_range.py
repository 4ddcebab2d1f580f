"""Ranges of a split, and the shards that they touch."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Split
from shardctl.spec.subsplit import SplitRange
from tests.cases import check_cases
from tests.strategies import shard_lengths


def test_the_shards_of_a_range_are_those_its_ids_lie_in() -> None:
    def check(case: tuple[tuple[int, ...], int, int]) -> None:
        lengths, first, second = case
        start, stop = sorted(min(bound, sum(lengths)) for bound in (first, second))
        split = Split(name="train", shard_lengths=lengths)
        owners = [shard for shard, length in enumerate(lengths) for _ in range(length)]
        touched = owners[start:stop]
        shards = SplitRange(split=split, start=start, stop=stop).shards()
        assert list(shards) == (list(range(touched[0], touched[-1] + 1)) if touched else [])

    cases = st.tuples(shard_lengths(), st.integers(0, 40), st.integers(0, 40))
    check_cases(cases, check, 100)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (2, 1), (0, 4)])
def test_a_range_outside_its_split_cannot_be_made(start: int, stop: int) -> None:
    split = Split(name="train", shard_lengths=(3,))
    with pytest.raises(ValueError, match="is not a range of train"):
        SplitRange(split=split, start=start, stop=stop)
