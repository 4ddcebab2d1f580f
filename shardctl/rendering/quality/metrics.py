"""The metrics of an order, of the whole epoch and of its parts: tables, records and rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.core.columns import picked
from shardctl.core.text import counted
from shardctl.planning.quality.quality import Part, Quality
from shardctl.rendering.text.quantities import number
from shardctl.rendering.text.tables import Column, Screen, columns, paragraph, table

METRIC = "name value score expected spread sampling_error counts=scale"

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
    error = "error" if plan.sampled is not None else ""
    shown = columns(f"<metric measured uniform spread score {error}")
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
            row.append(number(metric.sampling_error, 5))
        rows.append(row)
    return shown, rows


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"


def part_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the parts of the epoch, and what the columns are."""
    parts = plan.by_position if plan.tail is None else (*plan.by_position, plan.tail)
    first = parts[0]
    names = [metric.name for metric in first.metrics]
    short = (Column(heading=_SHORT[name]) for name in names)
    shown = [*columns("from near_by"), *short, *columns("place")]
    rows = [_part_row(part, names) for part in parts]
    uniform = [f"{metric.expected:.4f}" for metric in first.metrics]
    rows.append(["uniform", f"{first.score.expected:.4f}", *uniform, "0.5000"])
    yield table(shown, rows, screen)
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
        *(number(values.get(name), 4) for name in names),
        f"{part.mean_storage:.4f}",
    ]


def part_record(part: Part) -> dict[str, Any]:
    """Return a part of the epoch with its metrics."""
    return {
        **picked(part, "start stop"),
        **picked(part.score, "score=value expected spread"),
        **{metric.name: metric.value for metric in part.metrics},
        "mean_storage": part.mean_storage,
    }
