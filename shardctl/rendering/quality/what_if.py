"""What other settings would do for an order: a table, a line and records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from shardctl.planning.quality.quality import Quality
from shardctl.planning.quality.what_if import Alternative
from shardctl.rendering.text.quantities import human_bytes
from shardctl.rendering.text.screen import Screen
from shardctl.rendering.text.tables import Column, paragraph, table


def what_if_table(plan: Quality, screen: Screen) -> Iterator[str]:
    """Yield what other settings would score, and which of them do most."""
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
    size = "of unknown size" if found.num_bytes is None else human_bytes(found.num_bytes)
    return (
        f"{title}: {found.buffer:,} examples, {size} as stored (decoded examples take more); "
        f"it scores {found.score:.4f}"
    )


def alternative_record(choice: Alternative) -> dict[str, Any]:
    """Return what one change would score."""
    return {
        "change": choice.change,
        "score": choice.score.value,
        "sampling_error": choice.score.sampling_error,
        "buffer_bytes": choice.num_bytes,
    }


def target_record(plan: Quality) -> dict[str, Any] | None:
    """Return the buffer that reaches the score asked for, None where no score was."""
    found = plan.buffer_for_target
    if found is None:
        return None
    return {
        "target": found.target,
        "buffer": found.buffer,
        "score": found.score,
        "num_bytes": found.num_bytes,
    }
