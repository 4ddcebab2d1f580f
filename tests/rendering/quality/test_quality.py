"""The quality of an order, as people and programs read it."""

from __future__ import annotations

import pytest

from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.files.documents import to_json, to_yaml
from shardctl.planning.quality.quality import quality
from shardctl.rendering.quality.quality import (
    CSV_HEADER,
    quality_document,
    quality_rows,
    quality_table,
)
from shardctl.rendering.text.screen import PLAIN, Screen
from tests.planning.quality.quality_orders import even_dataset

_FULL = ReadSettings(
    shuffle_seed=1,
    buffer=50,
    buffer_seed=1,
    host=Host(index=0, count=2),
    batch=16,
    epochs=2,
)


@pytest.mark.parametrize("width", [20, 60, 80])
def test_nothing_is_wider_than_the_screen(width: int) -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=10, target=0.5)
    text = "".join(quality_table(plan, Screen(width=width)))
    assert max(map(len, text.splitlines())) <= width
    assert "does most: " in text.replace("\n", " ")


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


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (0.0001, "buffer for a score of 0.0001: none is needed, without one it is 0.0"),
        (1.0, "buffer for a score of 1: none, one of the whole epoch scores 0.9"),
        (0.5, " as stored (decoded examples take more); it scores 0.5"),
    ],
)
def test_the_buffer_for_a_target_is_a_line(target: float, words: str) -> None:
    plan = quality(even_dataset(4000, 20), "train", target=target, what_if=False)
    assert words in "".join(quality_table(plan, PLAIN))


def test_the_last_line_of_the_parts_is_the_uniform_one() -> None:
    plan = quality(even_dataset(40_000, 20), "train", what_if=False)
    lines = "".join(quality_table(plan, PLAIN)).splitlines()
    header = next(i for i, line in enumerate(lines) if line.lstrip().startswith("from  "))
    cells = lines[header + 12].split()
    assert cells[0] == "uniform"
    assert cells[-1] == "0.5000"
    assert lines[header + 11].split()[0] == f"{plan.tail.start:,}" if plan.tail else False


def test_documents_and_rows_hold_every_metric() -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=0, target=0.5)
    document = quality_document(plan)
    assert "".join(to_json(document))
    assert "".join(to_yaml(document))
    rows = list(quality_rows(plan))
    assert all(len(row) == len(CSV_HEADER) for row in rows)
    assert len(rows) == 1 + len(plan.metrics)
    assert document["across_hosts"]["num_hosts"] == 2


def test_rows_and_document_say_the_same_of_each_metric() -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, num_classes=10)
    score, *metrics = [dict(zip(CSV_HEADER, row, strict=True)) for row in quality_rows(plan)]
    document = quality_document(plan)
    assert document["metrics"] == metrics
    assert (score["value"], score["expected"]) == (document["score"], document["expected"])
    assert document["weakest"] in [metric["name"] for metric in metrics]


def test_a_part_has_the_value_of_each_metric_near_by() -> None:
    plan = quality(even_dataset(4000, 20), "train", _FULL, what_if=False)
    document = quality_document(plan)
    assert [(part["start"], part["stop"]) for part in document["by_position"]] == [
        (part.start, part.stop) for part in plan.by_position
    ]
    near = [metric["name"] for metric in document["metrics"] if metric["counts"] == "near"]
    assert near
    assert all(name in part for part in document["by_position"] for name in near)


def test_what_was_not_asked_or_does_not_apply_is_null() -> None:
    document = quality_document(quality(even_dataset(400, 4), "train", what_if=False))
    for name in ("num_classes", "across_hosts", "buffer_for_target", "sampled", "sampling_error"):
        assert document[name] is None
    assert document["what_if"] == []
    assert document["assumed"] == {}
