"""Metrics and parts of an epoch, as tables, records and rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from shardctl.draw.tables import PLAIN
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import Part, quality
from shardctl.verbs.quality.score import Metric, score_of
from shardctl.verbs.quality.view import (
    LABELS,
    metric_table,
    part_table,
    quality_document,
    quality_table,
)
from tests.verbs.quality.quality_orders import even_dataset


def test_the_last_line_of_the_parts_is_the_uniform_one() -> None:
    plan = quality(even_dataset(40_000, 20), "train", what_if=False)
    lines = "".join(quality_table(plan, PLAIN)).splitlines()
    header = next(i for i, line in enumerate(lines) if line.lstrip().startswith("from  "))
    cells = lines[header + 12].split()
    assert cells[0] == "uniform"
    assert cells[-1] == "0.5000"
    assert lines[header + 11].split()[0] == f"{plan.tail.start:,}" if plan.tail else False


def test_a_part_has_the_value_of_each_metric_near_by() -> None:
    settings = ReadSettings(shuffle_seed=1, buffer=50, buffer_seed=1, batch=16)
    plan = quality(even_dataset(4000, 20), "train", settings, what_if=False)
    document = quality_document(plan)
    assert [(part["start"], part["stop"]) for part in document["by_position"]] == [
        (part.start, part.stop) for part in plan.by_position
    ]
    near = [metric["name"] for metric in document["metrics"] if metric["counts"] == "near"]
    assert near
    assert all(name in part for part in document["by_position"] for name in near)


METRICS = (
    Metric(name="batch_coverage", value=0.5, expected=0.63, spread=0.01, fault="below", reach=0.26),
    Metric(
        name="shards_in_batch",
        value=12.25,
        expected=15.04,
        spread=0.2,
        fault="below",
        reach=4,
        scale="shown",
        sampling_error=0.03,
    ),
)


def plan_of(**fields: Any) -> Any:
    """Return what stands for a quality of which the tables read these fields alone."""
    return SimpleNamespace(**{"metrics": METRICS, "sampled": None, **fields})


def test_metrics_are_beside_what_a_uniform_order_shows() -> None:
    assert "".join(metric_table(plan_of(), PLAIN)) == (
        "metric              measured  uniform   spread   score\n"
        "batch coverage        0.5000   0.6300  0.01000  0.5000\n"
        "shards in a batch*      12.2     15.0  0.20000  0.3025\n"
        "* shown, not in the score\n"
    )


def test_of_a_sample_each_metric_has_an_error_where_it_is_known() -> None:
    lines = "".join(metric_table(plan_of(sampled="some"), PLAIN)).splitlines()
    assert [line.split()[-1] for line in lines[:3]] == ["error", "-", "0.03000"]


def test_a_part_that_lacks_a_metric_shows_a_dash() -> None:
    # The last part may be too short for a batch.
    parts = [
        Part(start=start, stop=stop, score=score_of(near), metrics=near, mean_storage=place)
        for start, stop, near, place in (
            (0, 1000, METRICS[:1], 0.25),
            (1000, 1200, (replace(METRICS[0], name="neighbour_distance"),), 0.75),
        )
    ]
    lines = "".join(part_table(plan_of(by_position=parts, tail=None), PLAIN)).splitlines()
    assert lines[:4] == [
        "   from  near by  covered   place",
        "      0   0.5000   0.5000  0.2500",
        "  1,000   0.5000        -  0.7500",
        "uniform   0.9847   0.6300  0.5000",
    ]
    tailed = "".join(part_table(plan_of(by_position=parts[:1], tail=parts[1]), PLAIN))
    assert "before uniform: the last 200 examples again" in tailed


def test_every_metric_has_a_label() -> None:
    settings = ReadSettings(buffer=50, buffer_seed=1, batch=16)
    plan = quality(even_dataset(4000, 20), "train", settings, num_classes=10, what_if=False)
    assert {metric.name for metric in plan.metrics} <= set(LABELS)
