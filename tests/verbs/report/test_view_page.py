"""The page: whole, small, the same each time, in the order of a newcomer's questions."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.verbs.report.answer import Report, report
from shardctl.verbs.report.page import report_body, report_page
from tests.verbs.report.reports import lacking, mnist, shared, text_of

_KIB = 1024


@pytest.mark.parametrize("made", [mnist, shared, lacking])
def test_a_page_is_whole_and_needs_nothing_else(made: object) -> None:
    assert callable(made)
    page = made().to_html()
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert page.endswith("</html>\n")
    text_of(page.removeprefix("<!DOCTYPE html>"))  # every element is closed in its place
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|<iframe|\bsrc=|\bon\w+=|https?://(?!www\.w3)", page)
    headings = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))


def test_the_order_of_questions() -> None:
    titles = re.findall(r'<h2 id="([\w-]+)"', shared().to_html())
    asked = ("summary", "data", "shuffle", "open", "hosts", "evaluation", "loaders", "findings")
    assert titles == ["contents", *asked, "about"]


def test_the_same_report_is_the_same_page() -> None:
    again = report("mnist")
    assert "".join(report_page(again)) == mnist().to_html()


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "most"),
    [
        (lambda: report("imagenet2012", settings={"shuffle_seed": 1, "buffer": 10_000}), 300),
        pytest.param(
            lambda: report(
                Dataset(
                    name="large",
                    splits=(Split.even(name="train", num_examples=10**9, num_shards=10**6),),
                ),
                settings={"shuffle_seed": 1, "batch": 256},
            ),
            500,
            marks=pytest.mark.slow,
            id="a million shards",
        ),
    ],
    ids=["imagenet2012", None],
)
def test_pages_are_small(made: object, most: int) -> None:
    assert callable(made)
    found = made()
    assert isinstance(found, Report)
    assert len(found.to_html().encode()) < most * _KIB


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    html = report_body(mnist())
    assert " sandbox " in html
    (framed,) = re.findall(r'srcdoc="([^"]*)"', html)
    assert unescape(framed) == mnist().to_html()
    assert mnist()._repr_html_() == html
