"""Which line of a script makes each dataset; nothing of TensorFlow stays changed."""

from __future__ import annotations

import os
import subprocess
import threading
from typing import Any

import pytest

from shardctl.tfds.inspecting.graph import Operation, operation_of
from shardctl.tfds.inspecting.inspect import Lines, is_of_script
from shardctl.verbs.inspect.answer import SourceLine


def _lines(lines: Lines, operation: Operation) -> list[int | None]:
    found: list[int | None] = []
    while True:
        line = lines.of(operation)
        found.append(None if line is None else line.line)
        if not operation.inputs:
            return found
        operation = operation.input


def test_each_dataset_has_the_line_that_made_it(tf: Any) -> None:
    def make() -> Any:
        numbers = tf.data.Dataset.range(9)
        numbers = numbers.apply(tf.data.experimental.assert_cardinality(9))
        return numbers.batch(3)

    lines = Lines()
    with lines.watched():
        dataset = make()
    first = make.__code__.co_firstlineno
    assert _lines(lines, operation_of(dataset)) == [first + 3, first + 2, first + 1]
    line = lines.of(operation_of(dataset))
    assert line == SourceLine(
        file=os.path.relpath(__file__), line=first + 3, text="return numbers.batch(3)"
    )


def test_what_is_made_later_is_not_watched(tf: Any) -> None:
    from tensorflow.python.data.ops import dataset_ops

    kind = dataset_ops.DatasetV2
    before = kind.__init__, kind._metadata
    lines = Lines()
    with pytest.raises(ValueError, match="of the script"), lines.watched():
        raise ValueError("of the script")
    assert (kind.__init__, kind._metadata) == before
    assert lines.of(operation_of(tf.data.Dataset.range(3))) is None


def test_libraries_are_no_scripts(tf: Any) -> None:
    assert is_of_script(__file__)
    assert not is_of_script(tf.__file__)
    assert not is_of_script(subprocess.__file__)
    assert not is_of_script("<string>")


def test_threads_watch_each_their_own_script_and_leave_nothing_behind(tf: Any) -> None:
    from tensorflow.python.data.ops import dataset_ops

    kind = dataset_ops.DatasetV2
    before = kind.__init__, kind._metadata
    begun, ended = threading.Event(), threading.Event()
    first, second = Lines(), Lines()
    made: list[Any] = []

    def other_script() -> None:
        with first.watched():
            begun.set()
            ended.wait(30)
            made.append(tf.data.Dataset.range(3))

    thread = threading.Thread(target=other_script)
    thread.start()
    assert begun.wait(30)
    with second.watched():
        dataset = tf.data.Dataset.range(4)
        ended.set()
        thread.join()
    assert first.of(operation_of(dataset)) is None
    assert second.of(operation_of(dataset)) is not None
    assert first.of(operation_of(made[0])) is not None
    assert second.of(operation_of(made[0])) is None
    assert (kind.__init__, kind._metadata) == before


def test_a_script_within_a_script_has_its_lines_in_both(tf: Any) -> None:
    outer, inner = Lines(), Lines()
    with outer.watched():
        with inner.watched():
            within = tf.data.Dataset.range(3)
        without = tf.data.Dataset.range(4)
    assert outer.of(operation_of(within)) == inner.of(operation_of(within)) is not None
    assert outer.of(operation_of(without)) is not None
    assert inner.of(operation_of(without)) is None
