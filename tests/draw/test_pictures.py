"""Pictures as lines of a terminal and as SVG: on file, of marks by hand, within their paper."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.base.text import inert, printable
from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.picture import (
    EVEN,
    SHEET,
    Bar,
    Heat,
    Paper,
    Picture,
    Series,
    Span,
    bar_lines,
    drawn_bar,
    lines_of,
    pictures_of,
    words,
)
from shardctl.draw.svg import STYLE, svg_element, svg_file
from shardctl.draw.tables import PLAIN, Screen, display_width
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.eval.answer import Evaluation, evaluate
from shardctl.verbs.eval.view import eval_table
from shardctl.verbs.hosts.answer import HostsPlan, hosts
from shardctl.verbs.layout.answer import layout
from shardctl.verbs.quality.view import loaders_table
from shardctl.verbs.simulate.answer import Simulation, simulate
from shardctl.verbs.simulate.view import simulate_table
from tests.cases import check_cases, few_or_many
from tests.draw.drawn import (
    HOSTILE_TEXTS,
    dataset,
    drawn,
    evaluations,
    picture,
    simulations,
    without_codes,
)
from tests.golden import assert_evaluated, assert_golden, rows
from tests.verbs.quality.quality_orders import even_dataset, quality_alone

# Random datasets and numbers of hosts, on screens of any width.


LENGTHS = st.one_of(
    st.lists(st.sampled_from((0, 1, 2, 7, 100, 10**6)), min_size=1, max_size=40),
    st.lists(st.integers(0, 10**15), min_size=1, max_size=20),
    st.tuples(st.integers(1, 300), st.integers(1, 300)).map(lambda one: [one[0]] * one[1]),
)
NUMS_HOSTS = st.one_of(
    st.integers(1, 30), st.integers(1, 400), st.sampled_from((10_000, 999_999, 1_000_000))
)


@st.composite
def splits(draw: st.DrawFn, name: str = "train") -> Split:
    """Return a split whose files are known, or not, or some of which are missing."""
    lengths = draw(LENGTHS)
    sizes = draw(
        st.one_of(
            st.none(),
            st.lists(
                st.one_of(st.none(), st.integers(0, 2**45)),
                min_size=len(lengths),
                max_size=len(lengths),
            ),
        )
    )
    return Split(
        name=name, shard_lengths=lengths, shard_bytes=None if sizes is None else tuple(sizes)
    )


@st.composite
def plans(draw: st.DrawFn, num_hosts: st.SearchStrategy[int | list[int]]) -> HostsPlan:
    """Return what hosts read of a random dataset, with batches or without."""
    batch = draw(st.one_of(st.none(), st.integers(1, 300)))
    dataset = Dataset(name="random", splits=(draw(splits()),))
    return hosts(dataset, "train", ReadSettings(batch=batch), hosts=draw(num_hosts))


def laid_out(*found: Split) -> object:
    return layout(Dataset(name="toy", splits=found))


def evaluated(*lengths: int, **options: Any) -> Evaluation:
    """Return the evaluation on Flax's page that hangs, or a variant of it."""
    more = {"batch_per_device": 64, "hosts": 8, "devices": 8, **options}
    return evaluate(dataset(*(lengths or (4097,)), name="test"), **more)


def simulated(*lengths: int, skip: int = 0, take: int | None = None, **settings: Any) -> Simulation:
    return simulate(dataset(*lengths), "train", settings, skip=skip, take=take)


def measured(n: int, shards: int, **settings: Any) -> object:
    return quality_alone(even_dataset(n, shards), shardctl.ReadSettings(**settings))


BUFFER = {"buffer_seed": 1}
BY_FILES = {"settings": {"host_by": "files"}}
ANSWERS: dict[str, dict[str, Callable[[], Any]]] = {}
for named, asked in rows(Path(__file__).with_name("answers.txt")).items():
    ANSWERS.setdefault(named.partition(", ")[0], {})[named.partition(", ")[2]] = partial(
        eval, asked, globals()
    )


@pytest.mark.parametrize("verb", ANSWERS)
def test_pictures_are_those_on_file(verb: str) -> None:
    found = []
    for name, made in ANSWERS[verb].items():
        answer = made()
        for width in (80, 40):
            lines = drawn(answer, width)
            assert max(map(display_width, lines)) <= width
            assert [without_codes(line) for line in drawn(answer, width, color=True)] == lines
            found += [f"== {name}, {width} columns", *lines]
        assert drawn(answer, None) == drawn(answer, 200) == drawn(answer, 80)
    assert_golden(Path(__file__).with_name("golden") / f"{verb}.txt", "\n".join(found) + "\n")


@pytest.mark.parametrize(
    ("verb", "name"),
    [("layout", "some shards"), ("eval", "hangs"), ("simulate", "hues"), ("quality", "what if")],
)
def test_svg_files_are_those_on_file(verb: str, name: str) -> None:
    text = "".join(svg_file(pictures_of(ANSWERS[verb][name]()))).replace(STYLE, "")
    text = re.sub(r"(?=<(?:rect|text|path|g) )", "\n", text)
    assert_golden(Path(__file__).with_name("golden") / f"{verb}.svg", text)


@pytest.mark.parametrize(
    ("verb", "name", "table"),
    [
        ("eval", "hangs", eval_table),
        ("simulate", "hues", simulate_table),
        ("loaders", "all", loaders_table),
    ],
)
def test_a_table_has_them_where_the_screen_shows_pictures(verb: str, name: str, table: Any) -> None:
    answer = ANSWERS[verb][name]()
    pictures = "\n".join(drawn(answer))
    assert pictures in "".join(table(answer, Screen(width=80, pictures=True)))
    assert pictures not in "".join(table(answer, Screen(width=80)))
    assert not re.search("[█─]", "".join(table(answer, PLAIN)))


LAYOUTS = st.lists(splits(), min_size=1, max_size=3).map(
    lambda found: laid_out(
        *(
            Split(name=f"{'長い' * n}{n}", shard_lengths=split.shard_lengths)
            for n, split in enumerate(found)
        )
    )
)
ANY = st.one_of(plans(NUMS_HOSTS), LAYOUTS, evaluations(), simulations())


def check_fits(case: tuple[object, int]) -> None:
    """No line leaves a sheet or a screen, colours change no character, and the file is XML."""
    answer, width = case
    pictures = pictures_of(answer)
    assert all(one.title and one.caption for one in pictures)
    ElementTree.fromstring("".join(svg_file(pictures)).encode())
    for mark in (mark for one in pictures for mark in one.marks):
        for line in lines_of(mark, SHEET.width):
            assert display_width("".join(span.text for span in line).rstrip()) <= SHEET.width
    lines = drawn(answer, width)
    assert max(map(display_width, lines)) <= min(width, 80)
    assert [without_codes(line) for line in drawn(answer, width, color=True)] == lines


@few_or_many(20, 200)
def test_no_line_leaves_its_paper(num_cases: int) -> None:
    check_cases(st.tuples(ANY, st.integers(45, 120)), check_fits, num_cases)


@few_or_many(30, 120)
def test_a_picture_names_the_shards_that_are_read(num_cases: int) -> None:
    def check(simulation: Simulation) -> None:
        order, start = simulation.order, simulation.skip
        head, *lines = drawn(simulation, 77)
        if not simulation.take or order.codes.several_splits:
            return
        while not lines[0].lstrip().startswith("position"):
            head = f"{head} {lines.pop(0)}"
        last = int(re.findall(r"Positions \d+ to (\d+),", head)[0])
        read = order.codes.places(order.read(start, last + 1))[1].tolist()
        named: list[tuple[int, int]] = []
        for line in lines[1:]:
            position, *blocks = line.split()
            assert int(position) == start + sum(count for _, count in named) or "\u00d7" not in head
            named += [(int(s), int(n or 1)) for s, _, n in (b.partition("\u00d7") for b in blocks)]
        if "\u00d7" in head:
            assert [shard for shard, count in named for _ in range(count)] == read
        else:  # a block of a slot each
            assert [key for key, _ in groupby(shard for shard, _ in named)] == [
                key for key, _ in groupby(read)
            ]

    check_cases(simulations(), check, num_cases)


# Marks: bars by hand, heat maps of known orders, numbers below their places.


def bars(labels: list[str], series: list[Series], width: int) -> list[str]:
    lines = bar_lines("host", labels, series, Paper(width=width))
    return ["".join(span.text for span in line).rstrip() for line in lines]


def test_a_bar_is_full_to_the_least_and_shaded_to_the_most() -> None:
    assert_evaluated(globals(), "bars", drawn_bar)
    assert drawn_bar(0, 0, 0, 10) == ""


def test_series_that_have_no_room_are_left_out_and_follow_below_on_a_sheet() -> None:
    series = [Series(name, [Bar(10**6, 10**6, "1,000,000")]) for name in ("a", "b", "c")]
    headings = [bars(["0"], series, width)[0].split() for width in (80, 60, 40, 20)]
    assert headings == [["host", "a", "b", "c"], ["host", "a", "b"], *[["host", "a"]] * 2]
    assert len(list(bar_lines("host", ["0"], series, SHEET))) == 4


VALUES = st.one_of(st.just(0), st.integers(0, 10), st.integers(0, 2**40), st.floats(0, 1e9))
BARS = st.builds(
    lambda ends, word: Bar(min(ends), max(ends), f"{min(ends):.3g}–{max(ends):.3g}", word),
    st.tuples(VALUES, VALUES),
    st.sampled_from(("", "most", "9 idle")),
)


@few_or_many(60, 500)
def test_no_bar_is_wider_than_the_paper(num_cases: int) -> None:
    def check(case: tuple[list[list[Bar]], int]) -> None:
        rows, width = case
        series = [Series("examples", found) for found in zip(*rows, strict=False)]
        labels = [f"{number}–{number * 99_999}" for number in range(len(rows))]
        lines = bars(labels, series, width)
        assert max(map(display_width, lines)) <= width
        for bar, line in zip(series[0].bars, lines[1:], strict=True):
            assert bar.word in line
            assert bar.text in line

    rows = st.lists(st.lists(BARS, min_size=3, max_size=3), min_size=1, max_size=20)
    check_cases(st.tuples(rows, st.integers(45, 120)), check, num_cases)


def heat(ranks: np.ndarray) -> Heat:
    """Return the map of one rank a position, in 48 rows and 96 columns."""
    at = (ranks * 48 // len(ranks)) * 96 + np.arange(len(ranks)) * 96 // len(ranks)
    counts = np.bincount(at, minlength=48 * 96).reshape(48, 96)
    return Heat(counts=counts, below=f"position {len(ranks) - 1}")


def test_the_order_of_storage_is_a_diagonal_and_nothing_else() -> None:
    found = heat(np.arange(96_000))
    levels = found.levels(48, 96)
    down, right = np.nonzero(levels)
    assert np.array_equal(down, right // 2)
    assert not found.is_even
    assert np.array_equal(heat(np.arange(96_000)[::-1]).levels(48, 96), levels[::-1])


@pytest.mark.parametrize("size", [100, 3_000, 200_000])
def test_a_uniform_permutation_is_an_even_grey(size: int) -> None:
    found = heat(np.random.default_rng(3).permutation(size))
    assert found.is_even
    lines = ["".join(span.text for span in line) for line in lines_of(found, 80)]
    text = "".join(line.partition("│")[2] for line in lines[:-1])
    assert text.count("░") > 0.6 * len(text)
    assert not set(text) & set(" ▓█")


def test_two_halves_that_are_mixed_by_themselves_are_two_patches() -> None:
    rng, n = np.random.default_rng(4), 100_000
    levels = heat(np.concatenate([rng.permutation(n), n + rng.permutation(n)])).levels(48, 96)
    assert not levels[:24, 48:].any()
    assert not levels[24:, :48].any()
    assert (levels[:24, :48] > EVEN).mean() > 0.9


# SVG: well-formed whatever names are, says what the marks say, and is small.

_SVG = "{http://www.w3.org/2000/svg}"


def parsed(*pictures: Picture) -> ElementTree.Element:
    text = "".join(svg_file(pictures))
    return ElementTree.fromstring(text.encode())  # which no lone surrogate can be


def every_mark(text: str) -> Picture:
    return picture(
        words(text),
        (Span(text, slot=9), Span("█▌", "warning"), Span("░░", ""), Span(text, "bold")),
        Heat(counts=np.eye(3, dtype=np.int64), below="3"),
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
    named = {element.get("id"): element.text for element in root.iter() if element.get("id")}
    assert named[root.get("aria-labelledby")] == "a; b"
    assert named[root.get("aria-describedby")] == "a b"
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert float(root.attrib["width"]) / width == float(root.attrib["height"]) / height
    assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text)
    style = root.findtext(f"{_SVG}style") or ""
    for name in re.findall(r'(?<= class=")[^"]*(?=")', text.replace(" ", "", 0)):
        assert all(one == "picture" or f".picture .{one}{{" in style for one in name.split()), name
    assert not list(parsed().iter(f"{_SVG}text"))


@pytest.mark.parametrize("verb", ANSWERS)
def test_each_picture_is_described_by_one_plain_sentence(verb: str) -> None:
    for made in ANSWERS[verb].values():
        for one in pictures_of(made()):
            assert re.fullmatch(r"[^█▏─•]+\.", one.said)
            assert len(one.said.split()) <= 25 or one.warnings
            assert parsed(one).findtext(f"{_SVG}desc") == one.said


def test_blocks_are_as_wide_as_they_are() -> None:
    spans = (Span("ab "), Span("██▌"), Span(" "), Span("█", "warning"), Span("░"))
    boxes = re.findall(
        r'<rect class="(\w+)" x="([\d.]+)" y="2" width="([\d.]+)"', svg_element(picture(spans))
    )
    assert boxes == [("data", "24", "20"), ("alarm", "56", "8"), ("padding", "64", "8")]


@few_or_many(30, 120)
def test_a_heat_map_is_its_levels(num_cases: int) -> None:
    """The runs of each path are painted into an array as an SVG viewer paints them."""

    def check(counts: list[list[int]]) -> None:
        heat = Heat(counts=np.array(counts, dtype=np.int64), below="9")
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
