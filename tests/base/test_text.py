"""Text from outside, fit for a screen."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.base.text import choices, inert, printable, quoted
from tests.cases import check_cases


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("train", "train"),
        ("/data/[v1]/x", "/data/[v1]/x"),  # brackets are no markup
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("\x9b31m", r"\x9b31m"),  # the one-byte form of ESC [
        ("two\nlines\r", r"two\nlines\r"),
        ("\0\x7f", r"\x00\x7f"),
        ("abc\u202edcba", r"abc\u202edcba"),  # right to left from here on
        ("a\u200bb\u2028c", r"a\u200bb\u2028c"),
        ("\udc80", r"\udc80"),  # a byte of a file name that is no UTF-8
        ("\U000e0041", r"\U000e0041"),
        ("名前 é", "名前 é"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_shown_text_is_one_printable_line_within_its_limit() -> None:
    def check(case: tuple[str, int]) -> None:
        text, limit = case
        shown = printable(text, limit)
        assert shown.isprintable()
        assert len(shown) <= limit
        if text.isprintable() and len(text) <= limit:
            assert shown == text

    character = st.characters() | st.sampled_from(["\x1b", "\0", "\u202e", "\udc80", "a"])
    cases = st.tuples(st.text(character, max_size=80), st.integers(1, 60))
    check_cases(cases, check, 500)


def test_a_long_text_is_cut_with_a_mark() -> None:
    assert printable("x" * 10, limit=10) == "x" * 10
    assert printable("x" * 11, limit=10) == "x" * 9 + "…"
    assert printable("\x1b" * 5_000, limit=10) == r"\x1b\x1b\…"


def test_a_quoted_value_is_cut_within_its_quotes() -> None:
    assert quoted("x" * 5_000, 5) == "'xxxx…'"
    assert quoted(12) == "'12'"


def test_choices_beyond_the_limit_are_counted() -> None:
    assert choices([]) == "none"
    assert choices(["train"]) == "train"
    assert choices(range(12)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    assert choices(range(15)) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more"
    assert choices(["\x1b[31m", "y" * 100]) == r"\x1b[31m, " + "y" * 59 + "…"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::a", r"\x3a:error::a"),
        ("  ::error::a\n::b", "  \\x3a:error::a\n\\x3a:b"),
        ("a ::b\na::b\n: :", "a ::b\na::b\n: :"),
        ("a ##[error]b", r"a \x23#[error]b"),
        ("##vso[a]##VSO[b]", r"\x23#vso[a]\x23#VSO[b]"),
        ("###[a", r"#\x23#[a"),
        ("# a ## b [c]", "# a ## b [c]"),
        ("##teamcity[x", r"\x23#teamcity[x"),
    ],
)
def test_what_a_runner_of_ci_would_act_on_is_written_as_an_escape(text: str, shown: str) -> None:
    assert inert(text) == shown
