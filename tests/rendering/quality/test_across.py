"""How an order differs from the next pass and from other hosts, as lines and records."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.quality.across import AcrossEpochs, AcrossHosts
from shardctl.planning.quality.quality import quality
from shardctl.planning.quality.score import Metric
from shardctl.rendering.quality.across import epochs_line, epochs_record, hosts_line, hosts_record
from shardctl.rendering.quality.quality import (
    quality_table,
)
from shardctl.rendering.text.screen import PLAIN
from tests.planning.quality.quality_orders import even_dataset


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (ReadSettings(), "from pass 0 to pass 1: the same order"),
        (ReadSettings(pass_index=3), "from pass 3 to pass 4: the same order"),
        (ReadSettings(epochs=2), "from epoch 0 to epoch 1: the same order"),
        (ReadSettings(shuffle_seed=1), "from pass 0 to pass 1: another order, correlation "),
        (ReadSettings(shuffle_seed=1, repeat_files=True), "next pass: its order depends on timing"),
    ],
)
def test_the_next_epoch_is_a_line(settings: ReadSettings, words: str) -> None:
    plan = quality(even_dataset(4000, 20), "train", settings, what_if=False)
    assert any(line.startswith(words) for line in "".join(quality_table(plan, PLAIN)).splitlines())


COVERAGE = Metric(
    name="batch_coverage", value=0.5, expected=0.63, spread=0.01, fault="below", reach=0.26
)
ACROSS = AcrossHosts(
    num_hosts=4,
    hosts=(0, 1, 2, 3),
    correlation=0.25,
    spread=0.0125,
    coverage=COVERAGE,
    shared=0.0625,
)


def test_hosts_are_a_line_with_what_permutations_of_their_own_would_show() -> None:
    plan: Any = SimpleNamespace(across_hosts=ACROSS)
    assert hosts_line(plan) == (
        "across 4 hosts: correlation of their places 0.2500 (each its own permutation: 0, spread "
        "0.0125); their batches together cover 0.5000 of storage (uniform 0.6300, spread "
        "0.01000); examples read by more than one: 6.25%"
    )
    plan.across_hosts = replace(ACROSS, num_hosts=1000)
    assert hosts_line(plan).startswith("across 1,000 hosts, 4 of them compared: ")


def test_hosts_are_a_record_of_the_same_figures() -> None:
    plan: Any = SimpleNamespace(across_hosts=ACROSS)
    assert hosts_record(plan) == {
        "num_hosts": 4,
        "hosts": [0, 1, 2, 3],
        "correlation": 0.25,
        "expected": 0.0,
        "spread": 0.0125,
        "coverage": 0.5,
        "expected_coverage": 0.63,
        "coverage_spread": 0.01,
        "shared": 0.0625,
    }


@pytest.mark.parametrize(
    ("kept", "end"),
    [
        (None, "correlation 0.1000 (uniform 0, spread 0.0500)"),
        (0.5, "; neighbours that follow each other again: 50.00% (uniform 0.2500%)"),
    ],
)
def test_neighbours_are_said_where_they_are_known(kept: float | None, end: str) -> None:
    across = AcrossEpochs(
        unit="epoch",
        same_order=False,
        correlation=0.1,
        spread=0.05,
        neighbours_kept=kept,
        expected_kept=0.0025,
    )
    order = SimpleNamespace(settings=ReadSettings(epochs=2))
    plan: Any = SimpleNamespace(across_epochs=across, order=order)
    assert epochs_line(plan).endswith(end)
    record = epochs_record(plan)
    assert record is not None
    assert (record["unit"], record["neighbours_kept"], record["expected"]) == ("epoch", kept, 0.0)


def test_what_is_not_compared_has_no_record() -> None:
    plan: Any = SimpleNamespace(across_hosts=None, across_epochs=None)
    assert (hosts_line(plan), hosts_record(plan), epochs_record(plan)) == ("", None, None)
