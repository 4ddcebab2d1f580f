"""Figures of a page: what to see, the picture, its numbers as a table; nothing of it is markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

import numpy as np

from shardctl.core.text import inert, printable
from shardctl.rendering.pictures.picture import Label, Numbers, Picture
from shardctl.rendering.report.elements import figure
from tests.cases import check_cases, few_or_many
from tests.rendering.pictures.drawn import HOSTILE_TEXTS, picture


class Page(HTMLParser):
    """Elements in order, with what text each has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts[self._open[-1]][-1] += data


def test_a_figure_has_words_the_picture_and_its_numbers() -> None:
    rows: list[tuple[object, ...]] = [
        ("0/2", np.int64(1234567), np.float32(0.125), None, True),
        ("1/2", 5, 2.0, "x", False),
    ]
    numbers = Numbers(headings=("host", "examples", "part", "note", "late"), rows=rows)
    page = Page(
        figure(
            Picture(
                name="hosts",
                title="What each host reads",
                caption="Even bars are even work.",
                alternative="Two hosts read the same.",
                note="Measured once.",
                height=20,
                marks=(Label(x=0, y=14, text="host 0"),),
                numbers=numbers,
            )
        )
    )
    tags = [tag for tag, _ in page.found]
    assert tags[:2] == ["figure", "figcaption"]
    assert tags.index("svg") < tags.index("details") < tags.index("table")
    assert page.texts["strong"] == ["What each host reads"]
    assert page.texts["span"] == ["Even bars are even work.", "Measured once."]
    assert page.texts["title"] == ["What each host reads"]
    assert page.texts["desc"] == ["Two hosts read the same."]
    assert page.texts["caption"] == ["What each host reads"]
    columns = [attrs for tag, attrs in page.found if tag == "th" and attrs.get("scope") == "col"]
    assert len(columns) == 5
    heads = [attrs for tag, attrs in page.found if tag == "th" and attrs.get("scope") == "row"]
    assert len(heads) == len(rows)
    assert page.texts["td"] == ["1,234,567", "0.125", "", "yes", "5", "2", "", "no"]
    assert page.texts["bdi"] == ["0/2", "1/2", "x"]


@few_or_many(60, 120)
def test_no_text_of_a_figure_is_markup(num_cases: int) -> None:
    def check(text: str) -> None:
        page = Page(
            figure(picture(Label(x=0, y=9, text=text), text=text, rows=[(text, text)]), "a")
        )
        assert {tag for tag, _ in page.found} <= {
            *("figure", "figcaption", "strong", "span", "svg", "title", "desc", "text", "details"),
            *("summary", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi"),
        }
        shown = inert(printable(text))
        assert page.texts["bdi"] == [shown, shown]
        assert page.texts["caption"] == [shown]
        assert not any(name.startswith("on") for _, attrs in page.found for name in attrs)

    check_cases(HOSTILE_TEXTS, check, num_cases)


def test_ids_begin_with_what_the_page_says() -> None:
    one, other = (Page(figure(picture(), ids)) for ids in ("a", "b"))
    ids = [attrs["id"] for page in (one, other) for _, attrs in page.found if "id" in attrs]
    assert ids == ["a", "a-title", "a-desc", "b", "b-title", "b-desc"]


def test_without_numbers_there_is_no_table() -> None:
    assert "<details>" not in figure(picture(rows=()))
