"""Markdown as roff: what groff shows is what was written."""

from __future__ import annotations

import pytest
from rich.markdown import Markdown

from shardctl.rendering.guide.roff import bold, escaped, roff
from tests.rendering.guide.groff import needs_groff, shown


def as_roff(text: str) -> str:
    return roff(Markdown(text).parsed)


def page_of(text: str) -> str:
    return shown(f'.TH T 7 "" "" ""\n.SH S\n{as_roff(text)}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain - text", "plain - text"),
        ("a\\b", r"a\eb"),
        (".TH", r"\&.TH"),
        ("'s", r"\&'s"),
        ("a.b", "a.b"),
        ("x → y", r"x \[u2192] y"),
    ],
)
def test_text_is_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


def test_code_can_be_copied() -> None:
    assert bold("-x '~^`'") == r"\fB\-x \(aq\(ti\(ha\(ga\(aq\fR"


def test_blocks_have_their_macros() -> None:
    assert as_roff("# T\n\nA `b`\n.c\n\n## D 'e'\n\n### F\n\n- g\n\n  h\n- i\n\n1. j\n") == (
        '.PP\nA \\fBb\\fR\n\\&.c\n.SH "D \\(aqE\\(aq"\n.SS "F"\n'
        '.IP \\(bu 2\ng\n.IP "" 2\nh\n.IP \\(bu 2\ni\n.IP 1. 4\nj\n'
    )


def test_a_table_of_two_columns_is_a_list_of_terms() -> None:
    assert as_roff("| a | b |\n|---|---|\n| `-x` | y |\n| z | |\n") == (
        ".TP\n\\fB\\-x\\fR\ny\n.TP\nz\n\n"
    ).replace("z\n\n", "z\n\\&\n")


def test_a_wider_table_names_its_columns() -> None:
    assert as_roff("| a | b | c |\n|---|---|---|\n| x | y | z |\n") == (".TP\nx\nb: y\n.br\nc: z\n")


def test_a_block_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(ValueError, match="no roff for hr"):
        as_roff("---\n")


@needs_groff
def test_groff_shows_sessions_to_the_letter() -> None:
    session = (
        "$ shardctl plan 'train[40:]' -d a\\b\n.hidden ~ ^ ` -- … é\n'quoted' \"x\"\n  two  blanks"
    )
    page = page_of(f"```console\n{session}\n```\n")
    for line in session.splitlines():
        assert f"{line}\n" in page


@needs_groff
def test_groff_shows_every_word() -> None:
    text = "A [link](https://x.org/a-b) and `--an-option`, **bold** \\\\ *slanted*.\n\n- a\n\n  b\n"
    page = " ".join(page_of(text).split())
    assert "A link (https://x.org/a-b) and --an-option, bold \\ slanted. • a b" in page
