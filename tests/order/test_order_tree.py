"""Trees over orders: one root for one order, however it is made, in every version."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.order_tree import VERSIONS, HashTree, digests_of, tree_of
from shardctl.order.plan_order import PlannedOrder, plan_order
from tests.cases import FUZZ, add_cases, seed_of_test


def dataset_of(**splits: list[int]) -> Dataset:
    made = (Split(name=name, shard_lengths=tuple(lengths)) for name, lengths in splits.items())
    return Dataset(name="d", splits=tuple(made))


def tree(planned: PlannedOrder, version: int = 2) -> HashTree:
    return tree_of(planned.order, planned.splits, version=version)


def drawn(draw: random.Random) -> PlannedOrder:
    lengths = [draw.randrange(draw.choice([2, 60, 3000])) for _ in range(draw.randrange(1, 30))]
    lengths.append(5)
    other = [40, 0, 70]
    splits = {"train": lengths, "test": other}
    if draw.random() < 0.5:
        splits = {"test": other, "train": lengths}
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
    draw = random.Random(seed)
    planned = drawn(draw)
    order, total = planned.order, planned.order.num_examples
    codes = order.read(0, total)
    told: list[int] = []
    for version in VERSIONS:
        cells = list(digests_of([codes], planned.splits, version=version))
        made = HashTree.of_cells(cells, num_examples=total, version=version)
        whole = tree_of(order, planned.splits, version=version, advance=told.append)
        assert whole == made, (seed, version)
    assert sum(told) == total * len(VERSIONS), seed
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
    one, other = [900, 4000, 1100, 0, 50], [50, 2950, 3050]
    made = [
        plan_order(dataset_of(train=one), "train", {"cycle": 1}),
        plan_order(dataset_of(train=other), "train", {"cycle": 1, "block": 3}),
        plan_order(dataset_of(train=other), "train", {"cycle": 1, "batch": 10}),
        plan_order(dataset_of(test=[7], train=[6050]), "train", {"cycle": 4}),
        plan_order(
            dataset_of(train=other, test=[7]), "train", {"buffer": 1, "buffer_seed": 0, "cycle": 1}
        ),
        plan_order(dataset_of(train=other), "train", {"loader": "torch", "shuffle": False}),
        plan_order(dataset_of(train=[6050]), "train", {"stages": "map | batch(7)", "cycle": 1}),
        plan_order(dataset_of(train=one), "train", {"cycle": 1, "epochs": 2}),
        plan_order(dataset_of(train=one), "train+train", {"cycle": 1}),
        plan_order(dataset_of(train=one), "train", {"cycle": 1, "epochs": 2, "block": 1}),
        plan_order(dataset_of(train=one, test=[3]), "train+test", {"cycle": 1}),
        plan_order(dataset_of(test=[3], train=[6050]), "train+test", {"cycle": 1}),
        plan_order(dataset_of(test=[3], train=[6050]), "test+train", {"cycle": 1}),
        plan_order(dataset_of(train=one), "train[:6049]", {"cycle": 1}),
        plan_order(dataset_of(train=one), "train", {"cycle": 2}),
        plan_order(dataset_of(train=one), "train", {"cycle": 2, "block": 2}),
        plan_order(
            dataset_of(train=one), "train", {"cycle": 2, "block": 2, "buffer": 1, "buffer_seed": 0}
        ),
        plan_order(dataset_of(train=one), "train", {"buffer": 50, "buffer_seed": 1}),
        plan_order(dataset_of(train=one), "train", {"buffer": 50, "buffer_seed": 2}),
        plan_order(dataset_of(valid=one), "valid", {"cycle": 1}),
    ]
    read = []
    for planned in made:
        codes = planned.order.read(0, planned.order.num_examples)
        split, ids = planned.splits.split_ids(codes)
        read.append([(planned.splits.names[s], i) for s, i in zip(split, ids, strict=True)])
    num_equal = 0
    for version in VERSIONS:
        roots = [tree(planned, version).root for planned in made]
        for i, j in combinations(range(len(made)), 2):
            assert (roots[i] == roots[j]) == (read[i] == read[j]), (version, i, j)
            num_equal += read[i] == read[j]
            add_cases()
    assert num_equal > 2 * 20, num_equal


def test_one_example_elsewhere_is_another_root() -> None:
    lengths = [900, 4000, 1100, 50]
    roots = {tree(plan_order(dataset_of(train=lengths), "train", {"cycle": 2})).root}
    for shard in range(4):
        moved = list(lengths)
        moved[shard] += 1
        moved[(shard + 1) % 4] -= 1
        roots.add(tree(plan_order(dataset_of(train=moved), "train", {"cycle": 2})).root)
    assert len(roots) == 5
