"""The quality of an order, as tables for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shardctl.planning.quality.parts import Part
from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.what_if import Alternative
from shardctl.rendering.text.order_records import pipeline_line
from shardctl.rendering.text.quantities import counted, human_bytes
from shardctl.rendering.text.screen import Screen
from shardctl.rendering.text.tables import Column, paragraph, table

_LABELS = {
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


def quality_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield the score, the metrics behind it, the parts of the epoch, and what would help."""
    yield paragraph(pipeline_line(plan.spec, plan.order), screen)
    score = plan.score
    error = "" if score.sampling_error is None else f", sampling error {score.sampling_error:.4f}"
    yield paragraph(f"score {score.value:.4f} of 1{error}", screen, style="bold")
    yield paragraph(
        f"a uniform permutation scores {score.expected:.4f}, spread {score.spread:.4f}", screen
    )
    yield paragraph(f"weakest: {_LABELS[plan.weakest.name]}", screen)
    yield paragraph(_measured(plan), screen)
    yield "\n"
    yield from _metric_table(plan, screen)
    yield "\n"
    yield from _part_table(plan, screen)
    yield "\n"
    yield paragraph(_epochs_line(plan), screen)
    if plan.across_hosts is not None:
        yield paragraph(_hosts_line(plan), screen)
    if plan.alternatives:
        yield "\n"
        yield from _what_if_table(plan, screen)
    if plan.buffer_for_target is not None:
        yield paragraph(_target_line(plan), screen)


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


def _metric_table(plan: Quality, screen: Screen) -> Iterator[str]:
    columns = [Column(heading="metric", align="left")]
    columns += [Column(heading=name) for name in ("measured", "uniform", "spread", "score")]
    if plan.sampled is not None:
        columns.append(Column(heading="error"))
    rows = []
    for metric in plan.metrics:
        star = "*" if metric.scale == "shown" else ""
        row = [
            f"{_LABELS[metric.name]}{star}",
            _number(metric.value),
            _number(metric.expected),
            f"{metric.spread:.5f}",
            f"{metric.score:.4f}",
        ]
        if plan.sampled is not None:
            row.append("-" if metric.sampling_error is None else f"{metric.sampling_error:.5f}")
        rows.append(row)
    yield table(columns, rows, screen)
    if any(metric.scale == "shown" for metric in plan.metrics):
        yield paragraph("* shown, not in the score", screen)


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.4f}"


def _part_table(plan: Quality, screen: Screen) -> Iterator[str]:
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


def _epochs_line(plan: Quality) -> str:
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


def _hosts_line(plan: Quality) -> str:
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


def _what_if_table(plan: Quality, screen: Screen) -> Iterator[str]:
    columns = [Column(heading="what if", align="left"), Column(heading="score")]
    columns += [Column(heading="error"), Column(heading="buffer")]
    rows = []
    for choice in plan.alternatives:
        error = choice.score.sampling_error
        rows.append(
            [
                choice.change,
                f"{choice.score.value:.4f}",
                "-" if error is None else f"{error:.4f}",
                "" if choice.num_bytes is None else human_bytes(choice.num_bytes),
            ]
        )
    yield table(columns, rows, screen)
    best = _best(plan.alternatives)
    free = _best([choice for choice in plan.alternatives if choice.num_bytes is None])
    text = f"does most: {best.change}"
    if free is not best:
        text += f"; without a larger buffer: {free.change}"
    yield paragraph(text, screen)


def _best(choices: Sequence[Alternative]) -> Alternative:
    return max(choices, key=lambda choice: choice.score.value)


def _target_line(plan: Quality) -> str:
    found = plan.buffer_for_target
    if found is None:
        return ""
    title = f"buffer for a score of {found.target:g}"
    if found.buffer is None:
        return f"{title}: none, one of the whole epoch scores {found.score:.4f}"
    if not found.buffer:
        return f"{title}: none is needed, without one it is {found.score:.4f}"
    size = "of unknown size" if found.num_bytes is None else human_bytes(found.num_bytes)
    return (
        f"{title}: {found.buffer:,} examples, {size} as stored (decoded examples take more); "
        f"it scores {found.score:.4f}"
    )
