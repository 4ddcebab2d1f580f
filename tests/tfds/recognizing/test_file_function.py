"""What a function does with a file, by its body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shardctl.tfds.recognizing.graph import operation_of
from shardctl.tfds.recognizing.reader import FileFunction, file_function


def _found(of_row: Callable[..., Any], *columns: Any) -> FileFunction | None:
    import tensorflow as tf

    rows = tf.data.Dataset.from_tensor_slices(columns)
    function = operation_of(rows.interleave(of_row, cycle_length=2)).function
    assert function is not None
    return file_function(function)


def _records(path: Any) -> Any:
    import tensorflow as tf

    return tf.data.TFRecordDataset(path)


def test_records_of_a_path_are_known() -> None:
    import tensorflow as tf

    assert _found(_records, ["a", "b"]) == FileFunction(path=0)
    assert _found(lambda n, path: _records(path), [1, 2], ["a", "b"]) == FileFunction(path=1)
    packed = _found(lambda path: tf.data.TFRecordDataset(path, "GZIP"), ["a", "b"])
    assert packed == FileFunction(path=0, compression="GZIP")
    mapped = _found(lambda path: _records(path).map(tf.strings.length).prefetch(1), ["a", "b"])
    assert mapped == FileFunction(path=0)


def test_skip_and_take_are_parameters() -> None:
    columns = (["a", "b"], [1, 2], [3, 4])
    numbers = tuple([int(n) for n in column] for column in columns[1:])
    import tensorflow as tf

    given = (columns[0], *(tf.constant(n, tf.int64) for n in numbers))
    found = _found(lambda path, skip, take: _records(path).skip(skip).take(take), *given)
    assert found == FileFunction(path=0, skip=1, take=2)
    assert _found(lambda path, skip, take: _records(path).take(take).skip(skip), *given) is None


@pytest.mark.parametrize(
    "of_row",
    [
        lambda path: _records(path).filter(lambda record: True),
        lambda path: _records(path).shuffle(3, seed=1),
        lambda path: _records(path).repeat(2),
        lambda path: _records(path).take(2),
        lambda path: _records("a"),
        lambda path: _records(path).concatenate(_records(path)),
    ],
)
def test_anything_else_is_not_known(of_row: Callable[..., Any]) -> None:
    assert _found(of_row, ["a", "b"]) is None
