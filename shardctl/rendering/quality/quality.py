"""The quality of an order, as tables for people, a document or rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from shardctl.core.columns import RecordStream, picked, record_of, records_of, stream_of
from shardctl.files.documents import Document
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.score import meaning
from shardctl.planning.quality.what_if import Alternative
from shardctl.rendering.quality.memory import counted_how, memory_lines, memory_record
from shardctl.rendering.quality.metrics import (
    LABELS,
    METRIC,
    metric_table,
    part_record,
    part_table,
)
from shardctl.rendering.text.command_line import as_options
from shardctl.rendering.text.quantities import human_bytes, number
from shardctl.rendering.text.step_rows import order_head, order_heading, pipeline_record
from shardctl.rendering.text.tables import Screen, columns, paragraph, paragraphs, table


def quality_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the score, the metrics it is made of, the parts of the epoch, and what would help."""
    yield from order_heading(plan.spec, plan.order, screen)
    score = plan.score
    error = "" if score.sampling_error is None else f", sampling error {score.sampling_error:.4f}"
    verdict = f"verdict: {plan.verdict} ({meaning(plan.verdict, plan.order)})"
    yield from paragraphs(screen, verdict, f"score {score.value:.4f} of 1{error}", style="bold")
    uniform = f"a uniform permutation scores {score.expected:.4f}, spread {score.spread:.4f}"
    weakest = f"weakest: {LABELS[plan.weakest.name]}"
    yield from paragraphs(screen, uniform, weakest, measured_line(plan))
    yield "\n"
    if screen.pictures:
        from shardctl.rendering.text.drawers import picture_lines

        yield from picture_lines(plan, screen, most=2)
        yield "\n"
    yield from metric_table(plan, screen)
    yield "\n"
    yield from part_table(plan, screen)
    yield "\n"
    yield from paragraphs(screen, epochs_line(plan), hosts_line(plan))
    if plan.alternatives:
        yield "\n"
        yield from what_if_table(plan, screen)
    yield from paragraphs(screen, target_line(plan))
    if plan.buffer_bytes is not None or plan.memory is not None:
        yield "\n"
        yield from paragraphs(screen, *map(as_options, memory_lines(plan)))


def measured_line(plan: Quality) -> str:
    """Return how much of an epoch is measured."""
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
    target, sampled = plan.buffer_for_target, plan.sampled
    return {
        **order_head("quality", plan.order),
        "spec": plan.spec,
        "pipeline": pipeline_record(plan.order),
        "assumed": dict(plan.assumed),
        **picked(plan, "num_examples window num_classes verdict"),
        **picked(plan.score, "score=value near far expected spread sampling_error"),
        "weakest": plan.weakest.name,
        "metrics": records_of(METRIC, plan.metrics),
        "by_position": [part_record(part) for part in plan.by_position],
        "tail": None if plan.tail is None else part_record(plan.tail),
        "across_epochs": epochs_record(plan),
        "across_hosts": hosts_record(plan),
        "what_if": [alternative_record(choice) for choice in plan.alternatives],
        "buffer_for_target": None if target is None else asdict(target),
        **memory_record(plan),
        "sampled": record_of(
            sampled, "num_examples num_stretches stretch buffer_by_law=buffer_drawn"
        ),
    }


def quality_rows(plan: Quality) -> RecordStream:
    """Return a row for the score and for each metric."""
    score = picked(plan.score, "value score=value expected spread sampling_error")
    metrics = records_of(METRIC, plan.metrics)
    return stream_of(metrics.fields, [("score", *score.values(), None), *metrics.rows()])


def epochs_line(plan: Quality) -> str:
    """Return how the next pass differs from this one."""
    across = plan.across_epochs
    if across is None:
        return "next pass: its order depends on timing, so there is nothing to compare"
    index = plan.order.settings.pass_index
    first = 0 if across.unit == "epoch" else index
    title = f"from {across.unit} {first} to {across.unit} {first + 1}"
    if across.same_order:
        return f"{title}: the same order"
    text = (
        f"{title}: another order, correlation {across.correlation:.4f} "
        f"(uniform 0, spread {across.spread:.4f})"
    )
    if across.neighbours_kept is None:
        return text
    return (
        f"{text}; neighbours that follow each other again: {across.neighbours_kept:.2%} "
        f"(uniform {across.expected_kept:.4%})"
    )


def hosts_line(plan: Quality) -> str:
    """Return how the orders of the hosts differ, nothing where they are not compared."""
    across = plan.across_hosts
    if across is None:
        return ""
    compared = f"{across.num_hosts:,} hosts"
    if len(across.hosts) < across.num_hosts:
        compared += f", {len(across.hosts)} of them compared"
    coverage = across.coverage
    return (
        f"across {compared}: correlation of their places {across.correlation:.4f} "
        f"(each its own permutation: 0, spread {across.spread:.4f}); their batches together cover "
        f"{coverage.value:.4f} of storage (uniform {coverage.expected:.4f}, "
        f"spread {coverage.spread:.5f}); "
        f"examples read by more than one: {across.shared:.2%}"
    )


def epochs_record(plan: Quality) -> dict[str, Any] | None:
    """Return how the next pass differs, None where its order is open."""
    across = plan.across_epochs
    if across is None:
        return None
    found = picked(across, "unit same_order correlation")
    return {**found, "expected": 0.0, **picked(across, "spread neighbours_kept expected_kept")}


def hosts_record(plan: Quality) -> dict[str, Any] | None:
    """Return how the orders of the hosts differ, None where they are not compared."""
    across = plan.across_hosts
    if across is None:
        return None
    coverage = "coverage=value expected_coverage=expected coverage_spread=spread"
    return {
        **picked(across, "num_hosts hosts correlation"),
        "expected": 0.0,
        "spread": across.spread,
        **picked(across.coverage, coverage),
        "shared": across.shared,
    }


def what_if_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield what other settings would score, and which of them do most."""
    shown = columns("<what_if score error buffer")
    rows = [
        [
            choice.change,
            number(choice.score.value, 4),
            number(choice.score.sampling_error, 4),
            "" if choice.num_bytes is None else human_bytes(choice.num_bytes),
        ]
        for choice in plan.alternatives
    ]
    yield table(shown, rows, screen)
    yield paragraph(best_line(plan), screen)


def best_line(plan: Quality) -> str:
    """Return which of the other settings do most, with a larger buffer and without."""
    as_it_is, best = plan.alternatives[0], _best(plan.alternatives)
    if best is as_it_is:
        return "none of these does more than the settings as they are"
    free = _best([choice for choice in plan.alternatives if choice.num_bytes is None])
    text = f"does most: {best.change}"
    if free is not best and free is not as_it_is:
        text += f"; without a larger buffer: {free.change}"
    return text


def _best(choices: Sequence[Alternative]) -> Alternative:
    return max(choices, key=lambda choice: choice.score.value)


def target_line(plan: Quality) -> str:
    """Return the buffer that reaches the score asked for, nothing where none is."""
    found = plan.buffer_for_target
    if found is None:
        return ""
    title = f"buffer for a score of {found.target:g}"
    if found.buffer is None:
        return f"{title}: none, one of the whole epoch scores {found.score:.4f}"
    if not found.buffer:
        return f"{title}: none is needed, without one it is {found.score:.4f}"
    size = "of unknown size"
    if found.num_bytes is not None:
        size = f"{human_bytes(found.num_bytes)} {counted_how(plan.element_size)}"
    return f"{title}: {found.buffer:,} examples, {size}; it scores {found.score:.4f}"


def alternative_record(choice: Alternative) -> dict[str, Any]:
    """Return what one change would score."""
    fields = "change score=score.value verdict sampling_error=score.sampling_error"
    return picked(choice, f"{fields} buffer_bytes=num_bytes")
