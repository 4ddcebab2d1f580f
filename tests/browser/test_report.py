"""Pages of reports and comparisons in a real browser, offline: legible, accessible, harmless."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.api.diff import compare_reports
from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import Report, report
from shardctl.verbs.snapshot.answer import snapshot
from tests.browser.chromium import NARROW, WIDE, Scheme, faults, open_all, opened, violations, widen
from tests.verbs.diff.diff_cases import dataset_of

# Pages that tests open: an ordinary report, one that lacks parts, hostile ones, comparisons.


# What a page must show as it is: markup, quotes, marks that turn the direction of text, long words.
HOSTILE_NAME = "<script>alert(1)</script>"
HOSTILE_SPLIT = "\"'><img src=x onerror=alert(2)>&amp;{0}"
RTL_SPLIT = "סט\u202eניסוי\u200f"
LONG_SPLIT = "w" * 180
_SHUFFLED = {"shuffle_seed": 42, "buffer": 10_000, "buffer_seed": 7, "batch": 256}


@functools.cache
def hang() -> Report:
    """Food-101 by files on 7 hosts, whose evaluation hangs, beside all loaders."""
    by_files = {**_SHUFFLED, "host_by": "files"}
    return report("food101", "train", by_files, hosts=7, devices=8, loaders=True)


@functools.cache
def hostile() -> Report:
    """A report of a dataset whose names are markup and worse."""
    splits = (
        Split(name=HOSTILE_SPLIT, shard_lengths=(40, 3, 0, 29)),
        Split(name=RTL_SPLIT, shard_lengths=(33,) * 9),
        Split(name=LONG_SPLIT, shard_lengths=(12, 12)),
        Split(name="test", shard_lengths=(17, 5)),
    )
    dataset = Dataset(
        name=HOSTILE_NAME,
        config="&lt;b&gt; ' \" ]]> --> \x1b[31m",
        version="1.0.0",
        splits=splits,
        origin="</style><script>alert(3)</script>",
    )
    return report(dataset, "all", {"shuffle_seed": 1, "buffer": 20, "batch": 8}, hosts=3)


def lacking() -> Report:
    """A report without evaluation and quality: one example, and no split to evaluate on."""
    tiny = Dataset(name="tiny", splits=(Split(name="train", shard_lengths=(1,)),))
    return report(tiny, "train", {"shuffle_files": True})


def parting(dataset: str = "imagenette") -> str:
    """Two readings of a dataset, which part and are shuffled otherwise."""
    before = snapshot(dataset, "train", {"shuffle_seed": 42})
    return compare_reports(before, report(dataset, "train", _SHUFFLED)).to_html()


def not_known() -> str:
    """A snapshot that pins hashes beside settings without an order."""
    long = dataset_of({"train": tuple(n**3 % 997 + 1 for n in range(20_000))})
    kept = snapshot(long, "train", {}).snapshot
    return compare_reports(kept, report(long, "train", {"shuffle_files": True})).to_html()


def attack() -> str:
    """The splits of a dataset whose names are markup, beside those of another one."""
    other = Dataset(name="<b>", splits=hostile().dataset.splits)
    made = report(other, "all", {"shuffle_seed": 2})
    return compare_reports(hostile(), made).to_html()


PAGES: dict[str, Callable[[], str]] = {
    "hang": lambda: hang().to_html(),
    "alone": lambda: report("imagenet2012", "train", {"shuffle_seed": 1, "batch": 256}).to_html(),
    "lacking": lambda: lacking().to_html(),
    "hostile": lambda: hostile().to_html(),
    "parting": parting,
    "not known": not_known,
    "attack": attack,
}


pytestmark = pytest.mark.long

# One page in an ordinary run, where the others add little to what is looked at.
ONE_PAGE = [pytest.param(name, marks=[] if name == "hang" else pytest.mark.slow) for name in PAGES]


class Files(dict[str, Path]):
    """The pages by name, each in a folder of its own, made when a test asks for it."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory

    def __missing__(self, name: str) -> Path:
        file = self._folders.mktemp("page") / "page.html"
        file.write_text(PAGES[name](), "utf-8")
        return self.setdefault(name, file)


@pytest.fixture(scope="module")
def files(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The pages of this module."""
    return Files(tmp_path_factory)


@pytest.mark.parametrize("name", PAGES)
def test_text_is_whole_and_nothing_is_asked_for(browser: Any, files: Files, name: str) -> None:
    """Light and wide, then dark and narrow; folded, then open."""
    with opened(browser, files[name]) as found:
        assert faults(found.page) == []
        open_all(found.page)
        assert faults(found.page) == []
        found.page.emulate_media(color_scheme="dark")
        widen(found.page, NARROW)
        assert faults(found.page) == []
        assert found.is_quiet()


def test_the_page_of_one_host_is_short(browser: Any, files: Files) -> None:
    """It was 8,140 pixels high once, and had 2,049 words."""
    with opened(browser, files["alone"]) as found:
        assert found.page.evaluate("document.documentElement.scrollHeight") < 2_000
        assert len(found.page.locator("body").inner_text().split()) < 500
        assert not found.page.locator("table").first.is_visible()


# The first three show every colour of an answer; in longer tables every way is seen once.
_LONGER = [
    ("hang", WIDE, "light"),
    ("hang", NARROW, "dark"),
    ("hostile", NARROW, "light"),
    ("lacking", WIDE, "dark"),
    ("parting", WIDE, "light"),
    ("not known", NARROW, "dark"),
    ("attack", NARROW, "dark"),
]


@pytest.mark.parametrize(
    ("name", "width", "scheme", "rows"),
    [
        *[("hang", WIDE, "light", 1), ("hostile", NARROW, "dark", 1)],
        ("parting", NARROW, "dark", 1),
        *(pytest.param(*one, 6, marks=pytest.mark.slow) for one in _LONGER),
    ],
)
def test_axe_finds_no_violation(
    browser: Any, files: Files, name: str, width: int, scheme: Scheme, rows: int
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        open_all(found.page)
        assert violations(found.page, rows=rows) == []


def test_a_page_is_as_light_and_as_dark_as_asked(browser: Any, files: Files) -> None:
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
def test_without_scripts_the_page_says_the_same(browser: Any, files: Files, name: str) -> None:
    texts = []
    for scripts in (True, False):
        with opened(browser, files[name], scripts=scripts) as found:
            texts.append(found.page.locator("body").inner_text())
            assert found.page.locator("svg, figure, table").count() > 0
    assert texts[0] == texts[1]
    assert "In short" in texts[0]


def test_no_script_can_run(browser: Any, files: Files) -> None:
    with opened(browser, files["hang"]) as found:
        assert found.page.locator("script").count() == 0
        found.page.evaluate(
            "document.body.appendChild(document.createElement('script')).text = 'window.ran = 1'"
        )
        assert found.page.evaluate("window.ran") is None
        assert any("Content Security Policy" in said for said in found.happened)


@pytest.mark.parametrize("name", ["hostile", "attack"])
def test_names_of_datasets_are_text(browser: Any, files: Files, name: str) -> None:
    with opened(browser, files[name]) as found:
        open_all(found.page)
        assert found.page.locator("script, img, iframe, object, embed, form, link").count() == 0
        assert found.page.evaluate("document.querySelectorAll('style').length") == 1
        text = found.page.locator("body").inner_text()
        names = (HOSTILE_SPLIT, LONG_SPLIT, r"\u202e", r"\x1b[31m")
        for shown in (HOSTILE_NAME, *(names if name == "hostile" else ())):
            assert shown in text
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", found.page.content())
        assert found.is_quiet()


def test_tables_open_by_keyboard(browser: Any, files: Files) -> None:
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


@pytest.mark.parametrize("name", ONE_PAGE)
def test_on_paper_all_is_open_light_and_whole(browser: Any, files: Files, name: str) -> None:
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
