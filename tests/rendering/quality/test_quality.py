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
from shardctl.rendering.text.screen import Screen
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


def test_what_was_not_asked_or_does_not_apply_is_null() -> None:
    document = quality_document(quality(even_dataset(400, 4), "train", what_if=False))
    for name in ("num_classes", "across_hosts", "buffer_for_target", "sampled", "sampling_error"):
        assert document[name] is None
    assert document["what_if"] == []
    assert document["assumed"] == {}
