"""The list of guides, each with the question it answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shardctl.rendering.text.tables import Column, paragraph, table

if TYPE_CHECKING:
    from shardctl.rendering.text.tables import Screen


def guides_table(questions: Mapping[str, str], screen: Screen) -> Iterator[str]:
    """Yield a line for each guide, under how to read one."""
    columns = [Column(heading="subject", align="left"), Column(heading="question", align="left")]
    yield paragraph("Guides; shardctl help SUBJECT shows one:", screen)
    yield table(columns, list(questions.items()), screen)
