"""What other settings would score, as bars."""

from __future__ import annotations

import math

from shardctl.core.text import first_upper
from shardctl.planning.quality.quality import Quality
from shardctl.rendering.pictures.bars import Bar, Part, bars
from shardctl.rendering.pictures.picture import Numbers, Picture
from shardctl.rendering.quality.quality import best_line, counted_how
from shardctl.rendering.text.quantities import human_bytes

_WIDEST_NAMES = 0.5  # of the width: what tells changes apart is at the end of their names


def what_if_picture(quality: Quality) -> Picture:
    """Return what other settings would score, with the memory of each buffer that is new."""
    uniform = quality.score.expected
    rows = []
    for choice in quality.alternatives:
        size = "" if choice.num_bytes is None else human_bytes(choice.num_bytes)
        rows.append((choice.change, choice.score.value, choice.verdict, size))
    if not rows:
        rows.append(("as it is", quality.score.value, quality.verdict, ""))
    has_sizes = any(size for *_, size in rows)
    drawn = bars(
        [
            Bar(
                name=change,
                parts=(Part(score, "data" if number else "other"),),
                text=f"{score:.3f} · {size}" if size else f"{score:.3f}",
                title=f"{change}: {score:.4f}, {verdict}{size and f', a buffer of {size}'}",
            )
            for number, (change, score, verdict, size) in enumerate(rows)
        ],
        top=4,
        full=1.0,
        expected=uniform,
        most_names=_WIDEST_NAMES,
    )
    said = [f"{change}: {score:.4f} ({verdict})" for change, score, verdict, _ in rows]
    return Picture(
        name="what-if",
        title="What other settings would score",
        caption="Each bar changes one thing, or two; the dashed line is a uniform permutation."
        + (" Beside the score is the memory that a new buffer takes." if has_sizes else ""),
        alternative=f"{'; '.join(said)}; a uniform permutation: {uniform:.4f}. {_best(quality)}",
        height=drawn.bottom + 4,
        marks=drawn.marks,
        numbers=Numbers(
            headings=("what if", "score", "verdict", "memory of the buffer"),
            rows=[(change, f"{score:.4f}", *others) for change, score, *others in rows],
        ),
        note=_memory_note(quality),
    )


def _best(quality: Quality) -> str:
    if not quality.alternatives:
        return "No other settings were measured."
    return f"{first_upper(best_line(quality))}."


def _memory_note(quality: Quality) -> str | None:
    errors = [choice.score.sampling_error or 0.0 for choice in quality.alternatives]
    said = []
    if max(errors, default=0.0) and math.isfinite(max(errors)):
        said.append(f"Measured in samples, sampling error at most {max(errors):.4f}.")
    how = counted_how(quality.element_size)
    if how and any(choice.num_bytes is not None for choice in quality.alternatives):
        said.append(f"Memory is {how}.")
    return " ".join(said) or None
