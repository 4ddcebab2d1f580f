"""The Markdown of a guide as tokens, parsed by the parser that comes with Rich."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token
    from rich.markdown import Markdown

_OTHER_GUIDE = re.compile(r"([a-z-]+)\.md(?:#.*)?")


def resolve_links(document: Markdown) -> list[Token]:
    """Make links to other guides the commands that show them, and return the document's tokens.

    On GitHub `resume.md` opens the guide beside this one; on a terminal nothing would.
    """
    for token in document.parsed:
        if token.children:
            token.children = list(_resolved(token.children))
    return document.parsed


def _resolved(tokens: Sequence[Token]) -> Iterator[Token]:
    from markdown_it.token import Token

    open_guide: str | None = None
    for token in tokens:
        if token.type == "link_open":
            match = _OTHER_GUIDE.fullmatch(str(token.attrs.get("href", "")))
            if match is not None:
                open_guide = match[1]
                continue
        elif token.type == "link_close" and open_guide is not None:
            yield Token("text", "", 0, content=" (")
            yield Token("code_inline", "code", 0, content=f"shardctl help {open_guide}")
            yield Token("text", "", 0, content=")")
            open_guide = None
            continue
        yield token
