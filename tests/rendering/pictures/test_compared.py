"""Pictures of two orders: every position is in them once, and labels stay in the frame."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.planning.diff.diff import OrderDifference
from shardctl.planning.quality.quality import quality
from shardctl.planning.report.compare import BlockRun, BlockState
from shardctl.rendering.pictures.compared import parting_picture, scores_picture
from shardctl.rendering.pictures.picture import Box, Label, Line, Picture
from tests.rendering.pictures.drawn import check_labels

ENDED: BlockState = "one has ended"


def runs(*parts: tuple[int, BlockState]) -> list[BlockRun]:
    """Return runs of so many positions each."""
    found, start = [], 0
    for length, state in parts:
        found.append(BlockRun(start=start, stop=start + length, state=state))
        start += length
    return found


def first(position: int, stop: int | None = None) -> OrderDifference:
    stop = position + 1 if stop is None else stop
    return OrderDifference(position=position, stop=stop, expected=1, actual=2)


def blocks(picture: Picture) -> list[Box]:
    """Return the boxes of the strip, which have titles; those of the legend have none."""
    return [mark for mark in picture.marks if isinstance(mark, Box) and mark.title]


def test_blocks_are_as_long_as_they_are_and_as_high_as_their_state() -> None:
    picture = parting_picture(
        runs((4096, "same"), (8192, "moved"), (4096, ENDED)), first(5000), longer="B"
    )
    low, high, middle = blocks(picture)
    assert high.width == pytest.approx(2 * low.width)
    assert middle.width == pytest.approx(low.width)
    assert low.height < middle.height < high.height
    assert len({low.role, high.role, middle.role}) == 3
    assert [box.title for box in (low, high, middle)] == [
        "positions 0 to 4,095: the same examples (low)",
        "positions 4,096 to 12,287: other examples (high)",
        "positions 12,288 to 16,383: only B goes on (middle)",
    ]
    assert picture.numbers.rows == [
        (0, 4095, "the same examples (low)"),
        (4096, 12_287, "other examples (high)"),
        (12_288, 16_383, "only B goes on (middle)"),
    ]
    assert picture.note is None
    assert "25.0%" in picture.alternative
    assert "They first differ at position 5,000." in picture.alternative
    check_labels(picture.marks, picture.height)


@pytest.mark.parametrize("position", [0, 1, 500_000, 999_999])
def test_the_first_difference_is_named_where_it_is(position: int) -> None:
    picture = parting_picture(runs((1_000_000, "moved")), first(position))
    (label,) = (mark for mark in picture.marks if isinstance(mark, Label) and "first" in mark.text)
    assert label.text == f"first difference at {position:,}"
    (box,) = blocks(picture)
    lines = [mark for mark in picture.marks if isinstance(mark, Line)]
    at = box.x + box.width * position / 1_000_000
    assert any(line.points[0][0] == pytest.approx(at) for line in lines)
    check_labels(picture.marks, picture.height)


def test_a_place_that_is_known_to_a_block_is_said_so() -> None:
    picture = parting_picture(runs((4096, "same"), (4096, "moved")), first(4096, 8192))
    texts = [mark.text for mark in picture.marks if isinstance(mark, Label)]
    assert "first difference from 4,096 on" in texts


def test_equal_orders_are_one_low_block() -> None:
    picture = parting_picture(runs((70_000, "same")), None)
    assert len(blocks(picture)) == 1
    assert picture.alternative == "All 70,000 positions hold the same examples in both."
    ids = parting_picture(runs((70_000, "same")), None, things="ids")
    assert ids.alternative == "All 70,000 positions hold the same ids in both."


def test_many_runs_are_grouped_without_a_gap_and_by_the_worst_of_them() -> None:
    states: list[tuple[int, BlockState]] = [(4096, ("same", "moved")[i % 2]) for i in range(1000)]
    picture = parting_picture(runs(*states, (900_000, "same")), first(4096))
    boxes = blocks(picture)
    assert len(boxes) <= 160
    for one, following in pairwise(boxes):
        assert one.x + one.width == pytest.approx(following.x)
    rows: list[Any] = list(picture.numbers.rows)
    assert [row[0] for row in rows[1:]] == [row[1] + 1 for row in rows[:-1]]
    assert "high" in str(rows[0][2])
    assert "low" in str(rows[-1][2])
    assert picture.note is not None


def toy(*lengths: int) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="train", shard_lengths=lengths),))


def test_scores_are_two_stairs_of_the_parts_of_quality() -> None:
    one = quality(toy(400, 400), "train", {"batch": 8}, what_if=False)
    other = quality(toy(400, 400), "train", {"buffer": 800, "batch": 8}, what_if=False)
    picture = scores_picture(one, other)
    stairs = [mark for mark in picture.marks if isinstance(mark, Line) and len(mark.points) > 4]
    by_role = {line.role: line for line in stairs}
    assert not by_role["data"].dashed
    assert by_role["other"].dashed
    heights = [y for _, y in by_role["data"].points]
    other_heights = [y for _, y in by_role["other"].points]
    assert len(heights) == 2 * len(one.by_position)
    assert max(other_heights) < min(heights)  # better is higher, and y grows downwards
    told = [row for row in picture.numbers.rows if row[0] == "B"]
    assert [row[3] for row in told] == [round(p.score.value, 4) for p in other.by_position]
    check_labels(picture.marks, picture.height)


def test_names_of_lines_that_end_together_are_apart() -> None:
    one = quality(toy(40, 40), "train", {"batch": 8}, what_if=False)
    picture = scores_picture(one, one)
    ends = [mark for mark in picture.marks if isinstance(mark, Label) and mark.bold]
    assert [label.text for label in ends] == ["A", "B"]
    assert abs(ends[0].y - ends[1].y) >= 14
    check_labels(picture.marks, picture.height)
