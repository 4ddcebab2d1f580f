"""The hash tree over an order: RFC 6962 over digests of cells, one root for one order."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.example_codes import ExampleCodes, SplitIds
from shardctl.order.order_tree import (
    CELL_SIZE,
    MAX_LEAVES,
    VERSIONS,
    HashTree,
    differing_blocks,
    digests_of,
    leaf_size,
    tree_of,
)
from shardctl.order.plan_order import PlannedOrder, plan_order
from tests.cases import FUZZ, add_cases, check_cases, seed_of_test

FAR = 2**51


def hashed(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


# The tree.


def merkle_root(cells: list[bytes]) -> bytes:
    """RFC 6962, section 2.1: the left part is the largest power of two smaller than the list."""
    if len(cells) == 1:
        return cells[0]
    split = 1 << (len(cells) - 1).bit_length() - 1
    return hashed(b"node" + merkle_root(cells[:split]) + merkle_root(cells[split:]))


def cells_of(values: Sequence[int]) -> list[bytes]:
    return [hashed(str(value).encode()) for value in values]


def tree_over(values: Sequence[int]) -> HashTree:
    return HashTree.of_cells(cells_of(values), num_examples=CELL_SIZE * len(values))


def test_the_root_is_that_of_rfc_6962() -> None:
    def check(values: list[int]) -> None:
        assert tree_over(values).root == merkle_root(cells_of(values))

    lists = st.lists(st.integers(0, 9), min_size=1, max_size=40)
    many = st.integers(MAX_LEAVES - 2, 3 * MAX_LEAVES).map(lambda n: list(range(n)))
    check_cases(lists | many, check, 50)
    empty = HashTree.of_cells([], num_examples=0)
    assert (empty.leaves, empty.root) == ((), hashed(b"empty"))
    assert differing_blocks(empty, empty)[1] == []


def test_blocks_differ_where_the_cells_in_them_do() -> None:
    # Lists beyond MAX_LEAVES cells have leaves of several cells, so that sizes have to be matched.
    sizes = st.integers(1, 12) | st.integers(MAX_LEAVES - 3, MAX_LEAVES * 3)

    def check(case: tuple[int, int, list[int]]) -> None:
        one, other, changed = case
        left, right = list(range(one)), list(range(other))
        for position in changed:
            right[position % other] = -1
        size, blocks = differing_blocks(tree_over(left), tree_over(right))
        width = size // CELL_SIZE
        parts = [slice(at, at + width) for at in range(0, max(one, other), width)]
        assert blocks == [i for i, part in enumerate(parts) if left[part] != right[part]]

    changes = st.lists(st.integers(0, 5000), max_size=3)
    check_cases(st.tuples(sizes, sizes, changes), check, 50)


def test_how_many_leaves_there_are_and_what_does_not_fit() -> None:
    for num_examples in [0, 1, 4096, 4097, 2**21, 2**21 + 1, 10**9, 10**12, 2**62]:
        num_leaves = -(-num_examples // leaf_size(num_examples))
        assert num_leaves <= MAX_LEAVES
        assert num_leaves > MAX_LEAVES // 2 or leaf_size(num_examples) == CELL_SIZE
    with pytest.raises(ValueError, match="1 leaves; 4097 examples have 2"):
        HashTree(num_examples=4097, leaves=(b"a",))
    one, other = (HashTree(num_examples=9, leaves=(b"a",), version=version) for version in (1, 2))
    with pytest.raises(ValueError, match="versions 1 and 2"):
        differing_blocks(one, other)
    tree = tree_over([1, 2, 3])
    assert tree.blocks(tree.leaf_size) == tree.leaves
    with pytest.raises(ValueError, match=f"leaves have {tree.leaf_size}"):
        tree.blocks(tree.leaf_size // 2)


# Digests of cells.

ONE = SplitIds(names=("train",), starts=np.array([0]))


def by_ids(codes: list[int], splits: SplitIds = ONE) -> list[bytes]:
    return list(digests_of([np.array(codes, np.int64)], splits, version=1))


def test_a_digest_is_that_of_the_name_and_the_ids() -> None:
    for ids, size in (([3, 1, 2, 70_000], 4), ([3, 2**40], 8)):
        data = f"cell {size} train\n".encode()
        data += b"".join(value.to_bytes(size, "little") for value in ids)
        assert by_ids(ids) == [hashed(data)]
    # Large ids in one cell leave the others as they are.
    ids = list(range(2 * CELL_SIZE))
    assert by_ids([*ids[:-1], 2**40])[0] == by_ids(ids)[0]
    assert by_ids([]) == []
    two = SplitIds(names=("test", "train"), starts=np.array([0, 5]))
    assert by_ids([5, 7, 6], two) == by_ids([0, 2, 1])
    assert by_ids([0, 1], two) != by_ids([0, 1])


def test_datasets_whose_splits_are_in_another_order_name_examples_alike() -> None:
    names = ("a", "b", "c")
    sizes = st.permutations(names).flatmap(
        lambda order: st.tuples(*[st.tuples(st.just(name), st.integers(3, 6)) for name in order])
    )
    examples = st.lists(
        st.tuples(st.sampled_from(names), st.integers(0, 2)), min_size=1, max_size=4
    )

    def digests(layout: tuple[tuple[str, int], ...], order: list[tuple[str, int]]) -> list[bytes]:
        dataset = dataset_of(**{name: [size] for name, size in layout})
        splits = ExampleCodes(dataset, names).splits
        begin = dict(zip(splits.names, splits.starts.tolist(), strict=True))
        return by_ids([begin[name] + index for name, index in order], splits)

    def check(case: tuple[tuple[tuple[str, int], ...], ...]) -> None:
        one, other, left, right = case
        same = digests(one, list(left)) == digests(other, list(right))
        assert same == (left == right)
        assert digests(one, list(left)) == digests(other, list(left))

    check_cases(st.tuples(sizes, sizes, examples, examples), check, 80)


def digest_by_the_rule(examples: list[tuple[str, int]], splits: SplitIds) -> bytes:
    """Return the digest of a cell, from the split and the id at each of its positions."""
    name = examples[0][0]
    begins = [
        place
        for place, (split, number) in enumerate(examples)
        if not place or (split, number - 1) != examples[place - 1]
    ]
    ids = [examples[place][1] for place in begins]
    is_mixed = {split for split, _ in examples} != {name}
    if is_mixed or max(ids) >= FAR or 3 * len(begins) > len(examples):
        first = dict(zip(splits.names, splits.starts.tolist(), strict=True))
        return by_ids([first[split] + number for split, number in examples], splits)[0]
    data = f"runs {len(examples)} {name}\n".encode() + ids[0].to_bytes(8, "little")
    for place, number in zip(begins[1:], ids[1:], strict=True):
        data += (number * CELL_SIZE + place).to_bytes(8, "little")
    return hashed(data)


def drawn_codes(draw: random.Random, splits: SplitIds, size: int, length: int) -> list[int]:
    """Return codes of runs of many lengths, of which some count on over the end of a split."""
    codes: list[int] = []
    typical = draw.choice([1, 2, 3, 4, 16, 300, 5000, 20_000])
    while len(codes) < length:
        if draw.random() < 0.01:
            typical = draw.choice([1, 2, 3, 4, 16, 300, 5000])
        count = min(draw.choice([typical, 1 + int(typical * draw.random())]), size)
        edge = draw.choice([0, *splits.starts.tolist(), FAR, size])
        first = edge - draw.randrange(2 * count + 1) if draw.random() < 0.4 else None
        if first is None or not 0 <= first <= size - count:
            first = draw.randrange(size - count + 1)
        codes += range(first, first + count)
    return codes[:length]


def is_by_the_rule(seed: int) -> None:
    """Digests in any pieces; and after a change in one place those of its cell alone differ."""
    draw = random.Random(seed)
    sizes = draw.choice([[30_000], [2**53], [9, 0, 5000, 20_000, 1], [FAR + 9, 50_000]])
    names = tuple(f"split{index}" for index in range(len(sizes)))[::-1]
    splits = SplitIds(names=names, starts=np.cumsum([0, *sizes])[:-1])
    length = draw.choice([1, 3, 100, CELL_SIZE, CELL_SIZE + 1, 2 * CELL_SIZE + 77])
    codes = drawn_codes(draw, splits, sum(sizes), length)

    def digests(codes: list[int]) -> list[bytes]:
        cuts = sorted(draw.choices(range(len(codes) + 1), k=draw.randrange(8)))
        return list(digests_of(np.split(np.array(codes, np.int64), cuts), splits))

    split, ids = splits.split_ids(np.array(codes))
    examples = [(splits.names[s], i) for s, i in zip(split.tolist(), ids.tolist(), strict=True)]
    cells = [slice(at, at + CELL_SIZE) for at in range(0, length, CELL_SIZE)]
    found = digests(codes)
    assert found == [digest_by_the_rule(examples[cell], splits) for cell in cells], seed
    changed, place, other = list(codes), draw.randrange(length), draw.randrange(length)
    if draw.random() < 0.5:
        changed[place] = draw.choice([(codes[place] + 1) % sum(sizes), codes[place], 0])
    else:
        changed[place], changed[other] = codes[other], codes[place]
    same = [one == other for one, other in zip(found, digests(changed), strict=True)]
    assert same == [codes[cell] == changed[cell] for cell in cells], seed
    add_cases()


@pytest.mark.long
def test_digests_are_those_of_the_rule_however_an_order_comes() -> None:
    for seed in range(60):
        is_by_the_rule(seed)


@pytest.mark.fuzz
def test_digests_are_those_of_the_rule_however_an_order_comes_fuzzed() -> None:
    for seed in range(seed_of_test(), seed_of_test() + FUZZ):
        is_by_the_rule(seed)


# Orders.


def dataset_of(**splits: list[int]) -> Dataset:
    made = (Split(name=name, shard_lengths=tuple(lengths)) for name, lengths in splits.items())
    return Dataset(name="d", splits=tuple(made))


def drawn(draw: random.Random) -> PlannedOrder:
    lengths = [draw.randrange(draw.choice([2, 60, 3000])) for _ in range(draw.randrange(1, 30))]
    splits = {"train": [*lengths, 5], "test": [40, 0, 70]}
    if draw.random() < 0.5:
        splits = dict(reversed(splits.items()))
    settings: dict[str, object] = {
        "cycle": draw.choice([1, 2, 5, 16]),
        "block": draw.choice([1, 3, 4, 16, 100, 2**40]),
        "epochs": draw.choice([1, 1, 2, 3]),
        "shuffle_seed": draw.choice([None, 3]),
    }
    if draw.random() < 0.3:
        settings |= {"host": f"{draw.randrange(2)}/2", "host_by": "examples"}
    if draw.random() < 0.3:
        settings |= {"buffer": draw.choice([1, 7, 500]), "buffer_seed": 4}
    if draw.random() < 0.2:
        settings |= {"repeat_files": True, "shuffle_seed": 3}
    spec = draw.choice(["train", "train", "train+test", "train[3:]+test[:10]"])
    return plan_order(dataset_of(**splits), spec, settings)


def tree_is_that_of_the_codes(seed: int) -> None:
    planned = drawn(random.Random(seed))
    order, told = planned.order, list[int]()
    codes = order.read(0, order.num_examples)
    for version in VERSIONS:
        cells = digests_of([codes], planned.splits, version=version)
        made = HashTree.of_cells(cells, num_examples=len(codes), version=version)
        assert tree_of(order, version=version, advance=told.append) == made, seed
    assert sum(told) == len(codes) * len(VERSIONS), seed
    add_cases()


@pytest.mark.long
def test_a_tree_is_that_of_the_codes() -> None:
    for seed in range(60):
        tree_is_that_of_the_codes(seed)


@pytest.mark.fuzz
def test_a_tree_is_that_of_the_codes_fuzzed() -> None:
    for seed in range(seed_of_test(), seed_of_test() + FUZZ // 4):
        tree_is_that_of_the_codes(seed)


def test_two_orders_have_one_root_when_they_are_the_same_and_only_then() -> None:
    """What is read is told by brute force: the split and the id at every position."""
    one, other, buffer = [900, 4000, 1100, 0, 50], [50, 2950, 3050], dict[str, object]()
    buffer |= {"buffer": 1, "buffer_seed": 0}
    cases: list[tuple[dict[str, list[int]], str, Any]] = [
        ({"train": one}, "train", {}),
        ({"train": other}, "train", {"block": 3}),
        ({"train": other}, "train", {"batch": 10}),
        ({"test": [7], "train": [6050]}, "train", {"cycle": 4}),
        ({"train": other, "test": [7]}, "train", buffer),
        ({"train": [6050]}, "train", {"stages": "map | batch(7)"}),
        ({"train": one}, "train", {"epochs": 2}),
        ({"train": one}, "train+train", {}),
        ({"train": one}, "train", {"epochs": 2, "block": 1}),
        ({"train": one, "test": [3]}, "train+test", {}),
        ({"test": [3], "train": [6050]}, "train+test", {}),
        ({"test": [3], "train": [6050]}, "test+train", {}),
        ({"train": one}, "train[:6049]", {}),
        ({"train": one}, "train", {"cycle": 2}),
        ({"train": one}, "train", {"cycle": 2, "block": 2}),
        ({"train": one}, "train", {"cycle": 2, "block": 2, **buffer}),
        ({"train": one}, "train", {"buffer": 50, "buffer_seed": 1}),
        ({"train": one}, "train", {"buffer": 50, "buffer_seed": 2}),
        ({"valid": one}, "valid", {}),
        *(({"train": [900 + n, 4000 - n, 1100, 50]}, "train", {"cycle": 2}) for n in range(3)),
    ]
    made = [plan_order(dataset_of(**c[0]), c[1], {"cycle": 1, **c[2]}) for c in cases]
    made.append(plan_order(dataset_of(train=other), "train", {"loader": "torch", "shuffle": False}))
    read = []
    for planned in made:
        codes = planned.order.read(0, planned.order.num_examples)
        split, ids = planned.splits.split_ids(codes)
        read.append([(planned.splits.names[s], i) for s, i in zip(split, ids, strict=True)])
    for version in VERSIONS:
        roots = [tree_of(one.order, version=version).root for one in made]
        pairs = list(combinations(range(len(made)), 2))
        assert sum(read[i] == read[j] for i, j in pairs) > 20
        for i, j in pairs:
            assert (roots[i] == roots[j]) == (read[i] == read[j]), (version, i, j)
