"""Panels: few values lie beside their bars, many are columns, and what stands out has a word."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.rendering.pictures.axes import round_ticks
from shardctl.rendering.pictures.panel import (
    Panel,
    PanelRow,
    byte_ticks,
    draw_panels,
)
from shardctl.rendering.pictures.picture import Box, Label, Line, Mark
from tests.cases import FUZZ, check_cases
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, check_labels


def row(number: int, least: float, most: float | None = None, word: str = "") -> PanelRow:
    return PanelRow(
        name=str(number),
        label=f"host {number}",
        least=least,
        most=least if most is None else most,
        text=f"{least:g}",
        title=f"host {number}: {least:g}",
        word=word,
    )


def panel(rows: list[PanelRow], mean: float | None = None) -> Panel:
    most = max(shown.most for shown in rows)
    return Panel(title="examples a host", rows=rows, ticks=round_ticks(0, most), mean=mean)


def texts(marks: tuple[Mark, ...]) -> list[str]:
    return [mark.text for mark in marks if isinstance(mark, Label)]


def boxes(marks: tuple[Mark, ...], role: str) -> list[Box]:
    return [mark for mark in marks if isinstance(mark, Box) and mark.role == role]


def test_few_have_their_values_and_words_beside_them() -> None:
    rows = [row(0, 10, word="most"), row(1, 5), row(2, 0, word="idle")]
    drawn = draw_panels([panel(rows)], of="host")
    assert texts(drawn.marks) == [
        *("stands out, as its word says", "examples a host"),
        *("host 0", "10 most", "host 1", "5", "host 2", "0 idle"),
    ]
    alarm, _ = [box for box in boxes(drawn.marks, "alarm") if box.title]
    data, *_ = boxes(drawn.marks, "data")
    assert data.width == pytest.approx(alarm.width / 2)
    assert (alarm.title, data.title) == ("host 0: 10", "host 1: 5")


def test_many_are_columns_with_a_line_at_the_mean() -> None:
    rows = [row(number, 10 if number == 7 else 5) for number in range(20)]
    drawn = draw_panels([panel(rows, mean=5.25)], of="host")
    columns = boxes(drawn.marks, "data")
    assert len(columns) == 20
    assert columns[7].height == pytest.approx(2 * columns[0].height)
    assert len({box.width for box in columns}) <= 20
    (mean,) = [
        mark
        for mark in drawn.marks
        if isinstance(mark, Line) and mark.dashed and mark.points[1][0] == 480
    ]
    bottom = columns[0].y + columns[0].height
    assert bottom - mean.points[0][1] == pytest.approx(columns[0].height * 5.25 / 5)


def test_a_group_is_filled_to_its_least_and_beyond_to_its_most() -> None:
    rows = [row(number, 5, 10, word="most" if number == 3 else "") for number in range(20)]
    drawn = draw_panels([panel(rows)], of="host")
    grey = [box for box in boxes(drawn.marks, "padding") if box.title]
    red = [box for box in boxes(drawn.marks, "alarm") if box.title]
    full = [box for box in boxes(drawn.marks, "data") if box.title]
    assert (len(full), len(grey), len(red)) == (20, 19, 1)
    assert {round(box.height, 6) for box in full} == {round(box.height, 6) for box in grey + red}
    assert "most" in texts(drawn.marks)


def test_neighbours_of_one_word_share_it() -> None:
    rows = [row(number, 0 if 5 <= number < 15 else 4) for number in range(20)]
    rows[5:15] = [row(number, 0, word="idle") for number in range(5, 15)]
    drawn = draw_panels([panel(rows)], of="host")
    assert texts(drawn.marks).count("idle") == 1
    (over,) = [mark for mark in drawn.marks if isinstance(mark, Line) and mark.role == "alarm"]
    full = [box for box in boxes(drawn.marks, "data") if box.title]
    assert over.points[0][0] == pytest.approx(full[4].x + full[4].width, abs=4)
    assert over.points[1][0] == pytest.approx(full[5].x, abs=4)


def test_words_that_would_overlap_are_on_lines_of_their_own() -> None:
    words = {20: "empty", 21: "empty", 22: "most", 23: "missing"}
    rows = [row(number, 4, word=words.get(number, "")) for number in range(40)]
    drawn = draw_panels([panel(rows)], of="host")
    check_labels(drawn.marks, drawn.bottom)
    found = {mark.text: mark.y for mark in drawn.marks if isinstance(mark, Label) and mark.bold}
    assert set(found) == {"empty", "most", "missing"}
    assert len(set(found.values())) == 3


def test_fields_of_panels_begin_at_one_place() -> None:
    rows = [[row(number, value) for number in range(20)] for value in (3, 12_345)]
    drawn = draw_panels(list(map(panel, rows)), of="host")
    columns = [box for box in boxes(drawn.marks, "data") if box.title]
    assert columns[0].x == pytest.approx(columns[20].x)


def test_no_panels_take_no_room() -> None:
    assert draw_panels([], of="host") == ((), 0.0)


@pytest.mark.parametrize(
    ("most", "unit", "last"),
    [
        (0.5, "bytes", 0.5),
        (1023, "bytes", 1000),
        (1024, "KiB", 1024),
        (3 * 2**60, "EiB", 3 * 2**60),
    ],
)
def test_ticks_of_bytes_are_round_in_their_unit(most: float, unit: str, last: float) -> None:
    ticks, found = byte_ticks(most)
    assert found == unit
    assert ticks[-1].value <= last + 1e-9
    assert ticks[-1].value > most / 3
    assert ticks[0].value == 0


@st.composite
def panels(draw: st.DrawFn) -> list[Panel]:
    count = draw(st.integers(1, 64))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        rows = []
        for number in range(count):
            least, most = sorted(draw(st.tuples(*[st.integers(0, 10**15)] * 2)))
            word = draw(st.sampled_from(("", "", "most", "idle", "most, some idle")))
            rows.append(row(draw(st.just(number)), least, most + 1, word))
        mean = draw(st.one_of(st.none(), st.just(sum(one.most for one in rows) / count)))
        most = max(shown.most for shown in rows)
        title = draw(HOSTILE_TEXTS)
        found.append(Panel(title=title, rows=rows, ticks=round_ticks(0, most), mean=mean))
    return found


def check_panels(found: list[Panel]) -> None:
    drawn = draw_panels(found, of="host, the first of a group")
    check_labels(drawn.marks, drawn.bottom)


def test_labels_are_apart_and_in_the_frame() -> None:
    check_cases(panels(), check_panels, 25)


@pytest.mark.fuzz
def test_labels_are_apart_and_in_the_frame_fuzz() -> None:
    check_cases(panels(), check_panels, FUZZ, fuzz=True)
