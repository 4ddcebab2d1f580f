"""Which positions are compared with the real thing, and where two streams differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.order.resolved_spec import resolved_spec
from shardctl.spec.host import Host
from shardctl.verbs.verify.answer import (
    BUDGETS,
    FoundNames,
    check_not_nothing,
    check_take,
    first_mismatch,
    first_mismatch_in_any_order,
    taken,
)
from tests.cases import check_cases

numbers = st.lists(st.integers(0, 3), max_size=8)
pieces = st.lists(numbers, max_size=5)


def arrays(parts: Sequence[Sequence[int]]) -> list[np.ndarray]:
    return [np.array(part, np.int64) for part in parts]


def test_as_many_are_taken_as_asked_for() -> None:
    assert taken("all", "files", 10**9) == 10**9
    assert taken(None, "files", 10**9) == BUDGETS["files"]
    assert taken(None, "index ranges", 10**9) == BUDGETS["index ranges"]
    assert taken(7, "files", 10**9) == 7
    assert taken(7, "files", 5) == 5


@pytest.mark.parametrize("take", [0, -1, -5])
def test_a_number_that_compares_nothing_is_refused(take: int) -> None:
    check_take(1)
    with pytest.raises(UsageError, match=f"--take {take}: at least 1 example"):
        check_take(take)


@pytest.mark.long
def test_streams_part_where_the_lists_do() -> None:
    def law(case: tuple[list[list[int]], list[list[int]]]) -> None:
        left, right = ([n for part in side for n in part] for side in case)
        found = first_mismatch(*(arrays(side) for side in case))
        if left == right:
            assert found is None
            return
        place = 0
        while left[place : place + 1] == right[place : place + 1]:
            place += 1
        assert found is not None
        assert found.offset == place
        at = [side[place] if place < len(side) else None for side in (left, right)]
        assert [found.expected, found.found] == at

    same = pieces.map(lambda parts: (parts, [[n] for part in parts for n in part]))
    check_cases(st.tuples(pieces, pieces) | same, law, 300)


@pytest.mark.parametrize("all_of_them", [True, False])
def test_without_an_order_streams_part_where_something_comes_too_often(all_of_them: bool) -> None:
    def law(case: tuple[list[list[int]], list[list[int]]]) -> None:
        left, right = ([n for part in side for n in part] for side in case)
        found = first_mismatch_in_any_order(
            *(arrays(side) for side in case), all_of_them=all_of_them
        )
        too_many = [n for n in range(len(right)) if Counter(right[: n + 1]) - Counter(left)]
        missing = sorted((Counter(left) - Counter(right)).elements())
        if too_many:
            assert found is not None
            assert (found.offset, found.expected) == (too_many[0], None)
            assert found.found == right[too_many[0]]
        elif missing and all_of_them:
            assert found is not None
            assert (found.offset, found.expected) == (len(right), missing[0])
        else:
            assert found is None

    check_cases(st.tuples(pieces, pieces), law, 200)


def test_names_that_the_metadata_does_not_know_are_kept() -> None:
    files = ShardFiles(pattern="d-\0", num_shards=2)
    split = Split(name="train", shard_lengths=(3, 2), files=(files,))
    names = FoundNames(ExampleCodes(Dataset(name="d", splits=(split,)), ["train"]))
    given = [b"d-00001__1", b"d-00001__2", b"d-00000__0", b"\xff__1", b"no"]
    codes = names.codes_of(given).tolist()
    assert codes[::2][:2] == [4, 0]
    assert [names.unknown(code) for code in codes if code < 0] == ["d-00001__2", "\udcff__1", "no"]


def test_an_order_without_examples_is_refused_but_a_host_without_a_share() -> None:
    toy = Dataset(name="toy", splits=(Split(name="train", shard_lengths=(5,)),))
    host = Host(index=6, count=7)
    some, none = resolved_spec(toy, "train"), resolved_spec(toy, "train[:0]")
    check_not_nothing(some, 5, None)
    check_not_nothing(some, 0, host)
    for resolved, of_host in ((some, None), (none, None), (none, host)):
        with pytest.raises(UsageError, match="nothing to verify: 'train"):
            check_not_nothing(resolved, 0, of_host)
