"""Pages of reports and of comparisons: whole, the same each time, small, and safe."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.report.answer import NotShown, Report, report
from shardctl.verbs.report.compare import ReportComparison, Side, compare_sides
from shardctl.verbs.report.compare_page import comparison_body
from shardctl.verbs.report.elements import STYLE
from shardctl.verbs.report.page import report_body
from tests.draw.drawn import DARK, HOSTILE, LIGHT, contrast
from tests.golden import assert_golden
from tests.verbs.diff.diff_cases import dataset_of
from tests.verbs.report.reports import text_of

TOY = dataset_of({"train": (30, 40, 50), "test": (10, 7)})


def toy(name: str, *splits: tuple[str, tuple[int, ...]]) -> Dataset:
    return Dataset(name=name, splits=tuple(Split(name=n, shard_lengths=s) for n, s in splits))


def mnist() -> Report:
    """One file and one host."""
    return replace(report("mnist"), warnings=("that is odd",))


def shared() -> Report:
    """By files on 2 hosts, 20 and 16 examples in batches of 4: one makes 5 steps, the other 4."""
    files = (10, 10, 10, 6)
    settings = {"shuffle_seed": 1, "buffer": 5, "buffer_seed": 2, "batch": 4, "host_by": "files"}
    data = toy("toy", ("train", files), ("test", files))
    return report(data, "train", settings, hosts=2, loaders=True)


def lacking() -> Report:
    """One example, and no split to evaluate on."""
    return report(toy("tiny", ("train", (1,))))


def refused() -> Report:
    """TFDS raises for an InputContext with fewer files than hosts (core/reader.py)."""
    data = toy("few", ("train", (8,) * 4), ("test", (7, 30)))
    return report(data, settings={"batch": 4, "host_by": "files"}, hosts=4, evaluated=["train"])


def unseeded() -> Report:
    """A nondeterministic order, examples that are lost, and parts that are not shown."""
    data = toy("odd", ("train", (30, 31)), ("test", (10,)))
    settings = {"shuffle_files": True, "batch": 4, "drop_remainder": True}
    made = report(data, "train", settings, hosts=1)
    return replace(made, loaders=NotShown(reason="none of tf.data"), lint=NotShown(reason="two"))


def side(label: str, dataset: Dataset = TOY, **settings: object) -> Side:
    read = ReadSettings(**settings)  # type: ignore[arg-type]
    return Side(label=label, dataset=dataset, spec="train", settings=read)


def parting() -> ReportComparison:
    shuffled = side("b.yaml", buffer=120, buffer_seed=3, batch=8)
    return compare_sides(side("a.yaml", cycle=1, batch=8), shuffled)


def other_dataset() -> ReportComparison:
    return compare_sides(side("a"), side("b", Dataset(name="other", splits=TOY.splits)))


def not_known() -> ReportComparison:
    one = toy("tiny", ("train", (1,)))
    return compare_sides(side("a.yaml", one), side("b.yaml", shuffle_files=True))


PAGES: tuple[Callable[[], Report | ReportComparison], ...]
PAGES = (mnist, shared, lacking, refused, unseeded, parting, other_dataset, not_known)


def checked(page: str) -> str:
    """Return a page, which is looked at as every page is."""
    assert page.startswith("<!DOCTYPE html>\n<html lang=")
    assert page.endswith("</html>\n")
    text_of(page.removeprefix("<!DOCTYPE html>"))  # every element is closed in its place
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|<img|<iframe|\bsrc=|\bon\w+=|https?://(?!www\.w3)", page)
    headings = [int(level) for level in re.findall(r"<h(\d)", page)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]*)"', page)
    assert links
    assert {*links} <= {*ids}
    assert len(page) < 300 * 1024
    return page


@pytest.mark.parametrize("made", PAGES, ids=lambda made: made.__name__)
def test_pages_are_those_on_file(made: Callable[[], Report | ReportComparison]) -> None:
    """Their pictures are reduced to what is said of them, which have files of their own."""
    page = checked(made().to_html())
    assert page == made().to_html()
    body = page[page.index("<body>") :].replace(f"shardctl {shardctl.__version__},", "shardctl")
    body = re.sub(r"<svg [^>]*(aria-label=\"[^\"]*\")>.*?</svg>", r"<svg \1>", body, flags=re.S)
    body = re.sub(r"\d+ checks", "The checks", body)
    body = body.replace(f"Written by shardctl {shardctl.__version__}.", "")
    assert_golden(Path(__file__).with_name("pages") / f"{made.__name__}.html", body)


def answers(found: Report | ReportComparison) -> list[str]:
    page = checked(found.to_html())
    return [unescape(found) for found in re.findall(r'<p class="answer">(.*?)</p>', page)]


def test_answers_of_hosts_and_evaluations_that_end() -> None:
    data = toy("even", ("train", (8, 8)), ("test", (8, 8)))
    made = report(data, settings={"batch": 2}, hosts=2)
    assert answers(made)[1:3] == ["Yes", "No"]
    assert "assumed" not in report(data, settings={"batch": 2}).to_html()
    idle = report(toy("two", ("train", (2,)), ("test", (3,))), hosts=3)
    assert answers(idle)[1] == "Refused"


def test_red_is_named_and_only_what_is_asked_for_is_shown() -> None:
    alone = report("mnist").to_html()
    closed = re.sub("<details>.*?</details>", "", alone, flags=re.DOTALL)
    assert not re.search("[Hh]ost|[Ee]valuation|device", closed[closed.index("<body>") :])
    assert "Red means: a score below 0.5." in alone
    shuffled = report("mnist", "train", {"buffer": 60_000, "buffer_seed": 1}).to_html()
    assert 'class="bad"' not in shuffled
    assert "Red means" not in shuffled
    assert alone.count("<table>") == alone.count("<details>") > 0


def test_a_pipeline_without_an_order_is_not_said_to_be_sound() -> None:
    made = report("mnist")
    assert not isinstance(made.lint, NotShown)
    quiet = replace(made, lint=replace(made.lint, findings=()))
    assert answers(quiet)[1] == "No problems"
    few = NotShown(reason="too few files")
    assert answers(replace(quiet, order=few, strips=few))[1] == "Not known"


def test_scores_within_their_spread_are_about_the_same() -> None:
    one, other = (side("a", buffer=120, buffer_seed=seed, batch=8) for seed in (1, 2))
    assert answers(compare_sides(one, other)) == ["No", "About the same"]
    assert answers(compare_sides(side("a"), side("b"))) == ["Yes", "About the same"]
    assert answers(compare_sides(one, side("b", batch=8)))[1] == "A"


def test_a_notebook_shows_pages_in_a_frame() -> None:
    made, both = lacking(), not_known()
    for html, page in (
        (report_body(made), made.to_html()),
        (comparison_body(both), both.to_html()),
    ):
        assert " sandbox " in html
        (framed,) = re.findall(r'srcdoc="([^"]*)"', html)
        assert unescape(framed) == page
    assert made._repr_html_() == report_body(made)
    assert both._repr_html_() == comparison_body(both)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_names_are_text(hostile: str) -> None:
    named = toy(hostile, ("train", (30, 40)), (hostile, (9,)))
    both = compare_sides(side(hostile, named, batch=3), side(f"{hostile}2", TOY))
    assert not re.search(
        "[\u202a-\u202e\u2066-\u2069\x00\x1b\x85\ud800-\udfff]", checked(both.to_html())
    )


# The style: colours of text are told from what they stand on; nothing is fetched; paper is light.


@pytest.mark.parametrize(("scheme", "picture"), [(0, LIGHT), (1, DARK)])
def test_text_is_told_from_what_it_stands_on(scheme: int, picture: dict[str, str]) -> None:
    found = dict(re.findall(r"--([\w-]+):(#\w+)", re.findall(r":root\{([^}]*)\}", STYLE)[scheme]))
    inks = (picture["page"], picture["text"], picture["quiet"])
    assert (found["paper"], found["ink"], found["quiet"]) == inks
    for text in ("ink", "quiet", "link", "good", "warn", "bad"):
        for ground in ("paper", "panel"):
            assert contrast(found[text], found[ground]) >= 4.5, (text, ground)  # WCAG 2.2, 1.4.3
    for edge in ("good-edge", "warn-edge", "bad-edge"):
        assert contrast(found[edge], found["paper"]) >= 2.4


def test_the_style_asks_for_nothing_and_leaves_its_element_to_nobody() -> None:
    assert not re.search(r"url\(|@import|expression|</|<!", STYLE)
    assert STYLE.count("{") == STYLE.count("}")
    queries = re.findall(r"@media ([^{]*)\{", STYLE)
    assert all("screen and" in query for query in queries if "dark" in query)
    paper = STYLE[STYLE.index("@media print") :]
    assert "details::details-content{content-visibility:visible" in paper
