"""The metrics of an order, of the whole epoch and of its parts: tables, records and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.core.text import counted
from shardctl.planning.quality.quality import Part, Quality
from shardctl.planning.quality.score import Metric
from shardctl.rendering.text.tables import Column, Screen, paragraph, table

CSV_HEADER = ("name", "value", "score", "expected", "spread", "sampling_error", "counts")

LABELS = {
    "same_shard_neighbours": "same-shard neighbours",
    "neighbour_distance": "neighbour distance",
    "batch_coverage": "batch coverage",
    "class_purity": "class purity",
    "displacement": "displacement",
    "rank_correlation": "rank correlation",
    "shards_in_batch": "shards in a batch",
    "buffer_coverage": "buffer coverage",
}
_SHORT = {
    "same_shard_neighbours": "one shard",
    "neighbour_distance": "distance",
    "batch_coverage": "covered",
    "class_purity": "one class",
}


def metric_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the metrics beside what a uniform permutation shows."""
    yield table(*metric_cells(plan), screen)
    if any(metric.scale == "shown" for metric in plan.metrics):
        yield paragraph("* shown, not in the score", screen)


def metric_cells(plan: Quality) -> tuple[list[Column], list[list[str]]]:
    """Return the metrics beside what a uniform permutation shows, as columns and rows."""
    columns = [Column(heading="metric", align="left")]
    columns += [Column(heading=name) for name in ("measured", "uniform", "spread", "score")]
    if plan.sampled is not None:
        columns.append(Column(heading="error"))
    rows = []
    for metric in plan.metrics:
        star = "*" if metric.scale == "shown" else ""
        row = [
            f"{LABELS[metric.name]}{star}",
            _number(metric.value),
            _number(metric.expected),
            f"{metric.spread:.5f}",
            f"{metric.score:.4f}",
        ]
        if plan.sampled is not None:
            row.append("-" if metric.sampling_error is None else f"{metric.sampling_error:.5f}")
        rows.append(row)
    return columns, rows


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"


def part_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the parts of the epoch, and what the columns are."""
    parts = plan.by_position if plan.tail is None else (*plan.by_position, plan.tail)
    first = parts[0]
    names = [metric.name for metric in first.metrics]
    columns = [Column(heading="from"), Column(heading="near by")]
    columns += [Column(heading=_SHORT[name]) for name in names]
    columns.append(Column(heading="place"))
    rows = [_part_row(part, names) for part in parts]
    uniform = [f"{metric.expected:.4f}" for metric in first.metrics]
    rows.append(["uniform", f"{first.score.expected:.4f}", *uniform, "0.5000"])
    yield table(columns, rows, screen)
    note = (
        "from: position in the epoch; near by: the score without displacement and correlation; "
        "place: where in storage the examples lie on average, from 0 to 1"
    )
    if plan.tail is not None:
        tail = counted(plan.tail.stop - plan.tail.start, "example")
        note += f"; before uniform: the last {tail} again"
    yield paragraph(note, screen)


def _part_row(part: Part, names: list[str]) -> list[str]:
    values = {metric.name: metric.value for metric in part.metrics}
    return [
        f"{part.start:,}",
        f"{part.score.value:.4f}",
        *(f"{values[name]:.4f}" if name in values else "-" for name in names),
        f"{part.mean_storage:.4f}",
    ]


def metric_record(metric: Metric) -> dict[str, Any]:
    """Return a metric with the names of CSV_HEADER."""
    return dict(zip(CSV_HEADER, metric_row(metric), strict=True))


def metric_row(metric: Metric) -> tuple[object, ...]:
    """Return a metric as a row of CSV_HEADER."""
    return (
        metric.name,
        metric.value,
        metric.score,
        metric.expected,
        metric.spread,
        metric.sampling_error,
        metric.scale,
    )


def part_record(part: Part) -> dict[str, Any]:
    """Return a part of the epoch with its metrics."""
    return {
        "start": part.start,
        "stop": part.stop,
        "score": part.score.value,
        "expected": part.score.expected,
        "spread": part.score.spread,
        **{metric.name: metric.value for metric in part.metrics},
        "mean_storage": part.mean_storage,
    }
