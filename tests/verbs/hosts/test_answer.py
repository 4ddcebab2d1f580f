"""Hosts compared: figures by brute force, permutations by tf.data, verdicts as named cases."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.hosts.advice import reason
from shardctl.verbs.hosts.answer import hosts
from tests.spec.hosts.host_cases import HostCase
from tests.verbs.hosts.comparisons import IMAGENET, compared, toy


def test_64_hosts_with_ds_shard_read_the_data_64_times() -> None:
    comparison = compared(IMAGENET, 64)
    amplification = [strategy.read_amplification for strategy in comparison.strategies]
    assert amplification[1:] == [1.0, 64.0]
    assert 1.0 < (amplification[0] or 0) < 1.03
    assert [strategy.shared_files for strategy in comparison.strategies][1:] == [0, 1024]
    assert [strategy.num_files.max for strategy in comparison.strategies][1:] == [16, 1024]


@pytest.mark.parametrize(
    ("dataset", "num_hosts", "settings", "expected"),
    [
        pytest.param(IMAGENET, 1, {}, "even", id="one host: as TFDS does by default"),
        pytest.param(IMAGENET, 64, {"batch": 256}, "files", id="files divide: no file read twice"),
        pytest.param(IMAGENET, 60, {"batch": 256}, "even", id="files leave batches unequal"),
        pytest.param(IMAGENET, 60, {}, "even", id="files are 5% out of balance"),
        pytest.param(IMAGENET, 2000, {}, "even", id="more hosts than files"),
        pytest.param(toy(60_000), 8, {}, "even", id="one file, which TFDS does not split"),
        pytest.param(toy(10, 10), 2, {}, "even", id="both read once: TFDS's default"),
        pytest.param(toy(3), 4, {}, "examples", id="more hosts than examples"),
        pytest.param(toy(), 4, {}, None, id="nothing to read"),
    ],
)
def test_the_strategy_that_serves_best(
    dataset: Dataset, num_hosts: int, settings: dict[str, Any], expected: str | None
) -> None:
    comparison = compared(dataset, num_hosts, **settings)
    best = comparison.recommended
    assert (None if best is None else best.name) == expected
    assert reason(comparison)


@pytest.mark.parametrize(
    ("num_files", "num_hosts", "expected"),
    [(1024, 64, (1024,)), (1024, 60, (1020, 1080)), (3, 8, (8,)), (8, 8, (8,)), (0, 8, (8,))],
)
def test_shard_counts_that_divide_evenly(
    num_files: int, num_hosts: int, expected: tuple[int, ...]
) -> None:
    assert compared(toy(*[2] * num_files), num_hosts).even_shard_counts == expected
    for count in expected:
        files = compared(toy(*[2] * count), num_hosts).strategy("files")
        assert (files.num_files.min, files.imbalance) == (files.num_files.max, 1.0)


def test_a_sweep_has_the_figures_of_each_number_of_hosts() -> None:
    counts = [1, 7, 64, 2000]
    sweep = hosts(IMAGENET, "train", ReadSettings(batch=32), hosts=counts).comparisons
    for comparison, count in zip(sweep, counts, strict=True):
        single = compared(IMAGENET, count, batch=32)
        assert comparison.num_hosts == count
        assert reason(comparison) == reason(single)
        for ours, theirs in zip(comparison.strategies, single.strategies, strict=True):
            assert (ours.num_examples, ours.num_bytes, ours.num_batches) == (
                theirs.num_examples,
                theirs.num_bytes,
                theirs.num_batches,
            )


def test_hosts_of_tfds_repeat_and_leave_out_nothing() -> None:
    (found,) = hosts(toy(5, 4), "train", {"batch": 2, "drop_remainder": True}, hosts=2).comparisons
    assert (found.num_repeated, found.num_left_out) == (0, 0)  # what batches drop is counted there


def test_shares_of_a_subsplit_are_those_of_its_range() -> None:
    dataset = toy(4, 4, 4)
    case = HostCase(dataset=dataset, slices=((0, 2, 9),), num_hosts=2, strategy="files")
    found = compared(dataset, 2, "train[2:9]").strategy("files")
    assert found.columns is not None
    assert found.columns.num_examples.tolist() == [sum(map(len, host)) for host in case.reads()]
    assert case.ranges == [SplitRange(split=dataset.splits[0], start=2, stop=9)]


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_numbers_of_hosts_out_of_range_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 1000000"):
        hosts(IMAGENET, "train", hosts=count)


def test_data_sources_are_said_to_differ() -> None:
    dataset = Dataset(name="d", splits=IMAGENET.splits, file_format="array_record")
    assert "as_data_source" in hosts(dataset, "train", hosts=2).warnings[0]


def test_a_repr_names_the_best_strategy_for_each_of_a_few_numbers_of_hosts() -> None:
    # In equal numbers all have examples, and two have a file each.
    said = repr(hosts(toy(4, 4), "train", hosts=range(1, 7)))
    assert said == (
        "<HostsPlan toy train: 1 host (best: even), 2 hosts (best: even), 3 hosts (best: even), "
        "4 hosts (best: even) and 2 more>"
    )
    (none,) = hosts(toy(0), "train", hosts=2).comparisons
    assert repr(none) == "<Comparison 2 hosts: TFDS refuses all>"


def test_epochs_of_more_examples_than_63_bits_count_are_refused() -> None:
    with pytest.raises(UsageError, match="--epochs 4611686018427387904 of 8 examples is too many"):
        hosts(toy(4, 4), "train", ReadSettings(epochs=1 << 62), hosts=2)
