from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shardctl.core.arrays import Int64s
from shardctl.tfds.verifying.reading import Reading
from shardctl.tfds.verifying.verify_plan import BatchedPass


def codes_of(batch: Any) -> Int64s:
    codes: Int64s = np.atleast_1d(batch).astype(np.int64)
    return codes


def batched(batch: int, *, drop: bool = False, count: int = 10) -> Reading:
    import tensorflow as tf

    elements = tf.data.Dataset.range(count).batch(batch, drop_remainder=drop)
    return Reading(elements=elements, codes_of=codes_of)


@pytest.mark.parametrize(
    ("reading", "total"),
    [((4, False), 10), ((4, True), 8), ((5, True), 10), ((1, False), 10), ((3, False), 10)],
)
def test_batches_of_the_size_asked_for_are_right(reading: tuple[int, bool], total: int) -> None:
    batch, drop = reading
    found = BatchedPass(batched(batch, drop=drop), batch=batch, total=total, stop=total)
    assert np.concatenate(list(found)).tolist() == list(range(total))
    assert found.wrong is None


@pytest.mark.parametrize(
    ("reading", "batch", "total", "wrong"),
    [
        ((3, False), 4, 10, ("4 examples in batch 0", "3")),
        ((4, False), 4, 8, ("0 examples in batch 2", "2")),
        ((4, True), 4, 11, None),  # the missing ones are a difference of the examples
        ((8, False), 4, 8, ("4 examples in batch 0", "8")),
    ],
)
def test_a_batch_of_another_size_is_wrong(
    reading: tuple[int, bool], batch: int, total: int, wrong: Sequence[str] | None
) -> None:
    found = BatchedPass(batched(reading[0], drop=reading[1]), batch=batch, total=total, stop=10)
    list(found)
    said = found.wrong
    assert (None if said is None else (said.promised, said.found)) == wrong
