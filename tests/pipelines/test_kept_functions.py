"""Functions of datasets that are traced once are those that each dataset would have."""

from __future__ import annotations

from typing import Any

from tests.pipelines.kept_functions import functions_kept


def test_only_functions_that_are_alike_are_traced_once(tf: Any) -> None:
    traced: list[int] = []
    note = traced.append  # the same for all, unlike what the list holds

    def added(number: int, dataset: Any) -> Any:
        def add(element: Any) -> Any:
            note(number)
            return element + number

        return dataset.map(add)

    def answers() -> list[list[float]]:
        ints, floats = tf.data.Dataset.range(3), tf.data.Dataset.from_tensor_slices([0.5])
        constant = tf.constant(7, tf.int64)
        made = [added(1, ints), added(2, ints), added(1, floats), added(1, ints.batch(3).unbatch())]
        made += [ints.map(lambda element: element * constant)]
        return [[float(value) for value in dataset] for dataset in made]

    with functions_kept():
        first = answers()
        assert answers() == first
        assert traced == [1, 2, 1]
    assert answers() == first == [[1, 2, 3], [2, 3, 4], [1.5], [1, 2, 3], [0, 7, 14]]
    assert traced == [1, 2, 1, 1, 2, 1, 1]
