"""Pages of reports in a real browser, offline: complete, legible, accessible, harmless."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import NARROW, WIDE, Scheme, open_all, opened, violations, widen
from tests.browser.geometry import faults
from tests.browser.pages import HOSTILE_NAME, HOSTILE_SPLIT, LONG_SPLIT, REPORTS, written

pytestmark = pytest.mark.long

# One page in an ordinary run, where the others add little to what is looked at.
ONE_PAGE = [
    pytest.param(name, marks=[] if name == "hang" else pytest.mark.slow) for name in REPORTS
]
SCREENS = [(width, scheme) for width in (WIDE, NARROW) for scheme in ("light", "dark")]


@pytest.fixture(scope="module")
def files(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages, each in a folder of its own."""
    return {name: written(tmp_path_factory.mktemp(name), made()) for name, made in REPORTS.items()}


@pytest.mark.parametrize("name", REPORTS)
def test_text_is_whole_and_nothing_is_asked_for(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    """Light and wide, then dark and narrow; folded, then open."""
    with opened(browser, files[name]) as found:
        assert faults(found.page) == []
        open_all(found.page)
        assert faults(found.page) == []
        found.page.emulate_media(color_scheme="dark")
        widen(found.page, NARROW)
        assert faults(found.page) == []
        assert found.is_quiet()


@pytest.mark.slow
@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_text_is_whole_on_every_screen(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        assert faults(found.page) == []
        open_all(found.page)
        assert faults(found.page) == []
        assert found.is_quiet()


# Both together show every colour of an answer. Pages of two pipelines are asked for in the others.
@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("hang", WIDE, "light"), ("hostile", NARROW, "dark")]
)
def test_axe_finds_no_violation(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        open_all(found.page)
        assert violations(found.page, rows=1) == []


# What axe tells apart is colours and boxes that scroll: every way is seen once.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("hang", WIDE, "light"),
        ("hang", NARROW, "dark"),
        ("hostile", NARROW, "light"),
        ("lacking", WIDE, "dark"),
    ],
)
def test_axe_finds_no_violation_in_longer_tables(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        open_all(found.page)
        assert violations(found.page, rows=6) == []


def test_a_page_is_as_light_and_as_dark_as_asked(browser: Any, files: dict[str, Path]) -> None:
    colors = []
    for scheme in ("light", "dark"):
        with opened(browser, files["hang"], scheme=scheme) as found:
            colors.append(
                found.page.evaluate(
                    "[getComputedStyle(document.body).backgroundColor,"
                    " getComputedStyle(document.querySelector('svg')).backgroundColor]"
                )
            )
    assert colors[0] == ["rgb(255, 255, 255)"] * 2
    assert colors[1][0] == colors[1][1]  # pictures lie on the page as on paper
    assert max(map(int, re.findall(r"\d+", colors[1][0]))) < 40


@pytest.mark.parametrize("name", ONE_PAGE)
def test_without_scripts_the_page_says_the_same(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    texts = []
    for scripts in (True, False):
        with opened(browser, files[name], scripts=scripts) as found:
            texts.append(found.page.locator("body").inner_text())
            assert found.page.locator("svg, figure, table").count() > 0
    assert texts[0] == texts[1]
    assert "In short" in texts[0]


def test_no_script_can_run(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hang"]) as found:
        assert found.page.locator("script").count() == 0
        found.page.evaluate(
            "document.body.appendChild(document.createElement('script')).text = 'window.ran = 1'"
        )
        assert found.page.evaluate("window.ran") is None
        assert any("Content Security Policy" in said for said in found.happened)


def test_names_of_datasets_are_text(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hostile"]) as found:
        open_all(found.page)
        assert found.page.locator("script, img, iframe, object, embed, form, link").count() == 0
        assert found.page.evaluate("document.querySelectorAll('style').length") == 1
        text = found.page.locator("body").inner_text()
        for name in (HOSTILE_NAME, HOSTILE_SPLIT, LONG_SPLIT, r"\u202e", r"\x1b[31m"):
            assert name in text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", found.page.content())
        assert found.is_quiet()


def test_links_lead_somewhere_and_ids_are_there_once(browser: Any, files: dict[str, Path]) -> None:
    for file in files.values():
        with opened(browser, file) as found:
            ids = found.page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
            assert len(ids) == len(set(ids))
            links = found.page.evaluate(
                "[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))"
            )
            assert links
            assert {link.removeprefix("#") for link in links} <= set(ids)


def test_tables_open_by_keyboard(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hang"]) as found:
        page = found.page
        summary = page.locator("summary").first
        table = page.locator("details table").first
        assert not table.is_visible()
        summary.focus()
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        page.keyboard.press("Enter")
        assert table.is_visible()
        page.keyboard.press("Tab")  # to the box in which the table scrolls
        assert page.evaluate("document.activeElement.getAttribute('role')") == "group"
        assert outline in ("auto", "solid")


def test_every_figure_has_words(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hang"]) as found:
        figures = found.page.locator("figure")
        assert figures.count() >= 2
        for figure in figures.all():
            assert figure.locator("figcaption").inner_text().strip()
            assert figure.locator("svg").get_attribute("aria-label")


@pytest.mark.parametrize("name", ONE_PAGE)
def test_on_paper_all_is_open_light_and_whole(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name], scheme="dark", width=700) as found:
        page = found.page
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
            "rgb(255, 255, 255)",
            "rgba(0, 0, 0, 0)",
        )
        hidden = page.evaluate(
            "[...document.querySelectorAll('details table')].filter(one => "
            "!one.checkVisibility({contentVisibilityAuto: true})).length"
        )
        assert hidden == 0
        assert faults(page) == []
        pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 2


def test_a_page_loads_in_no_time(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["hang"]) as found:
        took = found.page.evaluate("performance.getEntriesByType('navigation')[0].duration")
    assert took < 3000
