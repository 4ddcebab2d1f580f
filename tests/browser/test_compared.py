"""Pages of two pipelines in a real browser, offline: legible, accessible, harmless."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.api.compare_reports import compare_reports
from shardctl.core.dataset.dataset import Dataset
from shardctl.planning.report.report import report
from shardctl.planning.snapshot import snapshot
from tests.browser.chromium import NARROW, WIDE, Scheme, open_all, opened, violations
from tests.browser.geometry import faults
from tests.browser.pages import HOSTILE_NAME, HOSTILE_SPLIT, LONG_SPLIT, hostile
from tests.planning.diff.diff_cases import dataset_of

SCREENS = [(width, scheme) for width in (WIDE, NARROW) for scheme in ("light", "dark")]
_SHUFFLED = {"shuffle_seed": 42, "buffer": 10_000, "buffer_seed": 7, "batch": 256}


def part() -> str:
    """Two readings of ImageNet, which part and are shuffled otherwise."""
    before = snapshot("imagenet2012", "train", {"shuffle_seed": 42})
    return compare_reports(before, report("imagenet2012", "train", _SHUFFLED), hosts=7).to_html()


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


@pytest.fixture(scope="module")
def files(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages, each in a folder of its own."""
    found = {}
    for name, made in PAGES.items():
        found[name] = tmp_path_factory.mktemp(name) / "compared.html"
        found[name].write_text(made(), "utf-8")
    return found


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_text_is_whole(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        assert faults(found.page) == []
        open_all(found.page)
        assert faults(found.page) == []
        assert found.is_quiet()


# Most of axe's time goes to colours, which are those of a page and a scheme at any width, and what
# else it finds that of a page and a width in any scheme: every page is seen so once.
@pytest.mark.parametrize(("width", "scheme"), [(WIDE, "light"), (NARROW, "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_violation(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, files[name], width=width, scheme=scheme) as found:
        open_all(found.page)
        assert violations(found.page) == []
        assert found.is_quiet()


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere_and_ids_are_there_once(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    with opened(browser, files[name], scripts=True) as found:
        ids = found.page.evaluate("[...document.querySelectorAll('[id]')].map(one => one.id)")
        links = found.page.evaluate(
            "[...document.querySelectorAll('a')].map(one => one.getAttribute('href'))"
        )
        assert len(ids) == len(set(ids))
        assert {link.removeprefix("#") for link in links} <= set(ids)


def test_names_of_datasets_are_text(browser: Any, files: dict[str, Path]) -> None:
    with opened(browser, files["attack"]) as found:
        open_all(found.page)
        assert found.page.locator("script, img, iframe, object, embed, form, link").count() == 0
        text = found.page.locator("body").inner_text()
        for name in (HOSTILE_NAME, HOSTILE_SPLIT, LONG_SPLIT):
            assert name in text
