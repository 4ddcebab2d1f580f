"""Places in storage: against the examples that are handed out, one by one."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.order.order import Order
from shardctl.order.plan_order import plan_order
from shardctl.verbs.quality.picture import places as ranks_of
from tests.cases import check_cases
from tests.order.shard_map.picture_orders import dataset_of, epoch_of, orders, storage_of


def places(order: Order) -> np.ndarray:
    """How far into storage each example of the epoch lies, the middle of what it takes."""
    ranks, num_ranks = ranks_of(order)
    return (ranks + 0.5) / num_ranks


@pytest.mark.long
def test_each_example_of_the_epoch_is_where_it_is_stored() -> None:
    def check(order: Order) -> None:
        found = places(order)
        epoch = epoch_of(order)
        size = len(epoch)
        names = [split.name for split in order.dataset.splits]
        stored = [(names.index(split), number) for split, _, number in epoch]
        among = storage_of(order)
        if len(among) != size or len(set(among)) != size:
            among = stored  # some are left out or come twice: then it is among those that come
        assert len(found) == size
        for at, place in enumerate(found.tolist()):
            # Of what comes twice, one is before the other.
            before = sum(other < stored[at] for other in among)
            alike = among.count(stored[at])
            assert before - 1e-6 <= place * size - 0.5 <= before + alike - 1 + 1e-6

    check_cases(orders(), check, 70)


def test_of_a_long_epoch_single_positions_are_looked_up_all_over_it() -> None:
    order = plan_order(dataset_of(train=(10**9,) * 1000), "train", {"cycle": 1}).order
    found = places(order)
    parts = len(found)
    assert parts > 10_000
    # One after the other as stored, so that the place is the position: one in each equal part.
    assert np.array_equal(np.floor(found * parts), np.arange(parts))


def test_what_is_looked_up_does_not_keep_step_with_the_interleave() -> None:
    # 16 slots in turn, 16 examples each: at equal distances of 256 all would be of one slot.
    order = plan_order(dataset_of(train=(2**20,) * 16), "train", {"cycle": 16, "block": 16}).order
    slots = (places(order) * 16).astype(int)
    assert np.bincount(slots, minlength=16) / len(slots) == pytest.approx(1 / 16, rel=0.1)
