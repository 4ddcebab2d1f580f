"""Where two orders differ: as a comparison of every position says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from shardctl.base.arrays import Int64s
from shardctl.base.tfds_rules import ORDER_RULES
from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.order import Order
from shardctl.order.order_tree import HashTree, leaf_size
from shardctl.order.plan_order import plan_order
from shardctl.saved import snapshot as pinned_layout
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.diff.answer import Moved, PinnedOrder, diff
from shardctl.verbs.snapshot.answer import snapshot
from tests.cases import FUZZ, check_cases
from tests.golden import assert_evaluated
from tests.verbs.diff.diff_cases import (
    Example,
    Pipeline,
    dataset_of,
    differing_positions,
    examples,
    pairs,
    through_a_file,
)


def side(pipeline: Pipeline, *, live: bool = False) -> tuple[PinnedOrder, list[Example]] | None:
    taken = pipeline.taken()
    if taken is None:
        return None
    pinned = PinnedOrder(
        snapshot=through_a_file(taken.snapshot), label="x", live=taken.live if live else None
    )
    return pinned, examples(pipeline, taken)


def check_exactly(pair: tuple[Pipeline, Pipeline], *, live: bool) -> None:
    one, other = side(pair[0]), side(pair[1], live=live)
    if one is None or other is None:
        return
    (expected, before), (actual, after) = one, other
    found = diff(expected, actual)
    positions = differing_positions(before, after)
    assert found.equal == (not positions)
    assert found.moved.at_least == found.moved.at_most == len(positions)
    assert found.moved.positions == max(len(before), len(after))
    assert bool(found.causes) == bool(positions)
    if not positions:
        return
    assert found.first is not None
    assert found.first.exact
    assert found.first.position == positions[0]
    for said, order in ((found.first.expected, before), (found.first.actual, after)):
        here = order[positions[0] : positions[0] + 1]
        names = {name for side in (before, after) for name, _ in side}
        named = [f"{split}:{number}" for split, number in here]
        assert said is None if not here else said in (here[0][1], named[0])
        assert not here or isinstance(said, str) or len(names) == 1
    assert found.neighbours is not None
    assert found.neighbours.start == max(positions[0] - 3, 0)


@pytest.mark.parametrize("live", [False, True])
def test_a_file_differs_from_another_or_today_where_the_orders_do(live: bool) -> None:
    check_cases(pairs(), lambda pair: check_exactly(pair, live=live), 30)


@pytest.mark.fuzz
def test_two_files_differ_where_the_orders_do_fuzzed() -> None:
    check_cases(pairs(), lambda pair: check_exactly(pair, live=False), FUZZ)


def test_hashed_layouts_still_name_the_block_and_bound_what_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pinned_layout, "MAX_LAYOUT_CHARS", -1)

    def check(pair: tuple[Pipeline, Pipeline]) -> None:
        one, other = side(pair[0]), side(pair[1])
        if one is None or other is None:
            return
        (expected, before), (actual, after) = one, other
        found = diff(expected, actual)
        positions = differing_positions(before, after)
        assert found.equal == (not positions)
        assert found.moved.at_least <= len(positions) <= found.moved.at_most
        assert bool(found.moved.at_least) == bool(positions)
        if positions:
            assert found.first is not None
            assert found.first.position <= positions[0] < found.first.stop
            assert found.notes

    check_cases(pairs(), check, 30)


TRAIN = dataset_of({"train": (30, 40, 50), "test": (5, 5)})
BLOCKS_OF_2 = ReadSettings(cycle=2, block=2)


def pinned(spec: str = "train", settings: ReadSettings = BLOCKS_OF_2) -> PinnedOrder:
    return PinnedOrder(snapshot=snapshot(TRAIN, spec, settings).snapshot, label="a.yaml")


def test_the_first_difference_has_both_ids() -> None:
    def first(one: Any, other: Any) -> object:
        sides = [pinned(spec, replace(BLOCKS_OF_2, **more)) for spec, more in (one, other)]
        found = diff(*sides)
        at = found.first
        assert found.equal == (at is None) == (not found.causes)
        return at and (at.position, at.expected, at.actual)

    assert_evaluated(globals(), "first", first)


def test_new_rules_are_a_cause_and_the_old_order_is_not_guessed() -> None:
    """The pinned digests are those of another rule: here, of blocks of 4 under the name of 2."""
    other = pinned(settings=replace(BLOCKS_OF_2, block=4)).snapshot
    newer = replace(
        other,
        pipeline=pinned().snapshot.pipeline,
        rules=replace(ORDER_RULES, version=ORDER_RULES.version + 1, tensorflow="9.9"),
    )
    found = diff(PinnedOrder(snapshot=newer, label="new.yaml"), pinned())
    assert [cause.kind for cause in found.causes] == ["rules"]
    assert found.neighbours is None
    # The first ids that are pinned for people still say where.
    assert found.first is not None
    assert (found.first.position, found.first.expected, found.first.actual) == (2, 2, 30)
    assert found.moved == Moved(at_least=1, at_most=120, positions=120)
    assert "new.yaml" in found.notes[0]
    assert len(found.notes) == 1


def test_a_list_of_files_may_name_splits_that_are_not_read() -> None:
    names = tuple(name for split in TRAIN.splits for name in reversed(split.filenames))
    one = pinned(settings=replace(BLOCKS_OF_2, file_order=names))
    other = pinned(settings=replace(BLOCKS_OF_2, file_order=names[1:] + names[:1]))
    found = diff(one, other)
    assert found.first is not None
    assert (found.first.expected, found.first.actual) == (70, 30)
    assert found.neighbours is not None


@pytest.fixture
def rebuilt(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of ids in each chunk of any order that is made."""
    sizes: list[int] = []
    chunks = Order.chunks

    def counted(order: Order, start: int, stop: int) -> Iterator[Int64s]:
        for chunk in chunks(order, start, stop):
            sizes.append(len(chunk))
            yield chunk

    monkeypatch.setattr(Order, "chunks", counted)
    return sizes


def test_orders_that_part_in_one_place_are_rebuilt_there_alone(rebuilt: list[int]) -> None:
    lengths = [20_000] * 1000
    one = dataset_of({"train": tuple(lengths)})
    # Two shards that are open at the same time, one an example longer and the other shorter.
    lengths[500] += 1
    lengths[501] -= 1
    other = dataset_of({"train": tuple(lengths)})
    for cycle in (1, 2):  # read shard by shard the ids are the same: the orders are
        taken = [snapshot(data, "train", ReadSettings(cycle=cycle)) for data in (one, other)]
        a, b = (PinnedOrder(snapshot=through_a_file(t.snapshot), label="x") for t in taken)
        rebuilt.clear()
        found = diff(a, b)
        assert found.equal == (cycle == 1) == (not rebuilt)
    assert found.first is not None
    assert found.first.exact
    assert sum(rebuilt) <= 4 * a.snapshot.tree.leaf_size + 100 < 500_000


def test_blocks_too_long_to_compare_are_not_compared() -> None:
    # Leaves of orders of 6e16 examples: nobody could make them, an edited file has them.
    split = Split.even(name="train", num_examples=60_000, num_shards=10)
    dataset = Dataset(name="d", splits=(split,))
    taken = snapshot(dataset, "train", ReadSettings())
    live = plan_order(dataset, "train", ReadSettings(epochs=10**12))
    total = live.order.num_examples
    size = leaf_size(total)
    num_leaves = -(-total // size)
    sides = []
    for byte in (b"a", b"b"):
        tree = HashTree(num_examples=total, leaves=(byte * 16,) * num_leaves)
        pinned = replace(taken.snapshot, tree=tree)
        sides.append(PinnedOrder(snapshot=pinned, label="x", live=live))
    found = diff(*sides)
    assert found.first is not None
    assert (found.first.position, found.first.stop) == (0, size)
    assert found.neighbours is None
    assert found.moved.at_most == total
