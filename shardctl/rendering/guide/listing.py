"""The list of guides, each with the question it answers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from shardctl.rendering.text.tables import paragraph

if TYPE_CHECKING:
    from shardctl.rendering.text.tables import Screen


def guides_list(questions: Mapping[str, str], screen: Screen) -> Iterator[str]:
    """Yield a line for each guide, under how to read one; on a screen words are kept whole.

    >>> from shardctl.rendering.text.tables import PLAIN
    >>> print(*guides_list({"keras": "Which order?"}, PLAIN), sep="", end="")
    Guides, shown by shardctl help SUBJECT:
      keras  Which order?
    """
    yield paragraph("Guides, shown by shardctl help SUBJECT:", screen)
    indent = max(map(len, questions), default=0) + 4
    for subject, question in questions.items():
        lines = [question]
        if screen.width is not None:
            lines = textwrap.wrap(question, max(screen.width - indent, 16), break_on_hyphens=False)
        yield f"  {subject}".ljust(indent) + f"\n{' ' * indent}".join(lines) + "\n"
