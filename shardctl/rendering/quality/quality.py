"""The quality of an order, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator

from shardctl.files.documents import Document
from shardctl.files.head import head
from shardctl.planning.quality.quality import Quality
from shardctl.rendering.quality.across import (
    epochs_line,
    epochs_record,
    hosts_line,
    hosts_record,
)
from shardctl.rendering.quality.metrics import (
    CSV_HEADER,
    LABELS,
    metric_record,
    metric_row,
    metric_table,
    part_record,
    part_table,
)
from shardctl.rendering.quality.what_if import (
    alternative_record,
    target_line,
    target_record,
    what_if_table,
)
from shardctl.rendering.text.order_records import pipeline_line, pipeline_record
from shardctl.rendering.text.screen import Screen
from shardctl.rendering.text.tables import paragraph

__all__ = ["CSV_HEADER", "quality_document", "quality_rows", "quality_table"]


def quality_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the score, the metrics it is made of, the parts of the epoch, and what would help."""
    yield paragraph(pipeline_line(plan.spec, plan.order), screen)
    score = plan.score
    error = "" if score.sampling_error is None else f", sampling error {score.sampling_error:.4f}"
    yield paragraph(f"score {score.value:.4f} of 1{error}", screen, style="bold")
    yield paragraph(
        f"a uniform permutation scores {score.expected:.4f}, spread {score.spread:.4f}", screen
    )
    yield paragraph(f"weakest: {LABELS[plan.weakest.name]}", screen)
    yield paragraph(_measured(plan), screen)
    yield "\n"
    yield from metric_table(plan, screen)
    yield "\n"
    yield from part_table(plan, screen)
    yield "\n"
    yield paragraph(epochs_line(plan), screen)
    if plan.across_hosts is not None:
        yield paragraph(hosts_line(plan), screen)
    if plan.alternatives:
        yield "\n"
        yield from what_if_table(plan, screen)
    if plan.buffer_for_target is not None:
        yield paragraph(target_line(plan), screen)


def _measured(plan: Quality) -> str:
    batch = f"batches of {plan.window:,}"
    if plan.sampled is None:
        return f"measured: all {plan.num_examples:,} examples of an epoch, {batch}"
    sampled = plan.sampled
    text = (
        f"measured: {sampled.num_examples:,} of {plan.num_examples:,} examples of an epoch, "
        f"in {sampled.num_stretches:,} stretches of {sampled.stretch:,}, {batch}"
    )
    return f"{text}; the buffer drawn at random, not its seed" if sampled.buffer_drawn else text


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
        "metrics": [metric_record(metric) for metric in plan.metrics],
        "by_position": [part_record(part) for part in plan.by_position],
        "tail": None if plan.tail is None else part_record(plan.tail),
        "across_epochs": epochs_record(plan),
        "across_hosts": hosts_record(plan),
        "what_if": [alternative_record(choice) for choice in plan.alternatives],
        "buffer_for_target": target_record(plan),
        "sampled": None
        if plan.sampled is None
        else {
            "num_examples": plan.sampled.num_examples,
            "num_stretches": plan.sampled.num_stretches,
            "stretch": plan.sampled.stretch,
            "buffer_by_law": plan.sampled.buffer_drawn,
        },
    }


def quality_rows(plan: Quality) -> Iterator[tuple[object, ...]]:
    """Yield a row of CSV_HEADER for the score and for each metric."""
    score = plan.score
    error = score.sampling_error
    yield ("score", score.value, score.value, score.expected, score.spread, error, None)
    for metric in plan.metrics:
        yield metric_row(metric)
