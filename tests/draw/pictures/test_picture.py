"""Marks of pictures: bars by hand, heat maps of known orders, numbers below their places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shardctl.draw.picture import (
    EVEN,
    SHEET,
    Bar,
    Heat,
    Paper,
    Rise,
    Series,
    bar_lines,
    drawn_bar,
    lines_of,
    tick_line,
)
from shardctl.draw.tables import display_width
from tests.cases import FUZZ, check_cases


def shown(labels: list[str], series: list[Series], width: int) -> list[str]:
    lines = bar_lines("host", labels, series, Paper(width=width))
    return ["".join(span.text for span in line).rstrip() for line in lines]


@pytest.mark.parametrize(
    ("least", "most", "bar"),
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
    least: float, most: float, bar: str
) -> None:
    assert drawn_bar(least, most, 8, 4) == bar
    assert drawn_bar(0, 0, 0, 10) == ""


def test_values_line_up_and_words_follow_them() -> None:
    bars = [Bar(10, 10, "10", "most"), Bar(5, 5, "5"), Bar(0, 0, "0", "idle")]
    assert shown(["0", "1", "2"], [Series("examples", bars)], 40) == [
        "host  examples",
        "0     ██████████████████████████ 10 most",
        "1     █████████████               5",
        "2                                 0 idle",
    ]


def test_series_that_have_no_room_are_left_out_and_follow_below_on_a_sheet() -> None:
    series = [Series(name, [Bar(10**6, 10**6, "1,000,000")]) for name in ("a", "b", "c")]
    headings = [shown(["0"], series, width)[0].split() for width in (80, 60, 40)]
    assert headings == [["host", "a", "b", "c"], ["host", "a", "b"], ["host", "a"]]
    lines = ["".join(map(str, line)) for line in bar_lines("host", ["0"], series, SHEET)]
    assert len(lines) == 4


def test_up_to_sixteen_have_a_row_each() -> None:
    paper = Paper(width=80)
    assert [paper.num_rows(number) for number in (1, 16, 17, 10**6)] == [1, 16, 8, 8]


VALUES = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 2**40), st.floats(0, 1e9))


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[str], list[Series], int]:
    count = draw(st.integers(1, 20))
    series = []
    for _ in range(draw(st.integers(1, 3))):
        bars = []
        for _ in range(count):
            least, most = sorted((draw(VALUES), draw(VALUES)))
            word = draw(st.sampled_from(("", "most", "9 idle")))
            bars.append(Bar(least, most, f"{least:.3g}–{most:.3g}", word))
        series.append(Series("examples", bars))
    labels = [f"{number}–{number + draw(st.integers(0, 10**6))}" for number in range(count)]
    return labels, series, draw(st.integers(45, 120))


def check_rows(case: tuple[list[str], list[Series], int]) -> None:
    labels, series, width = case
    lines = shown(labels, series, width)
    assert max(map(display_width, lines)) <= width
    for bar, line in zip(series[0].bars, lines[1:], strict=True):
        assert bar.word in line
        assert bar.text in line


@pytest.mark.long
def test_no_line_is_wider_than_the_paper() -> None:
    check_cases(rows(), check_rows, 60)


@pytest.mark.fuzz
def test_no_line_is_wider_than_the_paper_fuzz() -> None:
    check_cases(rows(), check_rows, FUZZ, fuzz=True)


def heat(ranks: np.ndarray) -> Heat:
    """Return the map of one rank a position, in 48 rows and 96 columns."""
    at = (ranks * 48 // len(ranks)) * 96 + np.arange(len(ranks)) * 96 // len(ranks)
    counts = np.bincount(at, minlength=48 * 96).reshape(48, 96)
    return Heat(counts=counts, sides=("first", "last"), below=f"position {len(ranks) - 1}")


def text_of(found: Heat, width: int) -> list[str]:
    lines = ["".join(span.text for span in line) for line in lines_of(found, width)]
    assert all(len(line) == width for line in lines)
    assert lines[-1].endswith(found.below)
    return [line.partition("│")[2] for line in lines[:-1]]


def test_the_order_of_storage_is_a_diagonal_and_nothing_else() -> None:
    found = heat(np.arange(96_000))
    levels = found.levels(48, 96)
    down, right = np.nonzero(levels)
    assert np.array_equal(down, right // 2)
    rows = text_of(found, 80)
    assert rows[0].startswith("██")
    assert rows[-1].endswith("██")
    assert rows[-1].strip() == rows[-1].lstrip()
    assert not found.is_even
    assert np.array_equal(heat(np.arange(96_000)[::-1]).levels(48, 96), levels[::-1])


@pytest.mark.parametrize("size", [100, 3_000, 200_000])
def test_a_uniform_permutation_is_an_even_grey(size: int) -> None:
    found = heat(np.random.default_rng(3).permutation(size))
    assert found.is_even
    text = "".join(text_of(found, 80))
    assert text.count("░") > 0.6 * len(text)
    assert not set(text) & set(" ▓█")


def test_two_halves_that_are_mixed_by_themselves_are_two_patches() -> None:
    rng = np.random.default_rng(4)
    n = 100_000
    found = heat(np.concatenate([rng.permutation(n), n + rng.permutation(n)]))
    levels = found.levels(48, 96)
    assert not levels[:24, 48:].any()
    assert not levels[24:, :48].any()
    assert (levels[:24, :48] > EVEN).mean() > 0.9


def test_few_examples_are_in_few_cells() -> None:
    assert heat(np.arange(48)).levels(48, 96).shape == (4, 4)
    first, *_, last = text_of(heat(np.arange(48)), 40)
    assert (first, last) == ("▓" * 9 + " " * 24, " " * 25 + "▓" * 8)


def test_numbers_side_by_side_are_as_high_as_they_are() -> None:
    rise = Rise(names=("a", "by"), values=(0.0, 0.13, 1.0), expected=(1.0, 1.0, 1.0))
    lines = ["".join(span.text for span in line) for line in lines_of(rise, 20)]
    assert lines == ["a  ▁▁▁▁▁▂▂▂▂▂█████", "by ███████████████"]


def test_a_number_stands_at_its_column_unless_it_would_touch_another() -> None:
    assert tick_line([(0, "0"), (3, "10"), (5, "20"), (6, "30")], 10) == "0  10 30"
    assert tick_line([(4, "7")], 10) == "    7"
    assert tick_line([(0, "0"), (9, "1,000")], 10) == "0    1,000"
    assert tick_line([], 10) == ""


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 99_999).map(str)), max_size=20).map(
        sorted
    ),
    st.integers(5, 40),
)
def test_no_line_is_too_long_and_numbers_are_apart(
    ticks: list[tuple[int, str]], width: int
) -> None:
    line = tick_line(ticks, width)
    assert len(line) <= width
    assert set(line.split()) <= {text for _, text in ticks}
