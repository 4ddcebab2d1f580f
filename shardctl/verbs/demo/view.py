"""What was written, and what to try first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardctl.base.text import run_in
from shardctl.draw.tables import Screen, paragraph, paragraphs, to_paste


def demo_table(
    contents: Mapping[str, str], screen: Screen, *, folder: str, num_files: int
) -> Iterator[str]:
    """Yield a line for each thing that was written, then the first command."""
    yield paragraph(f"wrote {folder}: {num_files} files", screen, style="bold")
    yield from paragraphs(screen, *(f"{name}: {what}" for name, what in contents.items()))
    first = run_in(folder, "shardctl", "simulate", "--take", "8")
    yield from to_paste("next", first, screen)
    yield from to_paste("the guide whose commands run there", "shardctl help questions", screen)
