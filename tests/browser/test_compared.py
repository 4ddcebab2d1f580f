"""Pages of two pipelines in a real browser, offline: legible, accessible, harmless."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.api.diff import compare_reports
from shardctl.dataset.dataset import Dataset
from shardctl.verbs.report.answer import report
from shardctl.verbs.snapshot.answer import snapshot
from tests.browser.chromium import NARROW, WIDE, Scheme, open_all, opened, violations, widen
from tests.browser.geometry import faults
from tests.browser.pages import HOSTILE_NAME, hostile
from tests.verbs.diff.diff_cases import dataset_of

pytestmark = pytest.mark.long

SCREENS = [(width, scheme) for width in (WIDE, NARROW) for scheme in ("light", "dark")]
_SHUFFLED = {"shuffle_seed": 42, "buffer": 10_000, "buffer_seed": 7, "batch": 256}


def part(dataset: str = "imagenet2012") -> str:
    """Two readings of a dataset, which part and are shuffled otherwise."""
    before = snapshot(dataset, "train", {"shuffle_seed": 42})
    return compare_reports(before, report(dataset, "train", _SHUFFLED), hosts=7).to_html()


def small() -> str:
    """The same of a dataset whose order is soon compared."""
    return part("imagenette")


def lack() -> str:
    """A snapshot that pins hashes beside settings without an order."""
    long = dataset_of({"train": tuple(n**3 % 997 + 1 for n in range(20_000))})
    kept = snapshot(long, "train", {}).snapshot
    return compare_reports(kept, report(long, "train", {"shuffle_files": True})).to_html()


def attack() -> str:
    """The splits of a dataset whose names are markup, beside those of another one."""
    made = hostile()
    other = Dataset(name="<b>", splits=made.dataset.splits)
    return compare_reports(made, report(other, "all", {"shuffle_seed": 2}), hosts=3).to_html()


PAGES = {"part": part, "lack": lack, "attack": attack}
QUICK = {"small": small, "lack": lack, "attack": attack}  # the same soon made


class Files(dict[str, Path]):
    """The pages by name, each in a folder of its own, made when a test asks for it."""

    def __init__(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        self._folders = tmp_path_factory

    def __missing__(self, name: str) -> Path:
        file = self._folders.mktemp(name) / "compared.html"
        file.write_text((PAGES | QUICK)[name](), "utf-8")
        return self.setdefault(name, file)


@pytest.fixture(scope="module")
def files(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The pages of this module."""
    return Files(tmp_path_factory)


@pytest.mark.parametrize("name", QUICK)
def test_text_is_whole(browser: Any, files: Files, name: str) -> None:
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
@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_text_is_whole_on_every_screen(
    browser: Any, files: Files, name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        assert faults(found.page) == []
        open_all(found.page)
        assert faults(found.page) == []
        assert found.is_quiet()


def test_axe_finds_no_violation(browser: Any, files: Files) -> None:
    with opened(browser, files["small"], width=NARROW, scheme="dark") as found:
        open_all(found.page)
        assert violations(found.page, rows=1) == []


# Most of axe's time goes to colours, which are those of a page and a scheme at any width, and what
# else it finds that of a page and a width in any scheme: every page is seen so once.
@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation_in_longer_tables(
    browser: Any, files: Files, name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        open_all(found.page)
        assert violations(found.page, rows=6) == []
        assert found.is_quiet()


@pytest.mark.parametrize("name", QUICK)
def test_links_lead_somewhere_and_ids_are_there_once(browser: Any, files: Files, name: str) -> None:
    with opened(browser, files[name], scripts=True) as found:
        ids = found.page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        links = found.page.evaluate(
            "[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))"
        )
        assert len(ids) == len(set(ids))
        assert {link.removeprefix("#") for link in links} <= set(ids)


def test_names_of_datasets_are_text(browser: Any, files: Files) -> None:
    with opened(browser, files["attack"]) as found:
        open_all(found.page)
        assert found.page.locator("script, img, iframe, object, embed, form, link").count() == 0
        text = found.page.locator("body").inner_text()
        assert HOSTILE_NAME in text
