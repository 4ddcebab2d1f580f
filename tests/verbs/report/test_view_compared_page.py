"""The page of two pipelines: whole, the same each time, with an answer to each question."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import ShardctlError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.report.compared import comparison_body, comparison_page
from tests.cases import FUZZ, check_cases
from tests.draw.pictures.drawn import HOSTILE
from tests.verbs.diff.diff_cases import Pipeline, dataset_of, pairs
from tests.verbs.report.reports import text_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def side(label: str, dataset: Dataset = TOY, **settings: object) -> Side:
    read = ReadSettings(**settings)  # type: ignore[arg-type]
    return Side(label=label, dataset=dataset, spec="train", settings=read)


def compared(*sides: Side) -> ReportComparison:
    return compare_sides(*sides, hosts=2)


def page_of(found: ReportComparison) -> str:
    """Return the page, which is looked at as every page is."""
    page = "".join(comparison_page(found))
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    text_of(page.removeprefix("<!DOCTYPE html>"))  # every element is closed in its place
    assert not re.search(r"<script|<link|<img|<iframe|\bsrc=|https?://(?!www\.w3)", page)
    headings = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    return page


def answers(page: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'<p class="answer">(.*?)</p>', page)]


def test_the_order_of_questions() -> None:
    page = page_of(compared(side("a", block=1), side("b", block=2)))
    asked = ("summary", "parting", "settings", "shuffle", "hosts", "evaluation", "about")
    assert re.findall(r'<h2 id="([\w-]+)"', page) == ["contents", *asked]


@pytest.mark.parametrize(("hosts", "times"), [(None, 2), (8, 0)])
def test_hosts_that_nobody_stated_are_said_where_they_are_used(
    hosts: int | None, times: int
) -> None:
    page = page_of(compare_sides(side("a", block=1), side("b", block=2), hosts=hosts))
    headings = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert sum("(if 8 hosts shared it)" in heading for heading in headings) == times


@pytest.mark.long
def test_answers_of_orders_that_part() -> None:
    shuffled = side("b.yaml", buffer=120, buffer_seed=3, batch=8)
    page = page_of(compared(side("a.yaml", cycle=1, batch=8), shuffled))
    assert answers(page) == ["No", "B"]
    assert "a.yaml and b.yaml first differ at position 0 of 120." in text_of(page[15:])
    backwards = page_of(compared(shuffled, side("a.yaml", cycle=1, batch=8)))
    assert answers(backwards)[1] == "A"


def test_answers_of_equal_pipelines() -> None:
    page = page_of(compared(side("a.yaml", block=2), side("b.yaml", block=2)))
    assert answers(page) == ["Yes", "About the same"]
    assert "a.yaml and b.yaml: the same, the order of 120 examples." in text_of(page[15:])


def test_scores_within_their_spread_are_about_the_same() -> None:
    one, other = (side("a", buffer=120, buffer_seed=seed, batch=8) for seed in (1, 2))
    assert answers(page_of(compared(one, other)))[:2] == ["No", "About the same"]


def test_another_dataset_is_said_first() -> None:
    other = Dataset(name="other", splits=TOY.splits)
    page = page_of(compared(side("a"), side("b", other)))
    assert answers(page)[0] == "The same ids"
    header = page[page.index("<h1>") : page.index("</header>")]
    assert "The datasets or their layouts are not the same." in header
    assert "Equal ids need not be equal examples" in text_of(header)
    assert "hold the same ids at the same positions" in page


def test_what_is_not_known_says_why() -> None:
    one = Dataset(name="tiny", splits=(Split(name="train", shard_lengths=(1,)),))
    page = page_of(compared(side("a.yaml", one), side("b.yaml", shuffle_files=True)))
    assert answers(page)[:2] == ["Not known", "Not known"]
    text = text_of(page[15:])
    assert "b.yaml has no one order: --shuffle-files without a seed" in text
    assert "a.yaml : the quality of an order needs 2 examples at least" in text


def test_the_same_comparison_is_the_same_page_and_in_a_notebook_a_frame() -> None:
    found = compared(side("a", block=1), side("b", block=2))
    again = compared(side("a", block=1), side("b", block=2))
    page = "".join(comparison_page(found))
    assert page == "".join(comparison_page(again)) == found.to_html()
    body = comparison_body(found)
    assert unescape(body[body.index('srcdoc="') + 8 : body.rindex('"')]) == page


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_are_text(hostile: str) -> None:
    splits = (Split(name="train", shard_lengths=(30, 40)), Split(name=hostile, shard_lengths=(9,)))
    named = Dataset(name=hostile, splits=splits)
    page = page_of(compared(side(hostile, named, batch=3), side(f"{hostile}2", TOY)))
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\x85\ud800-\udfff]", page)


def check_page(pair: tuple[Pipeline, Pipeline]) -> None:
    """A pair of settings is a page, or one line that says why it is none."""
    sides = [
        Side(label=label, dataset=one.dataset, spec=one.spec, settings=one.settings)
        for label, one in zip("ab", pair, strict=True)
    ]
    try:
        found = compared(*sides)
    except ShardctlError as error:
        said = str(error)
    else:
        said = answers(page_of(found))[0]
    assert said
    assert "\n" not in said


@pytest.mark.long
def test_any_two_settings_are_a_page_or_one_line() -> None:
    check_cases(pairs(), check_page, 3)


@pytest.mark.fuzz
def test_any_two_settings_are_a_page_or_one_line_fuzzed() -> None:
    check_cases(pairs(), check_page, FUZZ, fuzz=True)
