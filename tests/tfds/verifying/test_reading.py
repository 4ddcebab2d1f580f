"""Passes over what TensorFlow hands out, and where they differ from what is predicted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.base.progress import Progress
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
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
from shardctl.verbs.verify.answer import FirstDifference, Window


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
    progress = Progress(lambda *report: told.append(report), "examples", 5)
    read = Pass(reading(tf.data.Dataset.range(5)), size=size, stop=stop, progress=progress)
    assert [piece.tolist() for piece in read] == pieces
    assert (read.num_done, read.reason) == (sum(map(len, pieces)), None)
    assert [done for _, done, _ in told] == np.cumsum(list(map(len, pieces))).tolist()


def test_a_batch_is_cut_at_the_stop(tf: Any) -> None:
    read = Pass(reading(tf.data.Dataset.range(9).batch(4)), size=1, stop=6)
    assert [piece.tolist() for piece in read] == [[0, 1, 2, 3], [4, 5]]


def failing_at(tf: Any, place: int) -> Any:
    """Return a range that TensorFlow fails to read from a place on."""

    def element(number: Any) -> Any:
        last = tf.constant(place - 1, tf.int64)
        with tf.control_dependencies([tf.debugging.assert_less_equal(number, last, "no record")]):
            return tf.identity(number)

    return tf.data.Dataset.range(9).map(element)


def test_a_pass_ends_where_tensorflow_gives_up_and_keeps_the_reason(tf: Any) -> None:
    # With many at a time a whole batch is lost.
    for size, pieces in ((1, [[0], [1], [2], [3]]), (3, [[0, 1, 2]])):
        read = Pass(reading(failing_at(tf, place=4)), size=size, stop=None)
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


# A pass beside a prediction: where they differ, by position and by name.


class FakePass:
    """A pass over numbers that fails, if at all, before the place `fails_at`."""

    unknown = staticmethod(lambda code: f"stranger{code}")

    def __init__(self, codes: list[int], size: int, fails_at: int | None) -> None:
        self.reason: str | None = None
        self.num_done = 0
        self._codes, self._size, self._fails_at = codes, size, fails_at

    def __iter__(self) -> Iterator[Int64s]:
        for start in range(0, len(self._codes), self._size):
            piece = self._codes[start : start + self._size]
            if self._fails_at is not None and start + len(piece) > self._fails_at:
                self.reason = "corrupted record"
                return
            self.num_done += len(piece)
            yield np.array(piece)


FILES = (ShardFiles(pattern="toy-\0", num_shards=2),)
WINDOW = Window(start=100, stop=110, read="files", host="1/4")
NUMBERS = list(range(5000))


def compared(
    found: list[int],
    expected: list[int],
    fails_at: int | None = None,
    files: tuple[ShardFiles, ...] = FILES,
) -> tuple[FirstDifference | None, list[int]]:
    """Return where a pass differs, and the sizes of the passes that it took."""
    sizes: list[int] = []

    def opened(size: int) -> Any:
        sizes.append(size)
        return FakePass(found, size, fails_at)

    split = Split(name="train", shard_lengths=(3, 9000), files=files)
    codes = ExampleCodes(Dataset(name="toy", splits=(split,)), ["train"])
    return difference(opened, lambda: [np.array(expected)], codes, WINDOW), sizes


@pytest.mark.parametrize(
    ("found", "expected", "fails_at", "said"),
    [
        # Where TensorFlow gives up, the examples are read again one by one.
        (NUMBERS, NUMBERS, 3001, (3101, 3001, None, "corrupted record", 2)),
        # A failure behind the first difference is not its reason; one at the end is a difference.
        ([0, 7, *NUMBERS[2:]], NUMBERS, 3001, (101, 1, 7, None, 1)),
        ([1, 2, 3], [1, 2], 2, (102, None, None, "corrupted record", 2)),
    ],
)
def test_where_a_pass_differs(
    found: list[int], expected: list[int], fails_at: int, said: tuple[Any, ...]
) -> None:
    first, sizes = compared(found, expected, fails_at)
    assert first is not None
    where = (first.position, first.expected, first.found, first.reason)
    assert (*where, len(sizes)) == said
    assert sizes == [BATCH_SIZE, 1][: len(sizes)]


def test_a_pass_as_expected_has_no_difference_and_is_read_once() -> None:
    assert compared([1, 2, 3], [1, 2, 3]) == (None, [BATCH_SIZE])


@pytest.mark.parametrize(
    ("files", "found", "said"),
    [
        pytest.param(FILES, 2, (2, "toy-00001__0", "toy-00000__2"), id="two examples"),
        pytest.param((), 2, (2, None, None), id="a layout without file names"),
        pytest.param(FILES, None, (None, "toy-00001__0", None), id="the pass has ended"),
        pytest.param(FILES, -1, ("stranger-1", "toy-00001__0", "stranger-1"), id="unknown"),
    ],
)
def test_a_difference_has_position_and_names_of_the_order(
    files: tuple[ShardFiles, ...], found: int | None, said: tuple[Any, str | None, str | None]
) -> None:
    where, _ = compared([] if found is None else [found], [3], files=files)
    assert where == FirstDifference(
        position=100,
        expected=3,
        found=said[0],
        expected_tfds_id=said[1],
        found_tfds_id=said[2],
        read="files",
        host="1/4",
    )
