"""A link to another guide is the command that shows it."""

from __future__ import annotations

from rich.markdown import Markdown

from shardctl.rendering.guide_page import resolve_links


def shown(text: str) -> list[tuple[str, str]]:
    """Return the pieces of a paragraph, each with its type."""
    (inline,) = (token for token in resolve_links(Markdown(text)) if token.type == "inline")
    return [(child.type, child.content) for child in inline.children or ()]


def test_a_link_to_another_guide_is_the_command_that_shows_it() -> None:
    assert shown("see [the *keras* guide](keras.md#limits).") == [
        ("text", "see "),
        ("text", "the "),
        ("em_open", ""),
        ("text", "keras"),
        ("em_close", ""),
        ("text", " guide"),
        ("text", " ("),
        ("code_inline", "shardctl help keras"),
        ("text", ")"),
        ("text", "."),
    ]


def test_other_links_stay() -> None:
    assert [kind for kind, _ in shown("[TFDS](https://x.org/a.md)")] == [
        "link_open",
        "text",
        "link_close",
    ]
