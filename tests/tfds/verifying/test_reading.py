"""Passes over what TensorFlow hands out, and where they differ from what is predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shardctl.base.progress import Progress
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError, UsageError
from shardctl.order.example_codes import ExampleCodes
from shardctl.stages.text import parse_stages
from shardctl.tfds.training.pipeline import StageCalls
from shardctl.tfds.verifying.real_files import (
    BATCH_SIZE,
    Pass,
    Reading,
    fitted_epoch,
    flattened,
    iterate_whole,
    reason_of,
    said_by_tensorflow,
    shape_of,
)
from shardctl.tfds.verifying.verify import difference
from shardctl.verbs.verify.answer import Window


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
    told: list[tuple[str, int, int]] = []
    progress = Progress("examples", 5, watch=lambda *report: told.append(report))
    read = Pass(reading=reading(tf.data.Dataset.range(5)), size=size, stop=stop, progress=progress)
    assert [piece.tolist() for piece in read] == pieces
    assert (read.num_done, read.reason) == (sum(map(len, pieces)), None)
    assert [done for _, done, _ in told] == np.cumsum(list(map(len, pieces))).tolist()


def test_a_batch_is_cut_at_the_stop(tf: Any) -> None:
    read = Pass(reading=reading(tf.data.Dataset.range(9).batch(4)), size=1, stop=6)
    assert [piece.tolist() for piece in read] == [[0, 1, 2, 3], [4, 5]]


def failing_at(tf: Any, place: int, numbers: Sequence[int] = range(9)) -> Any:
    """Return numbers that TensorFlow fails to read from a place on."""

    def element(index: Any, number: Any) -> Any:
        last = tf.constant(place - 1, tf.int64)
        with tf.control_dependencies([tf.debugging.assert_less_equal(index, last, "no record")]):
            return tf.identity(number)

    return tf.data.Dataset.from_tensor_slices(np.array(numbers)).enumerate().map(element)


def test_a_pass_ends_where_tensorflow_gives_up_and_keeps_the_reason(tf: Any) -> None:
    # With many at a time a whole batch is lost.
    for size, pieces in ((1, [[0], [1], [2], [3]]), (3, [[0, 1, 2]])):
        read = Pass(reading=reading(failing_at(tf, place=4)), size=size, stop=None)
        assert [piece.tolist() for piece in read] == pieces
        assert read.num_done == sum(map(len, pieces))
        assert "no record" in (read.reason or "")


def test_iterating_uses_up_the_seeds_of_so_many_passes(tf: Any) -> None:
    def shuffled() -> Any:
        return tf.data.Dataset.range(30).shuffle(30, seed=1, reshuffle_each_iteration=True)

    one_by_one, used = shuffled(), shuffled()
    passes = [[int(x) for x in one_by_one] for _ in range(3)]
    iterate_whole(reading(used), 2)
    assert [int(x) for x in used] == passes[2] != passes[0]
    iterate_whole(reading(failing_at(tf, place=4)), 2)  # which goes as far as it goes


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
    with pytest.raises(DatasetError, match=r"^TFDS cannot open it: broken$"):  # noqa: SIM117
        with said_by_tensorflow("TFDS cannot open it"):
            raise RuntimeError("broken\nat line 7")
    with pytest.raises(UsageError, match=r"^no split$"), said_by_tensorflow("TFDS refuses it"):
        raise UsageError("no split")  # our own errors are left as they are


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a | batch(2) | batch(2)", [0, 1, 2, 3]),
        ("zip(a | batch(2), b)", [0, 1, 0, 2, 3, 1]),
        ("zip(a | batch(2), b) | batch(2)", [0, 1, 0, 2, 3, 1]),
        ("zip(a, b) | batch(2) | unbatch", [0, 0, 1, 1, 2, 2, 3, 3]),
        ("sample_from_datasets([a | batch(4)])", [0, 1, 2, 3]),
    ],
)
def test_examples_come_in_the_order_of_the_element(tf: Any, text: str, expected: list[int]) -> None:
    pipeline = parse_stages(text)
    dataset = StageCalls(reader=lambda _: tf.data.Dataset.range(4)).dataset(pipeline)
    elements, shape = dataset.as_numpy_iterator(), shape_of(pipeline)
    found = [example for element in elements for example in flattened(element, shape)]
    assert found[: len(expected)] == expected


def test_an_epoch_of_fit_is_read_by_keras(tf: Any) -> None:
    def made() -> Any:
        pairs = tf.data.Dataset.range(6).map(lambda x: (x, {"y": -x}))
        return pairs.shuffle(6, seed=3).batch(4)

    dataset = made()
    passes = [[batch[0].numpy().tolist() for batch in dataset] for _ in range(3)]
    found = fitted_epoch(made(), 1)
    assert [x.tolist() for x, _ in found] == passes[2]
    assert [labels["y"].tolist() for _, labels in found] == [[-x for x in b] for b in passes[2]]


# A pass beside a prediction: where they differ.

NUMBERS = list(range(1500))


@pytest.mark.parametrize(
    ("found", "expected", "fails_at", "said"),
    [
        # Where TensorFlow gives up, the examples are read again one by one.
        (NUMBERS, NUMBERS, 1101, (1201, 1101, None, "no record", [BATCH_SIZE, 1])),
        # A failure behind the first difference is not its reason; one at the end is a difference.
        ([0, 7, *NUMBERS[2:]], NUMBERS, 1101, (101, 1, 7, None, [BATCH_SIZE])),
        ([1, 2, 3], [1, 2], 2, (102, None, None, "no record", [BATCH_SIZE, 1])),
        ([1, 2, 3], [1, 2, 3], 9, None),
    ],
)
def test_where_a_pass_differs(
    tf: Any, found: list[int], expected: list[int], fails_at: int, said: Any
) -> None:
    split = Split(name="train", shard_lengths=(3, 9000))
    codes = ExampleCodes(Dataset(name="toy", splits=(split,)), ["train"])
    sizes: list[int] = []

    def opened(size: int) -> Pass:
        sizes.append(size)
        return Pass(reading=reading(failing_at(tf, fails_at, found)), size=size, stop=None)

    window = Window(start=100, stop=110, read="files", host="1/4")
    first = difference(opened, lambda: [np.array(expected)], codes, window)
    if said is None:
        assert (first, sizes) == (None, [BATCH_SIZE])
        return
    assert first is not None
    assert (first.position, first.expected, first.found) == said[:3]
    assert (first.read, first.host, first.expected_tfds_id) == ("files", "1/4", None)
    assert (said[3] in first.reason if first.reason else said[3] is None, sizes) == (True, said[4])
