"""The hash tree: the tree of RFC 6962, and which blocks of two orders differ."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import strategies as st

from shardctl.order.order_tree import (
    CELL_SIZE,
    MAX_LEAVES,
    HashTree,
    differing_blocks,
    leaf_size,
)
from tests.cases import check_cases


def hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def merkle_root(cells: list[bytes]) -> bytes:
    """RFC 6962, section 2.1: the left part is the largest power of two smaller than the list."""
    if len(cells) == 1:
        return cells[0]
    split = 1
    while split * 2 < len(cells):
        split *= 2
    return hashed(b"node" + merkle_root(cells[:split]) + merkle_root(cells[split:]))


def cells_of(values: list[int]) -> list[bytes]:
    return [hashed(str(value).encode()) for value in values]


def tree_of(cells: list[bytes]) -> HashTree:
    return HashTree.of_cells(cells, num_examples=CELL_SIZE * len(cells))


def test_the_root_is_that_of_rfc_6962() -> None:
    def check(values: list[int]) -> None:
        cells = cells_of(values)
        assert tree_of(cells).root == merkle_root(cells)

    lists = st.lists(st.integers(0, 9), min_size=1, max_size=40)
    many = st.integers(MAX_LEAVES - 2, 3 * MAX_LEAVES).map(lambda n: list(range(n)))
    check_cases(lists | many, check, 50)


def test_no_order_has_more_leaves_than_the_most_and_none_far_fewer() -> None:
    for num_examples in [0, 1, 4096, 4097, 2**21, 2**21 + 1, 10**9, 10**12, 2**62]:
        num_leaves = -(-num_examples // leaf_size(num_examples))
        assert num_leaves <= MAX_LEAVES
        assert num_leaves > MAX_LEAVES // 2 or leaf_size(num_examples) == CELL_SIZE


def test_blocks_differ_where_the_cells_in_them_do() -> None:
    # Lists beyond MAX_LEAVES cells have leaves of several cells, so that sizes have to be matched.
    sizes = st.integers(1, 12) | st.integers(MAX_LEAVES - 3, MAX_LEAVES * 3)

    def check(case: tuple[int, int, list[int]]) -> None:
        one, other, changed = case
        left = list(range(one))
        right = list(range(other))
        for position in changed:
            right[position % other] = -1
        size, blocks = differing_blocks(tree_of(cells_of(left)), tree_of(cells_of(right)))
        width = size // CELL_SIZE
        count = -(-max(one, other) // width)
        assert blocks == [
            index
            for index in range(count)
            if left[index * width : (index + 1) * width]
            != right[index * width : (index + 1) * width]
        ]

    changes = st.lists(st.integers(0, 5000), max_size=3)
    check_cases(st.tuples(sizes, sizes, changes), check, 50)


def test_an_empty_order_has_a_root_of_its_own() -> None:
    empty = HashTree.of_cells([], num_examples=0)
    assert empty.leaves == ()
    assert empty.root == hashed(b"empty")
    assert differing_blocks(empty, empty)[1] == []


def test_the_number_of_leaves_has_to_be_that_of_the_examples() -> None:
    with pytest.raises(ValueError, match="1 leaves; 4097 examples have 2"):
        HashTree(num_examples=4097, leaves=(b"a",))


def test_trees_of_two_versions_are_not_compared() -> None:
    one, other = (HashTree(num_examples=9, leaves=(b"a",), version=version) for version in (1, 2))
    with pytest.raises(ValueError, match="versions 1 and 2"):
        differing_blocks(one, other)


def test_there_are_no_digests_of_less_than_a_leaf() -> None:
    tree = tree_of(cells_of([1, 2, 3]))
    assert tree.blocks(tree.leaf_size) == tree.leaves
    with pytest.raises(ValueError, match=f"leaves have {tree.leaf_size}"):
        tree.blocks(tree.leaf_size // 2)
