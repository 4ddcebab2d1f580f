"""Bars of eighth blocks: their lengths by hand, and no line wider than the screen."""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st

from shardctl.rendering.terminal.bars import (
    Bar,
    Series,
    bar_lines,
    beside,
    drawn_bar,
    num_rows,
)
from shardctl.rendering.text.tables import PLAIN, Screen, display_width
from tests.cases import FUZZ, check_cases


def shown(labels: list[str], series: list[Series], screen: Screen) -> list[str]:
    return "".join(bar_lines("host", labels, series, screen)).splitlines()


def one(value: float, text: str, word: str = "") -> Bar:
    return Bar(least=value, most=value, text=text, word=word, look="warning" if word else "")


@pytest.mark.parametrize(
    ("least", "most", "drawn"),
    [
        (8, 8, "████"),
        (7, 7, "███▌"),
        (6.25, 6.25, "███▏"),
        (0, 0, ""),
        (0.001, 0.001, "▏"),  # more than nothing is seen
        (3, 5, "█░░"),
        (4, 4.1, "██"),  # less than an eighth of a column is not
        (0, 8, "░░░░"),
        (7.5, 8, "███░"),  # and an eighth of one is
    ],
)
def test_a_bar_is_full_to_the_least_and_shaded_to_the_most(
    least: float, most: float, drawn: str
) -> None:
    assert drawn_bar(least, most, 8, 4) == drawn


def test_nothing_has_no_bar() -> None:
    assert drawn_bar(0, 0, 0, 10) == ""


def test_values_line_up_and_words_follow_them() -> None:
    bars = [one(10, "10", "most"), one(5, "5"), one(0, "0", "idle")]
    lines = shown(["0", "1", "2"], [Series(heading="examples", bars=bars)], Screen(width=40))
    assert lines == [
        "host  examples",
        "0     ██████████████████████████ 10 most",
        "1     █████████████               5",
        "2                                 0 idle",
    ]


def test_series_that_have_no_room_are_left_out_from_the_end() -> None:
    series = [Series(heading=name, bars=[one(10**6, "1,000,000")]) for name in ("a", "b", "c")]
    headings = [shown(["0"], series, Screen(width=width))[0].split() for width in (80, 60, 40)]
    assert headings == [["host", "a", "b", "c"], ["host", "a", "b"], ["host", "a"]]


def test_where_no_bar_has_room_the_values_are_words() -> None:
    bars = [Bar(least=1, most=2, text="1–2", word="1 idle")]
    lines = shown(["0–999999"], [Series(heading="examples", bars=bars)], Screen(width=20))
    assert lines == ["host 0–999999: 1–2", "examples, 1 idle"]


def test_a_pipe_gets_as_wide_a_picture_as_a_page_has() -> None:
    lines = shown(["0"], [Series(heading="examples", bars=[one(1, "1")])], PLAIN)
    assert display_width(lines[1]) == 80
    assert beside(PLAIN).width == 80


def test_colour_is_on_what_has_a_word_and_changes_nothing_else() -> None:
    bars = [one(10, "10", "most"), one(5, "5")]
    series = [Series(heading="examples", bars=bars)]
    plain = shown(["0", "1"], series, Screen(width=40))
    colored = shown(["0", "1"], series, Screen(width=40, color=True))
    assert [re.sub(r"\x1b\[[\d;]*m", "", line).rstrip() for line in colored] == plain
    assert "\x1b" in colored[1]
    assert "\x1b" not in colored[2]


def test_up_to_sixteen_have_a_row_each() -> None:
    assert [num_rows(number) for number in (1, 16, 17, 10**6)] == [1, 16, 8, 8]


VALUES = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 2**63 - 1), st.floats(0, 1e300))


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[Series], Screen]:
    count = draw(st.integers(1, 20))
    series = []
    for _ in range(draw(st.integers(1, 3))):
        bars = []
        for _ in range(count):
            least, most = sorted((draw(VALUES), draw(VALUES)))
            word = draw(st.sampled_from(("", "most", "most, 999,999 idle")))
            bars.append(Bar(least=least, most=most, text=f"{least:,}–{most:,}", word=word))
        series.append(Series(heading="examples", bars=bars))
    labels = [f"{number}–{number + draw(st.integers(0, 10**6))}" for number in range(count)]
    return labels, series, Screen(width=draw(st.integers(20, 120)))


def check_rows(case: tuple[list[str], list[Series], Screen]) -> None:
    labels, series, screen = case
    lines = shown(labels, series, screen)
    assert max(map(display_width, lines)) <= screen.picture_width
    said = " ".join("".join(lines).split())
    for bar in series[0].bars:
        assert bar.word.replace(" ", "") in said.replace(" ", "")
        assert bar.text in said.replace(" ", "")


@pytest.mark.long
def test_no_line_is_wider_than_the_screen() -> None:
    check_cases(rows(), check_rows, 60)


@pytest.mark.fuzz
def test_no_line_is_wider_than_the_screen_fuzz() -> None:
    check_cases(rows(), check_rows, FUZZ, fuzz=True)
