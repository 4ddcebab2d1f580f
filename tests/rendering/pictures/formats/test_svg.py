"""SVG that is well-formed whatever names are, says what the marks say, and is small."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.text import inert, printable
from shardctl.rendering.pictures.palette import DARK, LIGHT
from shardctl.rendering.pictures.picture import (
    NUM_LEVELS,
    Band,
    Box,
    Cells,
    Label,
    Line,
    Picture,
    Spot,
)
from shardctl.rendering.pictures.svg import svg_element, svg_file
from tests.cases import check_cases, few_or_many
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, picture

_SVG = "{http://www.w3.org/2000/svg}"


def parsed(*pictures: Picture) -> ElementTree.Element:
    text = "".join(svg_file(pictures))
    return ElementTree.fromstring(text.encode())  # which no lone surrogate can be


def every_mark(text: str) -> Picture:
    return picture(
        Box(x=0, y=0, width=10, height=10, title=text),
        Spot(x=0, y=0, width=10, height=10, title=text),
        Label(x=0, y=20, text=text, on_slot=9),
        Label(x=0, y=20, text=text, quiet=True, bold=True, anchor="end"),
        Line(points=((0, 0), (1, 2)), dashed=True),
        Band(points=((0, 0), (1, 2), (3, 1))),
        Cells(x=0, y=0, cell_width=2, cell_height=3, levels=np.eye(3, dtype=np.int64)),
        text=text,
    )


@few_or_many(100, 150)
def test_no_text_is_markup_or_breaks_the_file(num_cases: int) -> None:
    def check(text: str) -> None:
        root = parsed(every_mark(text))
        tags = {element.tag.removeprefix(_SVG) for element in root.iter()}
        assert tags <= {"svg", "title", "desc", "style", "rect", "text", "path", "g"}
        attributes = {name for element in root.iter() for name in element.attrib}
        assert not {name for name in attributes if name.startswith("on") or "href" in name}
        shown = inert(printable(text))
        if shown:
            assert [root.findtext(f"{_SVG}title"), root.findtext(f"{_SVG}desc")] == [shown, shown]
            assert {rect.findtext(f"{_SVG}title") for rect in root.iter(f"{_SVG}rect")} == {
                shown,
                None,
            }
        labels = [label.text or "" for label in root.iter(f"{_SVG}text")]
        assert labels.count(shown) >= 2

    check_cases(HOSTILE_TEXTS, check, num_cases)


def test_a_file_stands_alone() -> None:
    text = "".join(svg_file([every_mark("a"), every_mark("b")]))
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    named = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    assert named[root.get("aria-labelledby")] == "a; b"
    assert named[root.get("aria-describedby")] == "a b"
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    assert float(root.attrib["width"]) / width == float(root.attrib["height"]) / height
    page = root.find(f"{_SVG}rect")
    assert page is not None
    assert (page.get("class"), page.get("width"), page.get("height")) == ("page", "100%", "100%")
    style = root.findtext(f"{_SVG}style") or ""
    light, dark = style.split("prefers-color-scheme:dark")
    assert f".page{{fill:{LIGHT.page}}}" in light
    assert f".page{{fill:{DARK.page}}}" in dark
    assert "system-ui,sans-serif" in style
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)


def test_words_for_those_who_do_not_see_it_are_whole() -> None:
    said = " ".join(f"host {number} reads the same." for number in range(200))
    root = parsed(picture(text=said))
    assert root.findtext(f"{_SVG}desc") == said


def test_every_class_of_a_file_has_its_colour() -> None:
    root = parsed(every_mark("a"))
    style = root.findtext(f"{_SVG}style") or ""
    for element in root.iter():
        for name in (element.get("class") or "").split():
            assert name == "picture" or f".picture .{name}{{" in style, name


def test_nothing_is_drawn_of_no_pictures() -> None:
    assert not list(parsed().iter(f"{_SVG}text"))


def test_two_elements_of_a_page_share_no_ids() -> None:
    one, other = svg_element(every_mark("a"), "one"), svg_element(every_mark("a"), "other")
    ids = re.findall(r' id="([^"]*)"', one + other)
    assert len(ids) == len(set(ids)) == 4
    assert set(re.findall(r'aria-\w+="([^"]*)"', one + other)) == set(ids)
    assert svg_element(every_mark("a")).count('"example-title"') == 2


def test_boxes_without_a_size_are_left_out() -> None:
    marks = [Box(x=1, y=1, width=0, height=5), Box(x=1, y=1, width=5, height=-1)]
    assert "<rect" not in svg_element(picture(*marks))


@few_or_many(50, 120)
def test_a_heat_map_is_its_levels(num_cases: int) -> None:
    """The runs of each path are painted into an array as an SVG viewer paints them."""

    def check(levels: list[list[int]]) -> None:
        wanted = np.array(levels, dtype=np.int64)
        cells = Cells(x=3, y=4.5, cell_width=2.125, cell_height=3, levels=wanted)
        root = parsed(picture(cells))
        group = root.find(f"{_SVG}g")
        assert group is not None
        place = "translate(19 {})scale(2.125 3)"
        assert re.fullmatch(re.escape(place).replace(r"\{\}", "[0-9.]+"), group.attrib["transform"])
        painted = np.zeros_like(wanted)
        for path in group:
            level = int(path.attrib["class"].removeprefix("level"))
            x = y = 0.0
            for move, at, down, length in re.findall(
                r"([Mm])(-?[0-9]+) (-?[0-9.]+)h([0-9]+)", path.attrib["d"]
            ):
                x, y = (int(at), float(down)) if move == "M" else (x + int(at), y + float(down))
                row = int(y - 0.5)
                assert (painted[row, int(x) : int(x) + int(length)] == 0).all()
                painted[row, int(x) : int(x) + int(length)] = level
                x += int(length)
        assert (painted == wanted).all()

    row = st.integers(1, 12).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(0, NUM_LEVELS), min_size=width, max_size=width),
            min_size=1,
            max_size=9,
        )
    )
    check_cases(row, check, num_cases)
    assert "<path" not in svg_element(
        picture(Cells(x=0, y=0, cell_width=1, cell_height=1, levels=np.zeros((0, 4), np.int64)))
    )


@few_or_many(60, 120)
def test_steps_of_a_path_add_up_to_its_points(num_cases: int) -> None:
    def check(points: list[tuple[float, float]]) -> None:
        text = svg_element(picture(Line(points=tuple(points))))
        (path,) = re.findall(r'<path class="data-line" d="([^"]*)"', text)
        x = y = 0.0
        steps = re.findall(r"([Ml])(-?[0-9.]+) ?(-?[0-9.]+)", path)
        assert len(steps) == len(points)
        for (kind, right, down), (at_x, at_y) in zip(steps, points, strict=True):
            x, y = (
                (float(right), float(down)) if kind == "M" else (x + float(right), y + float(down))
            )
            assert x == pytest.approx(at_x, abs=0.011)
            assert y == pytest.approx(at_y, abs=0.011)

    places = st.floats(-5, 500, allow_subnormal=False)
    check_cases(st.lists(st.tuples(places, places), min_size=1, max_size=40), check, num_cases)


def test_a_heat_map_of_noise_is_less_than_40_kib() -> None:
    rng = np.random.default_rng(0)
    levels = rng.integers(0, NUM_LEVELS + 1, (48, 96))  # no two neighbours alike, the worst case
    cells = Cells(x=60, y=20, cell_width=4.375, cell_height=5, levels=levels)
    assert len("".join(svg_file([picture(cells)]))) < 40 * 1024
