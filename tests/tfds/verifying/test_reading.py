"""Passes over what TensorFlow hands out: how they are cut, and what is said where it gives up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shardctl.base.progress import Progress
from shardctl.errors import DatasetError, UsageError
from shardctl.tfds.verifying.real_files import (
    Pass,
    Reading,
    iterate_whole,
    reason_of,
    said_by_tensorflow,
)


def reading(elements: Any) -> Reading:
    return Reading(elements=elements, codes_of=np.atleast_1d)


@pytest.mark.parametrize(
    ("size", "stop", "pieces"),
    [
        (1, None, [[0], [1], [2], [3], [4]]),
        (2, None, [[0, 1], [2, 3], [4]]),
        (9, None, [[0, 1, 2, 3, 4]]),
        (2, 3, [[0, 1], [2]]),
        (2, 4, [[0, 1], [2, 3]]),
        (2, 99, [[0, 1], [2, 3], [4]]),
    ],
)
def test_single_examples_are_taken_so_many_at_a_time_up_to_the_stop(
    tf: Any, size: int, stop: int | None, pieces: list[list[int]]
) -> None:
    read = Pass(reading(tf.data.Dataset.range(5)), size=size, stop=stop)
    assert [piece.tolist() for piece in read] == pieces
    assert read.num_done == sum(map(len, pieces))
    assert read.reason is None


def test_a_batch_is_cut_at_the_stop(tf: Any) -> None:
    read = Pass(reading(tf.data.Dataset.range(9).batch(4)), size=1, stop=6)
    assert [piece.tolist() for piece in read] == [[0, 1, 2, 3], [4, 5]]


def test_what_is_read_is_told_piece_by_piece(tf: Any) -> None:
    told: list[tuple[str, int, int]] = []
    progress = Progress(lambda *report: told.append(report), "examples", 5)
    list(Pass(reading(tf.data.Dataset.range(5)), size=2, stop=None, progress=progress))
    assert told == [("examples", done, 5) for done in (2, 4, 5)]


def failing_at(tf: Any, place: int) -> Any:
    """Return a range that TensorFlow fails to read from a place on."""

    def element(number: Any) -> Any:
        last = tf.constant(place - 1, tf.int64)
        with tf.control_dependencies([tf.debugging.assert_less_equal(number, last, "no record")]):
            return tf.identity(number)

    return tf.data.Dataset.range(9).map(element)


def test_a_pass_ends_where_tensorflow_gives_up_and_keeps_the_reason(tf: Any) -> None:
    read = Pass(reading(failing_at(tf, place=4)), size=1, stop=None)
    assert [piece.tolist() for piece in read] == [[0], [1], [2], [3]]
    assert read.num_done == 4
    assert "no record" in (read.reason or "")
    # With many at a time a whole batch is lost.
    read = Pass(reading(failing_at(tf, place=4)), size=3, stop=None)
    assert [piece.tolist() for piece in read] == [[0, 1, 2]]
    assert read.reason


def test_iterating_uses_up_the_seeds_of_so_many_passes(tf: Any) -> None:
    def shuffled() -> Any:
        return tf.data.Dataset.range(30).shuffle(30, seed=1, reshuffle_each_iteration=True)

    one_by_one = shuffled()
    passes = [[int(x) for x in one_by_one] for _ in range(3)]
    used = shuffled()
    iterate_whole(reading(used), 2)
    assert [int(x) for x in used] == passes[2] != passes[0]


def test_iterating_over_what_fails_goes_as_far_as_it_goes(tf: Any) -> None:
    iterate_whole(reading(failing_at(tf, place=4)), 2)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no such file\nin node 3", "no such file"),
        ("{{function_node __wrapped__X}} {{node Y}} corrupted record at 12", "corrupted record at"),
        ("truncated record [Op:IteratorGetNext] name: ", "truncated record"),
        ("truncated record [Op:IteratorGetNext]", "truncated record"),
        ("x" * 999, "x" * 200),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("", "ValueError"),
    ],
)
def test_a_reason_is_the_first_line_without_the_names_of_nodes(text: str, reason: str) -> None:
    found = reason_of(ValueError(text))
    assert found.startswith(reason)
    assert len(found) <= 300
    assert "Op:" not in found
    assert found.isprintable()


def test_what_tensorflow_raises_while_a_pipeline_is_built_becomes_a_line() -> None:
    with (
        pytest.raises(DatasetError, match=r"^TFDS cannot open it: broken$"),
        said_by_tensorflow("TFDS cannot open it"),
    ):
        raise RuntimeError("broken\nat line 7")


def test_our_own_errors_are_left_as_they_are() -> None:
    with pytest.raises(UsageError, match=r"^no split$"), said_by_tensorflow("TFDS refuses it"):
        raise UsageError("no split")
