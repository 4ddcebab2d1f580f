"""Bars as long as their values, and keys to colours."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.rendering.pictures.axes import Axis, plane
from shardctl.rendering.pictures.bars import (
    Bar,
    Key,
    Part,
    bars,
    columns,
    legend,
    levels_key,
    sentences,
)
from shardctl.rendering.pictures.picture import Band, Box, Cells, Label, Line
from tests.cases import check_cases, few_or_many
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, check_labels


def test_bars_are_as_long_as_their_values() -> None:
    drawn = bars(
        [Bar(name="a", parts=(Part(3), Part(1, "padding"))), Bar(name="b", parts=(Part(2),))]
    )
    first, padding, second = (mark for mark in drawn.marks if isinstance(mark, Box))
    assert first.width / second.width == pytest.approx(1.5)
    assert padding.x == pytest.approx(first.x + first.width)
    assert padding.role == "padding"
    assert padding.width == pytest.approx(second.width / 2)


def test_an_expected_value_has_a_dashed_line_at_its_place() -> None:
    drawn = bars([Bar(name="a", parts=(Part(1),), text="1.0")], expected=2)
    (box,) = (mark for mark in drawn.marks if isinstance(mark, Box))
    (line,) = (mark for mark in drawn.marks if isinstance(mark, Line) and mark.dashed)
    assert line.points[0][0] == pytest.approx(box.x + 2 * box.width)


@few_or_many(60, 120)
def test_labels_of_any_bars_have_their_place(num_cases: int) -> None:
    rows = st.builds(
        Bar,
        name=HOSTILE_TEXTS,
        text=HOSTILE_TEXTS,
        parts=st.lists(st.floats(0, 1e12).map(Part), max_size=3).map(tuple),
    )

    def check(case: tuple[list[Bar], float | None]) -> None:
        drawn = bars(case[0], expected=case[1], top=2)
        check_labels(drawn.marks, drawn.bottom)
        for mark in drawn.marks:
            if isinstance(mark, Box):
                assert mark.width >= 0
                assert mark.x + mark.width <= 480

    expected = st.none() | st.floats(0, 1e12)
    check_cases(st.tuples(st.lists(rows, max_size=20), expected), check, num_cases)


def test_no_bars_are_drawn_as_none() -> None:
    assert bars([]).bottom == 0
    assert not [mark for mark in bars([]).marks if isinstance(mark, Box)]


def test_upright_bars_stand_on_the_axis_each_in_its_place() -> None:
    on = plane(Axis(first=0, last=4), Axis(first=0, last=10), height=100)
    marks = columns(on, [Bar(name="", parts=(Part(5), Part(2, "padding")))] * 4)
    boxes = [mark for mark in marks if isinstance(mark, Box)]
    assert [box.height for box in boxes] == pytest.approx([50, 20] * 4)
    assert boxes[0].y + boxes[0].height == pytest.approx(on.y.start)
    assert boxes[1].y + boxes[1].height == pytest.approx(boxes[0].y)
    for number, box in enumerate(boxes[::2]):
        assert on.x.at(number) <= box.x < box.x + box.width <= on.x.at(number + 1)


def test_a_key_shows_what_it_is_about() -> None:
    keys = [
        Key(text="a"),
        Key(text="b", line=True, dashed=True),
        Key(text="c", role="uniform", band=True),
        Key(text="d", role="slot", slot=3),
    ]
    kinds = [mark for mark in legend(keys).marks if isinstance(mark, Box | Line | Band)]
    assert [type(mark) for mark in kinds] == [Box, Line, Band, Box]


def test_keys_take_as_many_lines_as_they_need() -> None:
    def check(texts: list[str]) -> None:
        drawn = legend([Key(text=text) for text in texts])
        check_labels(drawn.marks, drawn.bottom)

    check_cases(st.lists(HOSTILE_TEXTS, max_size=12), check, 100)
    key = levels_key("no example", "20 examples")
    check_labels(key.marks, key.bottom)
    (cells,) = (mark for mark in key.marks if isinstance(mark, Cells))
    assert cells.levels.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, 8]]


def test_sentences_take_as_many_lines_as_they_need() -> None:
    drawn = sentences(["one two " * 20, "three"], top=10)
    check_labels(drawn.marks, drawn.bottom)
    *lines, last = (mark.text for mark in drawn.marks if isinstance(mark, Label))
    assert last == "three"
    assert " ".join(lines).split() == ["one", "two"] * 20
