"""Who is late, and who is idle, in words: expected values by hand."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.shard_map import buckets
from shardctl.verbs.hosts.answer import hosts
from shardctl.verbs.hosts.view import Quantity, quantities, told_of_padding
from shardctl.verbs.layout.picture import told
from tests.verbs.hosts.host_plans import TOY, plan

EVEN, FILES, EXAMPLES = range(3)


def sentences(num_hosts: int, index: int, dataset: Dataset = TOY, **settings: int) -> list[str]:
    return list(told(plan(num_hosts, dataset, **settings).comparisons[0].strategies[index]))


def test_the_straggler_is_told_with_its_figures_and_files() -> None:
    # Two hosts and shards of 4, 4, 4: the first opens two, and has 8 of 12 examples.
    assert sentences(2, FILES, batch=4) == [
        "host 0 has the most: 8 examples (+33.3% over the mean), 2 batches (+33.3%), "
        "800 B (+33.3%); 2 files (mean 1.5)",
        "hosts make 1 to 2 batches: a collective hangs at step 1",
    ]


def test_what_a_host_skips_is_told_where_it_makes_it_late() -> None:
    # The second half begins within shard 1, whose first two examples are read and skipped.
    assert sentences(2, EVEN) == [
        "host 1 has the most: 800 B (+14.3% over the mean); 2 files, 8 examples taken from disk"
    ]


def test_hosts_that_are_as_late_are_counted_and_named() -> None:
    dataset = Dataset(name="d", splits=(Split(name="train", shard_lengths=(9, 9, 1, 9, 1, 1)),))
    assert sentences(6, FILES, dataset) == [
        "3 hosts (0–1, 3) have the most: 9 examples (+80.0% over the mean); 1 file"
    ]


def test_hosts_in_step_are_not_late() -> None:
    assert sentences(3, FILES, batch=2) == []
    assert sentences(2, EXAMPLES, batch=2) == []


def test_a_batch_more_is_late_however_small_a_part_it_is() -> None:
    dataset = Dataset(name="d", splits=(Split(name="train", shard_lengths=(100_001, 100_000)),))
    assert sentences(2, FILES, dataset, batch=1) == [
        "host 0 has the most: 100,001 batches; 1 file",
        "hosts make 100,000 to 100,001 batches: a collective hangs at step 100,000",
    ]
    assert sentences(2, FILES, dataset) == []


def test_idle_hosts_are_told_and_a_refused_way_hangs_nowhere() -> None:
    assert sentences(5, FILES, batch=4) == [
        "3 hosts (0–2) have the most: 4 examples (+66.7% over the mean), 1 batch (+66.7%), "
        "400 B (+66.7%); 1 file (mean 0.6)",
        "2 hosts (3–4) are idle: no examples",
    ]


def test_single_hosts_are_unknown_in_a_sweep() -> None:
    strategy = hosts(TOY, "train", hosts=[2, 3]).comparisons[0].strategies[0]
    assert quantities(strategy) == ()
    assert list(told(strategy)) == []


def test_padding_of_a_loader_is_told() -> None:
    comparison = plan(5, loader="torch", shuffle=True, shuffle_seed=1).comparisons[0]
    assert list(told_of_padding(comparison)) == ["3 examples are handed out again"]


@pytest.mark.parametrize(
    ("name", "values", "in_step", "straggler"),
    [
        ("examples", [3, 3, 3], False, None),
        ("examples", [10_000, 10_005], False, None),  # rounds to less than 0.1%
        ("examples", [10_000, 10_020], False, 1),
        ("batches", [10_000, 10_001], True, 1),
        ("examples", [311, 312, 312], False, None),  # as even as 935 of 3 can be
        ("examples", [310, 312, 312], False, 1),
        ("examples", [0, 0], False, None),
        ("bytes", [5, 7, 7], False, 1),
    ],
)
def test_the_first_host_that_stands_out_is_the_straggler(
    name: str, values: list[int], in_step: bool, straggler: int | None
) -> None:
    quantity = Quantity(name=name, values=np.array(values), in_step=in_step)
    assert quantity.straggler == straggler


def test_every_host_with_the_most_stands_out() -> None:
    quantity = Quantity(name="batches", values=np.array([4, 5, 4, 5, 4, 4]), in_step=True)
    assert [quantity.stands_out(group) for group in buckets(quantity.values, 3)] == [
        True,
        True,
        False,
    ]
    even = Quantity(name="batches", values=np.array([4, 4]), in_step=True)
    assert not any(even.stands_out(group) for group in buckets(even.values, 2))


def test_values_are_said_with_their_units() -> None:
    examples = Quantity(name="examples", values=np.array([1, 2000]))
    num_bytes = Quantity(name="bytes", values=np.array([1, 2048]))
    assert [examples.with_noun(1), examples.with_noun(2000)] == ["1 example", "2,000 examples"]
    assert [examples.between(1, 2000), num_bytes.between(1024, 2048)] == ["1–2,000", "1.0–2.0 KiB"]
    assert num_bytes.with_noun(2048) == "2.0 KiB"
