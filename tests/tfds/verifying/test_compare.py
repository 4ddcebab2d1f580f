"""A real pass beside a prediction: where they differ, by position and by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from shardctl.base.arrays import Int64s
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.order.example_codes import ExampleCodes
from shardctl.tfds.verifying.real_files import BATCH_SIZE
from shardctl.tfds.verifying.verify import difference
from shardctl.verbs.verify.answer import FirstDifference, Window


class FakePass:
    """A pass over numbers that fails, if at all, before the place `fails_at`."""

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

    @staticmethod
    def unknown(code: int) -> str:
        return f"stranger{code}"


FILES = (ShardFiles(pattern="toy-\0", num_shards=2),)
WINDOW = Window(start=100, stop=110, read="files", host="1/4")


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


def test_a_pass_as_expected_has_no_difference_and_is_read_once() -> None:
    assert compared([1, 2, 3], [1, 2, 3]) == (None, [BATCH_SIZE])


def test_where_tensorflow_gives_up_the_examples_are_read_again_one_by_one() -> None:
    numbers = list(range(5000))
    found, sizes = compared(numbers, numbers, fails_at=3001)
    assert sizes == [BATCH_SIZE, 1]
    assert found is not None
    assert (found.position, found.expected, found.found) == (3101, 3001, None)
    assert found.reason == "corrupted record"


def test_a_failure_behind_the_first_difference_is_not_its_reason() -> None:
    found, _ = compared([0, 7, *range(2, 5000)], list(range(5000)), fails_at=3001)
    assert found is not None
    assert (found.position, found.expected, found.found) == (101, 1, 7)
    assert found.reason is None


def test_a_failure_at_the_very_end_is_a_difference_all_the_same() -> None:
    found, _ = compared([1, 2, 3], [1, 2], fails_at=2)
    assert found is not None
    assert (found.position, found.expected, found.found) == (102, None, None)
    assert found.reason == "corrupted record"


@pytest.mark.parametrize(
    ("files", "expected", "found", "said"),
    [
        pytest.param(FILES, 3, 2, (3, 2, "toy-00001__0", "toy-00000__2"), id="two examples"),
        pytest.param((), 3, 2, (3, 2, None, None), id="a layout without file names"),
        pytest.param(FILES, 3, None, (3, None, "toy-00001__0", None), id="the pass has ended"),
        pytest.param(
            FILES, 3, -1, (3, "stranger-1", "toy-00001__0", "stranger-1"), id="an unknown example"
        ),
    ],
)
def test_a_difference_has_position_and_names_of_the_order(
    files: tuple[ShardFiles, ...],
    expected: int,
    found: int | None,
    said: tuple[int, int | str | None, str | None, str | None],
) -> None:
    where, _ = compared([] if found is None else [found], [expected], files=files)
    assert where == FirstDifference(
        position=100,
        expected=said[0],
        found=said[1],
        expected_tfds_id=said[2],
        found_tfds_id=said[3],
        read="files",
        host="1/4",
    )
