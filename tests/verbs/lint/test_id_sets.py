"""Sets of ids: what sets of pairs of split and id hold, and what a spec of them selects."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.spec.subsplit import SplitRange, resolve_subsplit
from shardctl.verbs.lint.rules.subsplits import as_spec, id_sets, in_both, num_ids, without
from tests.cases import check_cases

ranges = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30)))


@pytest.mark.long
def test_sets_of_ids_are_sets() -> None:
    splits = {name: Split(name=name, shard_lengths=(7, 0, 13, 10)) for name in "ab"}
    toy = Dataset(name="toy", splits=tuple(splits.values()))

    def pieces(drawn: list[tuple[str, int, int]]) -> list[SplitRange]:
        return [
            SplitRange(split=splits[name], start=min(a, b), stop=max(a, b)) for name, a, b in drawn
        ]

    def ids(drawn: list[tuple[str, int, int]]) -> set[tuple[str, int]]:
        return {(p.split.name, i) for p in pieces(drawn) for i in range(p.start, p.stop)}

    def check(case: tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]) -> None:
        left, right = (id_sets(pieces(drawn)) for drawn in case)
        both = in_both(left, right)
        listed = {(n, i) for n, some in both.items() for a, b in some for i in range(a, b)}
        assert listed == ids(case[0]) & ids(case[1])
        assert num_ids(both) == len(listed)
        assert num_ids(left) == len(ids(case[0]))
        rest = as_spec(without(left, right), toy)
        parts = resolve_subsplit(rest, toy).ranges if rest else ()
        found = [(piece.split.name, i) for piece in parts for i in range(piece.start, piece.stop)]
        assert sorted(found) == sorted(ids(case[0]) - ids(case[1]))

    check_cases(st.tuples(ranges, ranges), check, 300)
