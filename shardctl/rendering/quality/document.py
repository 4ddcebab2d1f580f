"""The quality of an order, as a document or rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.quality.parts import Part
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import Metric
from shardctl.rendering.text.order_records import pipeline_record

CSV_HEADER = ("name", "value", "score", "expected", "spread", "sampling_error", "counts")


def quality_document(plan: Quality) -> Document:
    """Return the quality with every figure of the table."""
    return {
        **head("quality", plan.order.dataset.identity),
        "spec": plan.spec,
        "pipeline": pipeline_record(plan.order),
        "assumed": dict(plan.assumed),
        "num_examples": plan.num_examples,
        "window": plan.window,
        "num_classes": plan.num_classes,
        "score": plan.score.value,
        "near": plan.score.near,
        "far": plan.score.far,
        "expected": plan.score.expected,
        "spread": plan.score.spread,
        "sampling_error": plan.score.sampling_error,
        "weakest": plan.weakest.name,
        "metrics": [_metric_record(metric) for metric in plan.metrics],
        "by_position": [_part_record(part) for part in plan.by_position],
        "tail": None if plan.tail is None else _part_record(plan.tail),
        "across_epochs": _epochs_record(plan),
        "across_hosts": _hosts_record(plan),
        "what_if": [
            {
                "change": choice.change,
                "score": choice.score.value,
                "sampling_error": choice.score.sampling_error,
                "buffer_bytes": choice.num_bytes,
            }
            for choice in plan.alternatives
        ],
        "buffer_for_target": None
        if plan.buffer_for_target is None
        else {
            "target": plan.buffer_for_target.target,
            "buffer": plan.buffer_for_target.buffer,
            "score": plan.buffer_for_target.score,
            "num_bytes": plan.buffer_for_target.num_bytes,
        },
        "sampled": None
        if plan.sampled is None
        else {
            "num_examples": plan.sampled.num_examples,
            "num_stretches": plan.sampled.num_stretches,
            "stretch": plan.sampled.stretch,
            "buffer_by_law": plan.sampled.buffer_drawn,
        },
    }


def _metric_record(metric: Metric) -> dict[str, Any]:
    return dict(zip(CSV_HEADER, _metric_row(metric), strict=True))


def _metric_row(metric: Metric) -> tuple[object, ...]:
    return (
        metric.name,
        metric.value,
        metric.score,
        metric.expected,
        metric.spread,
        metric.sampling_error,
        metric.scale,
    )


def _part_record(part: Part) -> dict[str, Any]:
    return {
        "start": part.start,
        "stop": part.stop,
        "score": part.score.value,
        "expected": part.score.expected,
        "spread": part.score.spread,
        **{metric.name: metric.value for metric in part.metrics},
        "mean_storage": part.mean_storage,
    }


def _epochs_record(plan: Quality) -> dict[str, Any] | None:
    across = plan.across_epochs
    if across is None:
        return None
    return {
        "unit": across.unit,
        "same_order": across.same_order,
        "correlation": across.correlation,
        "expected": 0.0,
        "spread": across.spread,
        "neighbours_kept": across.neighbours_kept,
        "expected_kept": across.expected_kept,
    }


def _hosts_record(plan: Quality) -> dict[str, Any] | None:
    across = plan.across_hosts
    if across is None:
        return None
    return {
        "num_hosts": across.num_hosts,
        "hosts": list(across.hosts),
        "correlation": across.correlation,
        "expected": 0.0,
        "spread": across.spread,
        "coverage": across.coverage.value,
        "expected_coverage": across.coverage.expected,
        "coverage_spread": across.coverage.spread,
        "shared": across.shared,
    }


def quality_rows(plan: Quality) -> Iterator[tuple[object, ...]]:
    """Yield a row of CSV_HEADER for the score and for each metric."""
    score = plan.score
    error = score.sampling_error
    yield ("score", score.value, score.value, score.expected, score.spread, error, None)
    for metric in plan.metrics:
        yield _metric_row(metric)
