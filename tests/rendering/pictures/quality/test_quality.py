"""Pictures of the quality of an order."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import shardctl
from shardctl.core.hosts.host import Host
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.quality.quality import quality
from shardctl.rendering.pictures.picture import WIDTH, Band, Box, Cells, Line, Picture, Spot
from shardctl.rendering.pictures.shuffling import (
    quality_pictures,
    score_picture,
)
from shardctl.rendering.pictures.svg import svg_file
from tests.cases import check_cases, few_or_many, in_this_run
from tests.planning.quality.quality_orders import even_dataset, quality_alone
from tests.rendering.pictures.drawn import check_labels


def _check(picture: Picture) -> None:
    """Assert that everything is within the frame and labels are apart, and that words are there."""
    check_labels(picture.marks, picture.height)
    for mark in picture.marks:
        if isinstance(mark, Box | Spot):
            assert mark.width >= 0
            assert mark.height >= 0
            assert -1e-6 <= mark.x <= mark.x + mark.width <= WIDTH + 1e-6
            assert -1e-6 <= mark.y <= mark.y + mark.height <= picture.height + 1e-6
        elif isinstance(mark, Cells):
            height, width = mark.levels.shape
            assert mark.x + width * mark.cell_width <= WIDTH + 1e-6
            assert mark.y + height * mark.cell_height <= picture.height + 1e-6
        elif isinstance(mark, Line | Band):
            for x, y in mark.points:
                assert -1e-6 <= x <= WIDTH + 1e-6
                assert -1e-6 <= y <= picture.height + 1e-6
    assert picture.alternative.endswith(".")
    assert picture.caption.endswith(".")
    assert len(picture.numbers.rows) <= 100
    for row in picture.numbers.rows:
        assert len(row) == len(picture.numbers.headings)


def _line(picture: Picture, role: str) -> Line:
    """Return the longest line of a role, which is not that of the key."""
    lines = [mark for mark in picture.marks if isinstance(mark, Line) and mark.role == role]
    return max(lines, key=lambda line: len(line.points))


def test_the_score_is_as_high_as_each_part_has_it() -> None:
    plan = quality_alone(even_dataset(20_000, 40), ReadSettings(buffer=5000, buffer_seed=2))
    picture = score_picture(plan)
    axis = next(m for m in picture.marks if isinstance(m, Line) and len(m.points) == 3)
    (left, top), (_, bottom), (right, _) = axis.points
    values = [part.score.value for part in plan.by_position]
    steps = _line(picture, "data").points
    assert [y for _, y in steps[::2]] == pytest.approx(
        [bottom - value * (bottom - top) for value in values]
    )
    assert [x for x, _ in steps[::2]] == pytest.approx(
        [left + (right - left) * part.start / 20_000 for part in plan.by_position]
    )
    expected = plan.by_position[0].score.expected
    assert _line(picture, "uniform").points[0][1] == pytest.approx(
        bottom - expected * (bottom - top)
    )


def test_the_band_is_two_spreads_around_what_is_expected() -> None:
    plan = quality_alone(even_dataset(2000, 4), ReadSettings(buffer=2000, buffer_seed=2))
    picture = score_picture(plan)
    band = next(mark for mark in picture.marks if isinstance(mark, Band))
    axis = next(m for m in picture.marks if isinstance(m, Line) and len(m.points) == 3)
    (_, top), (_, bottom), _ = axis.points
    score = plan.by_position[0].score
    assert band.points[0][1] == pytest.approx(
        bottom - min(1, score.expected + 2 * score.spread) * (bottom - top)
    )
    assert band.points[-1][1] == pytest.approx(
        bottom - (score.expected - 2 * score.spread) * (bottom - top)
    )


def test_the_numbers_of_the_score_are_those_of_the_parts_and_the_end() -> None:
    plan = quality_alone(even_dataset(20_000, 40), ReadSettings(shuffle_seed=1))
    assert plan.tail is not None
    rows = score_picture(plan).numbers.rows
    parts = [*plan.by_position, plan.tail]
    assert [row[:2] for row in rows] == [(part.start, part.stop - 1) for part in parts]
    assert [row[2] for row in rows] == [f"{part.score.value:.4f}" for part in parts]
    assert [row[3] for row in rows] == [f"{part.score.expected:.4f}" for part in parts]
    text = score_picture(plan).alternative
    assert f"the order scores {plan.score.value:.4f} ({plan.verdict})" in text
    assert f"a uniform permutation {plan.score.expected:.4f}" in text
    assert f"The last {plan.tail.stop - plan.tail.start} examples score" in text


def test_four_shards_read_side_by_side_do_not_look_shuffled() -> None:
    # As shards all four feed every part alike; within each the order is that of storage.
    picture = quality_pictures(quality_alone(even_dataset(96_000, 4), ReadSettings()))[0]
    cells = [mark for mark in picture.marks if isinstance(mark, Cells)][-1].levels
    assert cells.shape == (48, 96)
    for shard in range(4):
        rows = cells[12 * shard : 12 * shard + 12]
        for column in range(96):
            row = column // 8
            there = np.flatnonzero(rows[:, column])
            assert row in there
            assert abs(there - row).max() <= 1
    assert "Of 48 parts of shards" in picture.alternative
    assert picture.numbers.rows[13][0] == "1 (2 of 12)"


def test_parts_of_few_shards_are_counted_one_by_one() -> None:
    settings = ReadSettings(buffer=300, buffer_seed=3, cycle=2, block=3)
    plan = quality_alone(even_dataset(1003, 5), settings)
    numbers = quality_pictures(plan)[0].numbers
    codes = plan.order.read(0, 1003).tolist()
    sizes = [201, 200, 201, 200, 201]
    lengths = list(plan.order.dataset.splits[0].shard_lengths)
    assert sorted(lengths) == sorted(sizes)
    counts: dict[tuple[int, int], int] = {}
    for code in codes:
        shard, first = 0, 0
        while code >= first + lengths[shard]:
            first += lengths[shard]
            shard += 1
        piece = (code - first) * 9 // lengths[shard]  # 48 rows are 9 for each of five shards
        counts[shard, piece] = counts.get((shard, piece), 0) + 1
    assert [sum(row[2:]) for row in numbers.rows] == [  # type: ignore[arg-type]
        counts[shard, piece] for shard in range(5) for piece in range(9)
    ]


def test_parts_of_few_shards_are_counted_where_they_come() -> None:
    plan = quality_alone(even_dataset(100, 2), ReadSettings(cycle=1))
    numbers = quality_pictures(plan)[0].numbers
    assert numbers.headings[2:4] == ("0–11", "12–24")
    for number, heading in enumerate(numbers.headings[2:], start=2):
        start, last = map(int, heading.split("–"))
        # In the order of storage the example at position p is that of id p: of 50 in a shard, the
        # id i is in part i * 24 // 50, of 24 that each shard has.
        parts = [24 * (code // 50) + code % 50 * 24 // 50 for code in range(start, last + 1)]
        assert [row[number] for row in numbers.rows] == [parts.count(part) for part in range(48)]


_SETTINGS: list[dict[str, Any]] = [
    {},
    {"shuffle_seed": 1},
    {"buffer": 50, "buffer_seed": 1},
    {"batch": 64, "drop_remainder": True},
    {"shuffle_seed": 1, "cycle": 1, "block": 1, "epochs": 2},
    {"loader": "torch", "shuffle_seed": 3},
    {"loader": "hf", "streaming": True, "shuffle_seed": 3, "buffer": 10},
]


@few_or_many(20, 60)
def test_marks_stay_within_the_frame_and_labels_apart_whatever_is_measured(num_cases: int) -> None:
    cases = st.tuples(
        st.sampled_from([2, 3, 10, 97, 1000, 5000]),
        st.integers(1, 60),
        st.sampled_from(_SETTINGS),
        st.sampled_from([None, 2, 3]),
        st.booleans(),
    )

    def check(case: tuple[int, int, dict[str, Any], int | None, bool]) -> int:
        n, shards, some, hosts, what_if = case
        if n < 1000:  # of which no host, and no whole batch, has two examples for sure
            some = {} if "batch" in some else some
            hosts = None
        elif "loader" in some:
            hosts = None
        settings = ReadSettings(**some, host=None if hosts is None else Host(index=1, count=hosts))
        plan = quality(even_dataset(n, min(n, shards)), "train", settings, what_if=what_if)
        for picture in quality_pictures(plan):
            _check(picture)
        return 1

    assert check_cases(cases, check, num_cases) >= in_this_run(num_cases)


@pytest.mark.parametrize("spec", ["train+test", "train[10:20]", "test[:2]"])
def test_several_splits_and_parts_of_them(spec: str) -> None:
    plan = quality("mnist", spec, {"buffer": 100, "buffer_seed": 1})
    for picture in quality_pictures(plan):
        _check(picture)


def test_stages_are_drawn_as_settings_are() -> None:
    plan = quality("mnist", "test", {"stages": "shuffle(1000, seed=1) | batch(32)"})
    found = quality_pictures(plan)
    for picture in found:
        _check(picture)
    assert found[0].name == "shard-map"


def test_without_alternatives_there_is_no_picture_of_them() -> None:
    plan = quality_alone(even_dataset(1000, 10), ReadSettings())
    assert [picture.name for picture in quality_pictures(plan)] == ["shard-map", "score"]


@pytest.mark.long
def test_long_epochs_say_that_they_are_sampled_and_take_no_time() -> None:
    dataset = even_dataset(10**11, 100_000)
    plan = quality_alone(dataset, ReadSettings(shuffle_seed=1, buffer=10_000, buffer_seed=2))
    begin = time.monotonic()
    found = quality_pictures(plan)
    assert time.monotonic() - begin < 10
    for picture in found:
        _check(picture)
        assert picture.note is not None
        assert "drawn at random" in picture.note
    assert len("".join(svg_file([found[0]]))) < 40 * 1024


@pytest.mark.long
def test_svg_of_one_picture_is_small() -> None:
    plan = shardctl.quality(
        "imagenet2012", "train", {"shuffle_seed": 1, "buffer": 60_000, "buffer_seed": 2}
    )
    sizes = [len("".join(svg_file([picture])).encode()) for picture in quality_pictures(plan)]
    assert max(sizes) < 40 * 1024


@pytest.mark.long
def test_what_looks_even_from_afar_and_is_not_is_said() -> None:
    dataset = even_dataset(10**11, 100_000)
    weak = quality_alone(dataset, ReadSettings(shuffle_seed=1, buffer=100_000, buffer_seed=1))
    picture = quality_pictures(weak)[0]
    for text in (picture.note, picture.alternative):
        assert text is not None
        assert "near by this order is weak" in text
    _check(picture)
    for settings in (ReadSettings(), ReadSettings(buffer=60_000, buffer_seed=1)):
        plan = quality_alone(even_dataset(60_000, 60), settings)
        assert "from afar" not in quality_pictures(plan)[0].alternative


def test_parts_of_shards_of_any_size_are_alike_large() -> None:
    plan = quality_alone(even_dataset(9 * 10**18, 7), ReadSettings(cycle=1))
    rows = quality_pictures(plan)[0].numbers.rows
    assert [row[1] for row in rows] == ["0.0238"] * 42  # six parts of each shard
    counts = [sum(row[2:]) for row in rows]  # type: ignore[arg-type]
    assert sum(counts) == plan.sampled.num_examples  # type: ignore[union-attr]
    # Stretches lie evenly over the order of storage, and each is in one part or two.
    assert max(counts) - min(counts) <= 2 * plan.sampled.stretch  # type: ignore[union-attr]


@pytest.mark.parametrize(("num_examples", "num_shards", "names"), [(2, 1, 2), (3, 3, 3), (7, 2, 8)])
def test_shards_have_no_more_parts_than_examples(
    num_examples: int, num_shards: int, names: int
) -> None:
    plan = quality_alone(even_dataset(num_examples, num_shards), ReadSettings())
    picture = quality_pictures(plan)[0]
    _check(picture)
    assert len(picture.numbers.rows) == names
    drawn = [mark for mark in picture.marks if isinstance(mark, Cells)][-1].levels
    assert np.count_nonzero(drawn) == num_examples  # each example in a cell of its own
