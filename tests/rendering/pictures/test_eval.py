"""The steps of an evaluation as a picture: what stands where, by hand and at random."""

from __future__ import annotations

from typing import Any

import pytest

from shardctl.planning.eval.eval import Evaluation, evaluate
from shardctl.rendering.pictures.eval import eval_pictures
from shardctl.rendering.pictures.picture import WIDTH, Box, Label, Line, Picture
from shardctl.rendering.pictures.svg import svg_file
from tests.cases import check_cases, few_or_many
from tests.rendering.pictured import dataset, evaluations
from tests.rendering.pictures.drawn import check_labels


def odd(**options: Any) -> Evaluation:
    """Return the evaluation on Flax's page that hangs, or a variant of it."""
    return evaluate(
        dataset(4097, name="test"), **{"batch": 64, "hosts": 8, "devices": 8, **options}
    )


def drawn(evaluation: Evaluation) -> Picture:
    (picture,) = eval_pictures(evaluation)
    return picture


def titled(picture: Picture) -> list[Box]:
    """Return the boxes that are parts of rows: those of the key have no title."""
    return [mark for mark in picture.marks if isinstance(mark, Box) and mark.title]


def texts(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Label)]


def test_the_host_that_waits_has_a_row_that_is_a_step_longer() -> None:
    picture = drawn(odd())
    full = [box for box in titled(picture) if box.role == "data"]
    assert [box.title for box in full] == ["1 batch of 512 examples"] * 8
    assert len({(box.x, box.width) for box in full}) == 1
    # The second step of host 0 is pale, and what is in it, 1 of 512, can still be seen.
    (step,) = [box for box in titled(picture) if box.role == "grid"]
    (partial,) = [box for box in titled(picture) if box.role == "other"]
    assert step.x == partial.x == pytest.approx(full[0].x + full[0].width)
    assert step.width == pytest.approx(full[0].width)
    assert 2 <= partial.width < 10
    assert step.y == partial.y == full[0].y
    assert partial.title == "1 batch not full, with 1 example in place of 512 examples"


def test_the_step_that_hangs_has_a_line_and_words_and_each_host_says_what_it_does() -> None:
    picture = drawn(odd())
    (line,) = [m for m in picture.marks if isinstance(m, Line) and m.role == "alarm"]
    full = next(box for box in titled(picture) if box.role == "data")
    assert [x for x, _ in line.points] == pytest.approx([full.x + full.width] * 2)
    assert "hangs at step 1" in texts(picture)
    words = [text for text in texts(picture) if text.startswith(("waits", "done"))]
    assert words == ["waits 2", *["done 1"] * 7]
    assert "host 0 waits there for 7 hosts that are done after 1 step" in picture.alternative


def test_padding_fills_the_rest_of_a_step_and_whole_ones() -> None:
    picture = drawn(odd(remainder="pad"))
    padding = [box for box in titled(picture) if box.role == "padding"]
    assert padding[0].title == (
        "511 examples of padding beside others, then 0 batches of padding alone"
    )
    assert padding[1].title == (
        "0 examples of padding beside others, then 1 batch of padding alone"
    )
    ends = {round(box.x + box.width, 6) for box in padding}
    assert len(padding) == 8
    assert len(ends) == 1
    assert not [m for m in picture.marks if isinstance(m, Line) and m.role == "alarm"]
    assert not [text for text in texts(picture) if "hangs" in text]


def test_what_is_dropped_is_lost_and_makes_no_step() -> None:
    picture = drawn(odd(remainder="drop"))
    (lost,) = [box for box in titled(picture) if box.role == "alarm"]
    assert lost.title == "1 example lost"
    assert "1 example lost" in picture.alternative
    assert "lost" in texts(picture)


def test_the_table_has_the_columns_of_the_evaluation_and_all_ways() -> None:
    evaluation = odd(hosts=3, devices=1, batch=64, remainder="drop")
    numbers = drawn(evaluation).numbers
    assert numbers.headings == (
        *("hosts", "examples", "full batches", "not full"),
        *("remainder", "padding", "padding batches"),
        *("steps left ragged", "steps dropped (as set up)", "steps padded"),
    )
    # 4097 = 1366 + 1366 + 1365 = 21 * 64 + 22, .. + 22, .. + 21
    assert [tuple(row) for row in numbers.rows] == [
        ("0", 1366, 21, 1, 22, 42, 0, 22, 21, 22),
        ("1", 1366, 21, 1, 22, 42, 0, 22, 21, 22),
        ("2", 1365, 21, 1, 21, 43, 0, 22, 21, 22),
    ]


def test_many_hosts_are_groups_and_a_note_says_so() -> None:
    picture = drawn(evaluate(dataset(100_001, name="test"), batch=1, hosts=100_000))
    assert [row[:2] for row in picture.numbers.rows] == [("0", 2), ("1–99,999", 1)]
    assert picture.note is not None
    assert "100,000 hosts in 2 groups" in picture.note
    assert len(titled(picture)) == 2


def test_of_many_steps_the_first_are_folded_so_that_the_end_is_seen() -> None:
    picture = drawn(evaluate(dataset(1_000_001, name="test"), batch=1, hosts=2))
    assert picture.note is not None
    assert "are drawn narrower" in picture.note
    first, second = (
        max(box.x + box.width for box in titled(picture) if box.y == y)
        for y in sorted({box.y for box in titled(picture)})
    )
    # Host 0 makes 500,001 steps, host 1 one less: that one is wide enough to be seen.
    assert first - second > 5


@pytest.mark.parametrize("hosts", [1, 3])
def test_where_nothing_is_evaluated_rows_are_empty(hosts: int) -> None:
    evaluation = evaluate(dataset(0, 0, name="test"), batch=8, hosts=hosts)
    picture = drawn(evaluation)
    assert titled(picture) == []
    assert picture.alternative == "There is nothing to evaluate."
    assert len(picture.numbers.rows) == hosts


@few_or_many(20, 80)
def test_labels_never_meet_marks_stay_in_the_frame_and_the_table_is_true(num_cases: int) -> None:
    def check(evaluation: Evaluation) -> None:
        picture = drawn(evaluation)
        check_labels(picture.marks, picture.height)
        for box in (mark for mark in picture.marks if isinstance(mark, Box)):
            assert box.x >= 0
            assert box.x + box.width <= WIDTH + 3
            assert 0 <= box.y <= box.y + box.height <= picture.height
            assert box.width >= 0
        assert len(picture.numbers.rows) <= 24
        if evaluation.num_hosts <= 24:
            columns = list(zip(*picture.numbers.rows, strict=True))
            assert list(columns[1]) == evaluation.num_examples.tolist()
            assert list(columns[4]) == evaluation.remainders.tolist()
            assert list(columns[5]) == evaluation.padding.tolist()
            assert list(columns[6]) == evaluation.padding_batches.tolist()
        hangs = evaluation.hang(evaluation.remainder) is not None
        assert any("hangs at" in text for text in texts(picture)) == hangs
        assert len("".join(svg_file([picture])).encode()) < 40 * 1024

    check_cases(evaluations(), check, num_cases)
