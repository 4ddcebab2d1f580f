"""Elements of orders: where each begins, and counts that end within one."""

from __future__ import annotations

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.tfds.graphs.own_elements import Elements, IndexElements

DATASET = Dataset(name="d", splits=(Split(name="train", shard_lengths=(5, 5)),))


@pytest.mark.parametrize(
    "stages", ["batch(4) | repeat(2) | shuffle(1, seed=1)", "batch(4) | repeat(2)"]
)
def test_partial_batches_are_counted_as_they_are(stages: str) -> None:
    found = Elements(plan_order(DATASET, None, as_settings({"stages": stages})).order)
    assert (found.num_elements, found.num_examples, found.up_to(9)) == (6, 20, 6)
    assert found.examples(0, 6)[2].tolist() == [4, 4, 2, 4, 4, 2]
    assert [found.element_after(n) for n in (0, 4, 8, 10, 14, 20)] == [0, 1, 2, 3, 4, 6]
    with pytest.raises(UsageError, match=r"consumed=9 .* step 2, .* 8 to 9; .* 8 and 10"):
        found.element_after(9)
    with pytest.raises(UsageError, match="hands out 20 examples"):
        found.element_after(21)


def test_the_short_form_has_the_batches_of_its_settings() -> None:
    found = Elements(plan_order(DATASET, None, ReadSettings(batch=4, epochs=2)).order)
    assert (found.num_elements, found.num_examples) == (5, 20)
    assert [found.element_after(n) for n in (0, 4, 20)] == [0, 1, 5]
    assert found.examples(3, 5)[2].tolist() == [4, 4]
    single = Elements(plan_order(DATASET, None, ReadSettings(cycle=1)).order)
    assert single.examples(3, 6)[1].tolist() == [3, 4, 5]
    assert single.examples(3, 6)[2].tolist() == [1, 1, 1]
    assert (single.num_elements, single.examples(4, 4)[2].tolist()) == (10, [])


def test_a_pipeline_without_end_is_followed() -> None:
    found = IndexElements(as_settings({"stages": "range(3) | repeat | batch(2)"}))
    assert (found.num_elements, found.up_to(100)) == (None, 100)
    assert found.examples(0, 3)[1].tolist() == [0, 1, 2, 0, 1, 2]
    assert found.element_after(1000) == 500


def test_an_end_that_is_far_off_is_counted_and_not_followed_to() -> None:
    found = IndexElements(as_settings({"stages": "range(3) | repeat(1000000000) | batch(2)"}))
    assert (found.num_elements, found.num_examples, found.up_to(100)) == (1_500_000_000, None, 100)
    assert found.element_after(1000) == 500
    found = IndexElements(as_settings({"stages": "range(100001) | batch(1)"}))
    assert (found.num_elements, found.up_to(200_000)) == (100_001, 100_001)
    assert (found.num_examples, found.element_after(100_001)) == (100_001, 100_001)
    found = IndexElements(as_settings({"stages": "range(100001) | batch(1)"}))
    with pytest.raises(UsageError, match="hands out 100,001 examples"):
        found.element_after(100_002)
