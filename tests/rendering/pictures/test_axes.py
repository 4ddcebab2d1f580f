"""Axes: round ticks, labels that neither overlap nor leave the frame."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import strategies as st

from shardctl.rendering.pictures.axes import (
    Axis,
    Scale,
    Tick,
    named_ticks,
    plane,
    round_ticks,
    thinned,
)
from shardctl.rendering.pictures.picture import WIDTH, Label
from tests.cases import check_cases
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, check_labels

_NUMBERS = st.one_of(
    st.integers(0, 10**15).map(float),
    st.floats(-1e6, 1e6),
    st.floats(0, 1),
    st.sampled_from([0.0, 1.0, 0.1, 1e-9, 1e18]),
)


def test_a_scale_goes_through_its_ends() -> None:
    scale = Scale(first=10, last=20, start=100, end=0)
    assert [scale.at(value) for value in (10, 15, 20)] == [100, 50, 0]
    assert Scale(first=3, last=3, start=5, end=9).at(3) == 5


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0, 1, "0.0 0.2 0.4 0.6 0.8 1.0"),
        (0, 7, "0 1 2 3 4 5 6 7"),
        (0, 60_000, "0 10,000 20,000 30,000 40,000 50,000 60,000"),
        (0, 1_281_167, "0|200 k|400 k|600 k|800 k|1 M|1.2 M"),
        (1024, 0, "0 200 400 600 800 1,000"),
        (-0.02, 0.02, "-0.02 -0.01 0.00 0.01 0.02"),
        (5, 5, "5"),
        (0, 5e-324, "0"),
        (0, 1e-135, "0"),
        (0.97, 0.99, "0.970 0.975 0.980 0.985 0.990"),
    ],
)
def test_ticks_are_round(first: float, last: float, expected: str) -> None:
    texts = [tick.text for tick in round_ticks(first, last)]
    assert texts == expected.split("|" if "|" in expected else " ")


def test_whole_numbers_have_whole_ticks() -> None:
    assert [tick.value for tick in round_ticks(0, 2, whole=True)] == [0, 1, 2]
    assert [tick.value for tick in round_ticks(3, 4, whole=True)] == [3, 4]


def test_ticks_are_between_the_ends_few_and_even() -> None:
    def check(case: tuple[float, float]) -> None:
        first, last = case
        ticks = round_ticks(first, last)
        low, high = min(case), max(case)
        slack = (high - low) * 1e-6
        values = [tick.value for tick in ticks]
        assert 1 <= len(ticks) <= 8
        if high - low > 1e-9 * max(abs(low), abs(high)):  # else floats themselves are too coarse
            assert all(low - slack <= value <= high + slack for value in values)
            steps = [after - before for before, after in pairwise(values)]
            assert all(step == pytest.approx(steps[0], rel=1e-3) for step in steps)
        assert len({tick.text for tick in ticks}) == len(ticks) or low > 1e3

    check_cases(st.tuples(_NUMBERS, _NUMBERS), check, 200)


def test_names_stand_in_the_middle_of_places() -> None:
    assert named_ticks(["a", "b"]) == (Tick(0.5, "a"), Tick(1.5, "b"))


@pytest.mark.long
def test_labels_of_any_axes_have_their_place() -> None:
    names = st.lists(HOSTILE_TEXTS, max_size=70).map(named_ticks)
    axes = st.builds(
        Axis,
        first=_NUMBERS,
        last=_NUMBERS,
        title=HOSTILE_TEXTS,
        ticks=st.none(),
        grid=st.booleans(),
        whole=st.booleans(),
    ) | names.map(lambda ticks: Axis(first=0, last=len(ticks), ticks=ticks))

    def check(case: tuple[Axis, Axis, float]) -> None:
        x, y, height = case
        made = plane(x, y, height=height)
        check_labels(made.marks, made.bottom)
        assert 0 < made.x.start < made.x.end == WIDTH
        assert made.y.start - made.y.end == pytest.approx(height)

    check_cases(st.tuples(axes, axes, st.floats(20, 300)), check, 200)


def test_a_name_that_is_too_long_is_cut() -> None:
    x = Axis(first=0, last=1, ticks=named_ticks(["a-name-without-end-" * 9]))
    made = plane(x, x)
    check_labels(made.marks, made.bottom)
    assert [mark.text[-1] for mark in made.marks if isinstance(mark, Label)] == ["…", "…"]


def test_of_many_labels_every_nth_is_shown() -> None:
    spans = [(number * 5.0, number * 5.0 + 12) for number in range(100)]
    assert thinned(spans) == range(0, 100, 3)
    assert thinned([]) == range(0)
    assert thinned([(0, 100), (0, 100)]) == range(0, 2, 2)
