"""What was written, and what to try first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from shardctl.draw.tables import Screen, paragraph, paragraphs


def demo_table(
    contents: Mapping[str, str], screen: Screen, *, folder: str, num_files: int
) -> Iterator[str]:
    """Yield a line for each thing that was written, then the first command."""
    yield paragraph(f"wrote {folder}: {num_files} files", screen, style="bold")
    yield from paragraphs(screen, *(f"{name}: {what}" for name, what in contents.items()))
    inside = "" if folder == "." else f"cd {folder} && "
    yield paragraph(f"next: {inside}shardctl simulate --take 8", screen)
    yield paragraph("shardctl help questions: its commands run there, as printed", screen)
