"""Datasets that begin where a position is when they are iterated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.settings.read_settings import ReadSettings
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2)


@pytest.fixture(scope="module")
def builder(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder: Path = build_dataset(tmp_path_factory.mktemp("deferred"), splits={"train": [4, 0, 7]})
    return tfds.builder_from_directory(folder)


def ids(dataset: Any) -> list[int]:
    return [int(i) for i in dataset.as_numpy_iterator()]


def test_every_iterator_begins_where_the_position_is(tf: Any, builder: Any) -> None:
    order = ids(shardctl.tfds.pipeline(builder, "train", SETTINGS, transform=lambda e: e["id"]))
    position = shardctl.tfds.Position(builder, "train", SETTINGS)
    dataset = position.dataset(transform=lambda example: example["id"])
    mapped = dataset.map(lambda i: i).prefetch(2)
    assert ids(dataset) == ids(mapped) == order
    assert len(dataset) == 22
    early = iter(mapped)
    next(early)  # what has begun goes on
    consumed = 13
    position.advance(consumed)
    assert ids(mapped) == order[consumed:]
    assert len(dataset) == 22 - consumed
    late = iter(mapped)
    assert int(next(late)) == order[consumed]
    assert int(dataset.reduce(tf.constant(0, tf.int64), lambda n, _: n + 1)) == 22 - consumed
    assert [int(i) for i in early] == order[1:]
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert dataset.element_spec == tf.TensorSpec((), tf.int64)

    @tf.function
    def last() -> Any:
        seen = tf.constant(-1, tf.int64)
        for i in dataset:
            seen = i
        return seen

    assert int(last()) == order[-1]
