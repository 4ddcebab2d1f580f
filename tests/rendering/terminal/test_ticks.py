"""Numbers below the places that they are of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shardctl.rendering.terminal.bars import tick_line


def test_a_number_stands_at_its_column_unless_it_would_touch_another() -> None:
    assert tick_line([(0, "0"), (3, "10"), (5, "20"), (6, "30")], 10) == "0  10 30"
    assert tick_line([(4, "7")], 10) == "    7"
    assert tick_line([], 10) == ""


def test_the_last_moves_to_the_left_to_stay_within_the_line() -> None:
    assert tick_line([(0, "0"), (9, "1,000")], 10) == "0    1,000"


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
