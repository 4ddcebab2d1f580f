"""Elements of stages, flattened in the order in which examples went in."""

from __future__ import annotations

import pytest

from shardctl.stages.text import parse_stages
from shardctl.tfds.training.pipeline import StageCalls
from shardctl.tfds.verifying.real_files import fitted_epoch, flattened, shape_of


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
def test_examples_come_in_the_order_of_the_element(text: str, expected: list[int]) -> None:
    import tensorflow as tf

    pipeline = parse_stages(text)
    dataset = StageCalls(reader=lambda _: tf.data.Dataset.range(4)).dataset(pipeline)
    found = [
        example
        for element in dataset.as_numpy_iterator()
        for example in flattened(element, shape_of(pipeline))
    ]
    assert found[: len(expected)] == expected


def test_an_epoch_of_fit_is_read_by_keras() -> None:
    import tensorflow as tf

    def made() -> tf.data.Dataset:
        pairs = tf.data.Dataset.range(6).map(lambda x: (x, {"y": -x}))
        return pairs.shuffle(6, seed=3).batch(4)

    dataset = made()
    passes = [[batch[0].numpy().tolist() for batch in dataset] for _ in range(3)]
    found = fitted_epoch(made(), 1)
    assert [x.tolist() for x, _ in found] == passes[2]
    assert [labels["y"].tolist() for _, labels in found] == [[-x for x in b] for b in passes[2]]
