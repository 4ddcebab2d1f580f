"""Digests of cells: the same for the same examples at the same positions, and only then."""

from __future__ import annotations

import hashlib
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.order_tree import SplitIds, digests_of
from tests.cases import check_cases

CELL = 4096


def one_split(name: str = "train") -> SplitIds:
    return SplitIds(names=(name,), starts=np.array([0]))


def digests(codes: list[int], splits: SplitIds) -> list[bytes]:
    return list(digests_of([np.array(codes, np.int64)], splits, version=1))


def test_a_digest_is_that_of_the_name_and_the_ids() -> None:
    ids = [3, 1, 2, 70_000]
    data = b"cell 4 train\n" + b"".join(value.to_bytes(4, "little") for value in ids)
    assert digests(ids, one_split()) == [hashlib.sha256(data).digest()[:16]]


def test_a_digest_of_large_ids_takes_eight_bytes_an_id() -> None:
    ids = [3, 2**40]
    data = b"cell 8 train\n" + b"".join(value.to_bytes(8, "little") for value in ids)
    assert digests(ids, one_split()) == [hashlib.sha256(data).digest()[:16]]


def test_a_cell_of_large_ids_keeps_the_digests_of_others() -> None:
    ids = list(range(2 * CELL))
    last = [*ids[:-1], 2**40]
    assert digests(last, one_split())[0] == digests(ids, one_split())[0]


def test_digests_do_not_depend_on_how_the_order_comes_in_pieces() -> None:
    rng = np.random.default_rng(0)
    codes = rng.permutation(3 * CELL + 5)
    splits = SplitIds(names=("a", "b"), starts=np.array([0, CELL]))
    whole = list(digests_of([codes], splits))

    def check(cuts: list[int]) -> None:
        bounds = [0, *sorted(cuts), len(codes)]
        pieces = [codes[start:stop] for start, stop in pairwise(bounds)]
        assert list(digests_of(pieces, splits)) == whole

    cuts = st.lists(st.integers(0, len(codes)), max_size=6)
    check_cases(cuts, check, 40)


def test_two_orders_have_the_same_digests_when_the_same_examples_are_in_them() -> None:
    """Datasets whose splits have other sizes and are in another order name examples alike."""
    names = ("a", "b", "c")
    sizes = st.permutations(names).flatmap(
        lambda order: st.tuples(*[st.tuples(st.just(name), st.integers(3, 6)) for name in order])
    )
    examples = st.lists(
        st.tuples(st.sampled_from(names), st.integers(0, 2)), min_size=1, max_size=4
    )

    def digests_in(dataset: Dataset, order: list[tuple[str, int]]) -> list[bytes]:
        splits = SplitIds.of(dataset, names)
        begin = dict(zip(splits.names, splits.starts.tolist(), strict=True))
        return digests([begin[name] + index for name, index in order], splits)

    def check(case: tuple[tuple[tuple[str, int], ...], ...]) -> None:
        one, other, left, right = case
        datasets = [
            Dataset(
                name="d",
                splits=tuple(Split(name=name, shard_lengths=(size,)) for name, size in layout),
            )
            for layout in (one, other)
        ]
        same = digests_in(datasets[0], list(left)) == digests_in(datasets[1], list(right))
        assert same == (left == right)
        assert digests_in(datasets[0], list(left)) == digests_in(datasets[1], list(left))

    check_cases(st.tuples(sizes, sizes, examples, examples), check, 80)


def test_an_order_that_reads_one_of_two_splits_is_that_of_the_split_alone() -> None:
    two = SplitIds(names=("test", "train"), starts=np.array([0, 5]))
    assert digests([5, 7, 6], two) == digests([0, 2, 1], one_split())


def test_the_same_ids_of_another_split_are_another_order() -> None:
    assert digests([0, 1], one_split("train")) != digests([0, 1], one_split("test"))


def test_an_order_without_examples_has_no_cells() -> None:
    assert digests([], one_split()) == []
