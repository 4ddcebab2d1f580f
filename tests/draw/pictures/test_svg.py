"""SVG that is well-formed whatever names are, says what the marks say, and is small."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.base.text import inert, printable
from shardctl.draw.picture import Heat, Picture, Rise, Span, words
from shardctl.draw.svg import svg_element, svg_file
from tests.cases import check_cases, few_or_many
from tests.draw.pictures.drawn import HOSTILE_TEXTS, picture

_SVG = "{http://www.w3.org/2000/svg}"


def parsed(*pictures: Picture) -> ElementTree.Element:
    text = "".join(svg_file(pictures))
    return ElementTree.fromstring(text.encode())  # which no lone surrogate can be


def every_mark(text: str) -> Picture:
    return picture(
        words(text),
        (Span(text, slot=9), Span("█▌", "warning"), Span("░░▒", ""), Span(text, "bold")),
        Rise(names=("one", "other"), values=(0.5, 1.0), expected=(1.0, 1.0)),
        Heat(counts=np.eye(3, dtype=np.int64), sides=("first", "last"), below="3"),
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
        if shown := inert(printable(text)):
            assert root.findtext(f"{_SVG}title") == shown
        element = svg_element(every_mark(text))
        ElementTree.fromstring(element.replace("<svg ", f'<svg xmlns="{_SVG[1:-1]}" ').encode())

    check_cases(HOSTILE_TEXTS, check, num_cases)


def test_a_file_stands_alone() -> None:
    text = "".join(svg_file([every_mark("a"), every_mark("b")]))
    root = ElementTree.fromstring(text)
    assert root.get("role") == "img"
    named = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    assert named[root.get("aria-labelledby")] == "a; b"
    assert "; a; a" in str(named[root.get("aria-describedby")])
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert float(root.attrib["width"]) / width == float(root.attrib["height"]) / height
    page = root.find(f"{_SVG}rect")
    assert page is not None
    assert (page.get("class"), page.get("width"), page.get("height")) == ("page", "100%", "100%")
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)


def test_words_for_those_who_do_not_see_it_are_whole_and_without_blocks() -> None:
    said = " ".join(f"host {number} reads the same." for number in range(200))
    root = parsed(picture(words("0  ", "████▌", " 12 most"), text=said))
    assert f" 0 12 most; {said}" in (root.findtext(f"{_SVG}desc") or "")


def test_every_class_of_a_file_has_its_colour() -> None:
    root = parsed(every_mark("a"))
    style = root.findtext(f"{_SVG}style") or ""
    for element in root.iter():
        for name in (element.get("class") or "").split():
            assert name == "picture" or f".picture .{name}{{" in style, name


def test_nothing_is_drawn_of_no_pictures() -> None:
    assert not list(parsed().iter(f"{_SVG}text"))


def test_blocks_are_as_wide_as_they_are() -> None:
    boxes = re.findall(
        r'<rect class="(\w+)" x="([\d.]+)" y="2" width="([\d.]+)"',
        svg_element(
            picture((Span("ab "), Span("██▌"), Span(" "), Span("█", "warning"), Span("░")))
        ),
    )
    assert boxes == [("data", "24", "20"), ("alarm", "56", "8"), ("padding", "64", "8")]


@few_or_many(30, 120)
def test_a_heat_map_is_its_levels(num_cases: int) -> None:
    """The runs of each path are painted into an array as an SVG viewer paints them."""

    def check(counts: list[list[int]]) -> None:
        heat = Heat(counts=np.array(counts, dtype=np.int64), sides=("a", "b"), below="9")
        wanted = heat.levels(*heat.counts.shape)
        group = parsed(picture(heat)).find(f"{_SVG}g")
        assert group is not None
        painted = np.zeros_like(wanted)
        for path in group:
            level = int(path.attrib["class"].removeprefix("level"))
            for x, row, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path.attrib["d"]):
                part = painted[int(row), int(x) : int(x) + int(length)]
                assert (part == 0).all()
                part[:] = level
        assert (painted == wanted).all()

    rows = st.integers(1, 12).flatmap(
        lambda width: st.lists(
            st.lists(st.integers(0, 5000), min_size=width, max_size=width), min_size=1, max_size=9
        )
    )
    check_cases(rows, check, num_cases)


def test_a_heat_map_of_noise_is_less_than_60_kib() -> None:
    counts = np.random.default_rng(0).integers(0, 300, (48, 96)) ** 2
    heat = Heat(counts=counts, sides=("first", "last"), below="position 1,000")
    assert len("".join(svg_file([picture(heat)]))) < 60 * 1024


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_a_number_is_as_high_as_it_is(value: float) -> None:
    rise = Rise(names=("a", "b"), values=(value,), expected=(value,))
    element = svg_element(picture(rise))
    (top, high) = re.findall(
        r'class="data" x="\d+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', element
    )[0]
    assert float(high) == pytest.approx(86 * value, abs=0.01)
    assert float(top) + float(high) == pytest.approx(88, abs=0.01)
    assert f" {top}L" in element
