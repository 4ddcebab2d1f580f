"""Points of an epoch: against the examples that are handed out, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.order.order import Order
from shardctl.planning.order import plan_order
from shardctl.planning.pictures.places import places
from shardctl.planning.quality.sample import sample_epoch
from tests.cases import check_cases
from tests.planning.pictures.picture_orders import dataset_of, epoch_of, orders, storage_of


def test_points_are_examples_of_the_epoch_and_one_in_each_part_of_it() -> None:
    def check(case: tuple[Order, int]) -> None:
        order, most = case
        found = places(sample_epoch(order), most=most)
        epoch = epoch_of(order)
        size = len(epoch)
        names = [split.name for split in order.dataset.splits]
        stored = [(names.index(split), number) for split, _, number in epoch]
        among = storage_of(order)
        if len(among) != size or len(set(among)) != size:
            among = stored  # some are left out or come twice: then it is among those that come
        assert len(found) == min(most, size)
        for point, (position, place) in enumerate(
            zip(found.positions.tolist(), found.storage.tolist(), strict=True)
        ):
            at = round(position * size - 0.5)
            assert position == pytest.approx((at + 0.5) / size)
            assert size * point // len(found) <= at < size * (point + 1) // len(found)
            # Of what comes twice, one is before the other.
            before = sum(other < stored[at] for other in among)
            alike = among.count(stored[at])
            assert before - 1e-6 <= place * size - 0.5 <= before + alike - 1 + 1e-6

    check_cases(st.tuples(orders(), st.sampled_from([1, 2, 7, 1000])), check, 300)


def test_points_of_stretches_lie_all_over_the_epoch() -> None:
    order = plan_order(dataset_of(train=(1000,) * 500), "train", {"cycle": 1}).order
    found = places(sample_epoch(order, limit=1000), most=64)
    assert np.abs(found.positions - (np.arange(64) + 0.5) / 64).max() < 1 / 64
    assert found.storage.tolist() == pytest.approx(found.positions.tolist())


def test_points_do_not_keep_step_with_the_interleave() -> None:
    # 16 slots in turn, 16 examples each: at equal distances of 256 all would be of one slot.
    order = plan_order(dataset_of(train=(4096,) * 16), "train", {"cycle": 16, "block": 16}).order
    found = places(sample_epoch(order), most=256)
    slots = (found.storage * 16).astype(int)
    assert np.bincount(slots, minlength=16).min() > 3
