"""The quality of an order, as people and programs read it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from shardctl.dataset.element_size import ElementSize
from shardctl.draw.tables import PLAIN, Screen
from shardctl.files.documents import to_json, to_yaml
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.across import AcrossEpochs, AcrossHosts
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.quality.score import Metric, score_of
from shardctl.verbs.quality.view import (
    alternative_record,
    epochs_line,
    epochs_record,
    hosts_line,
    hosts_record,
    quality_document,
    quality_rows,
    quality_table,
    target_line,
    what_if_table,
)
from shardctl.verbs.quality.what_if import Alternative, BufferForTarget
from tests.columns import record_dicts
from tests.verbs.quality.quality_orders import even_dataset

_FULL = ReadSettings(
    shuffle_seed=1, buffer=50, buffer_seed=1, host=Host(index=0, count=2), batch=16, epochs=2
)


@pytest.mark.parametrize("width", [20, 60, 80])
def test_nothing_is_wider_than_the_screen(width: int) -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=10, target=0.5)
    text = "".join(quality_table(plan, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width
    assert "does most: " in text.replace("\n", " ")


def test_documents_and_rows_hold_every_metric() -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=0, target=0.5)
    document = quality_document(plan)
    assert "".join(to_json(document))
    assert "".join(to_yaml(document))
    rows = list(quality_rows(plan).rows())
    assert len(rows) == 1 + len(plan.metrics)
    assert document["across_hosts"]["num_hosts"] == 2


def test_rows_and_document_say_the_same_of_each_metric() -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=10)
    score, *metrics = record_dicts(quality_rows(plan))
    document = quality_document(plan)
    assert list(document["metrics"]) == metrics
    assert (score["value"], score["expected"]) == (document["score"], document["expected"])
    assert document["weakest"] in [metric["name"] for metric in metrics]


def test_what_was_not_asked_or_does_not_apply_is_null() -> None:
    document = quality_document(quality(even_dataset(400, 4), "train", what_if=False))
    for name in ("num_classes", "across_hosts", "buffer_for_target", "sampled", "sampling_error"):
        assert document[name] is None
    assert document["what_if"] == []
    assert document["assumed"] == {}


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


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (0.0001, "buffer for a score of 0.0001: none is needed, without one it is 0.0"),
        (1.0, "buffer for a score of 1: none, one of the whole epoch scores 0.9"),
        (0.5, " as stored (decoded images take more); it scores 0.5"),
    ],
)
def test_the_buffer_for_a_target_is_a_line(target: float, words: str) -> None:
    plan = quality(even_dataset(4000, 20), "train", target=target, what_if=False)
    assert words in "".join(quality_table(plan, PLAIN))


def choice(change: str, value: float, num_bytes: int | None = None) -> Alternative:
    metric = Metric(name="x", value=1 - value, expected=0, spread=0, fault="above", reach=1)
    return Alternative(change=change, score=score_of([metric]), verdict="fair", num_bytes=num_bytes)


def test_the_change_that_does_most_is_named_and_the_best_without_a_buffer() -> None:
    choices = (choice("as it is", 0.25), choice("block 1", 0.5), choice("buffer 9", 0.75, 2048))
    plan: Any = SimpleNamespace(alternatives=choices)
    assert "".join(what_if_table(plan, PLAIN)) == (
        "what if    score  error   buffer\n"
        "as it is  0.2500      -\n"
        "block 1   0.5000      -\n"
        "buffer 9  0.7500      -  2.0 KiB\n"
        "does most: buffer 9; without a larger buffer: block 1\n"
    )
    plan.alternatives = choices[:2]
    assert "".join(what_if_table(plan, PLAIN)).endswith("does most: block 1\n")
    # What changes nothing, or makes it worse, is no advice.
    plan.alternatives = (choices[0], choice("cycle 64", 0.25), choice("block 1", 0.125))
    assert "".join(what_if_table(plan, PLAIN)).endswith(
        "none of these does more than the settings as they are\n"
    )
    plan.alternatives = (choices[0], choice("block 1", 0.125), choices[2])
    assert "".join(what_if_table(plan, PLAIN)).endswith("does most: buffer 9\n")


def test_a_change_is_a_record() -> None:
    assert alternative_record(choice("buffer 9", 0.75, 2048)) == {
        "change": "buffer 9",
        "score": 0.75,
        "verdict": "fair",
        "sampling_error": None,
        "buffer_bytes": 2048,
    }


@pytest.mark.parametrize(
    ("found", "line"),
    [
        (None, ""),
        (
            BufferForTarget(target=0.5, buffer=1000, score=0.51, num_bytes=None),
            "buffer for a score of 0.5: 1,000 examples, of unknown size; it scores 0.5100",
        ),
        (
            BufferForTarget(target=0.5, buffer=1000, score=0.51, num_bytes=3 * 2**20),
            "buffer for a score of 0.5: 1,000 examples, 3.0 MiB as stored (decoded images take "
            "more); it scores 0.5100",
        ),
        (
            BufferForTarget(target=1.0, buffer=None, score=0.999, num_bytes=None),
            "buffer for a score of 1: none, one of the whole epoch scores 0.9990",
        ),
        (
            BufferForTarget(target=0.25, buffer=0, score=0.3, num_bytes=0),
            "buffer for a score of 0.25: none is needed, without one it is 0.3000",
        ),
    ],
)
def test_a_target_is_a_line(found: BufferForTarget | None, line: str) -> None:
    stored = ElementSize(num_bytes=Fraction(3146), basis="stored")
    plan: Any = SimpleNamespace(buffer_for_target=found, element_size=stored)
    assert target_line(plan) == line


def test_the_verdict_comes_first_and_is_a_field() -> None:
    for settings, verdict in (
        (ReadSettings(), "no shuffle"),
        (ReadSettings(buffer=100, buffer_seed=1), "weak"),
        (ReadSettings(buffer=-2, buffer_seed=1), "as good as uniform"),
    ):
        plan = quality(even_dataset(4000, 20), "train", settings, what_if=False)
        lines = "".join(quality_table(plan, PLAIN)).splitlines()
        assert lines[1].startswith(f"verdict: {verdict} (")
        assert quality_document(plan)["verdict"] == plan.verdict == verdict
