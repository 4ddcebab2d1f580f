"""Found pipelines put together: seeds, references, what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.stages.text import text_of
from shardctl.tfds.inspecting.inspect import assembled
from shardctl.tfds.recognizing.graph import operation_of, options_in_force
from shardctl.tfds.recognizing.walk import walked
from shardctl.verbs.inspect.answer import Inspection
from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("assemble")
    for name in ("one", "two"):
        build_dataset(root, name, {"train": [3, 4], "test": [2]})
    return root


def _read(root: Path, name: str, split: str = "train", **config: Any) -> Any:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(root / name / "1.0.0")
    read_config = tfds.ReadConfig(**config)
    return builder.as_dataset(
        split=split, shuffle_files="shuffle_seed" in config, read_config=read_config
    )


def _assembled(dataset: Any, **more: Any) -> Inspection:
    found = walked(operation_of(dataset), options_in_force(dataset))
    return assembled(found, line_of=lambda operation: None, **more)


def test_one_reader_is_that_of_the_settings(root: Path) -> None:
    found = _assembled(_read(root, "one", "test", shuffle_seed=3).repeat(2), name="x")
    assert (found.name, found.spec, found.datasets) == ("x", "test", {})
    assert found.settings.stages is None
    assert found.settings.epochs == 2


def test_options_that_nothing_goes_by_leave_no_order_open(root: Path) -> None:
    import tensorflow as tf

    loose = tf.data.Options()
    loose.deterministic = False
    in_turn = _read(root, "one", shuffle_seed=3, num_parallel_calls_for_decode=1)
    found = _assembled(in_turn.skip(1).with_options(loose))
    assert found.predictable
    assert len(found.ids()) == 6
    ahead = _read(root, "one", shuffle_seed=3, num_parallel_calls_for_decode=2)
    assert not _assembled(ahead.skip(1).with_options(loose)).predictable


def test_several_readers_say_what_they_read(root: Path) -> None:
    import tensorflow as tf

    inputs = [_read(root, "one", shuffle_seed=3), _read(root, "two", "test")]
    mixed = _assembled(tf.data.Dataset.sample_from_datasets(inputs, seed=5))
    assert list(mixed.datasets) == [str(root / name / "1.0.0") for name in ("one", "two")]
    assert mixed.settings.stages is not None
    text = text_of(mixed.settings.stages)
    assert "shuffle_seed=3" in text
    assert "data=" in text
    inputs = [_read(root, "one", shuffle_seed=3), _read(root, "one", "test")]
    alike = _assembled(tf.data.Dataset.sample_from_datasets(inputs, seed=5))
    assert alike.datasets == {}
    assert alike.settings.stages is not None
    assert text_of(alike.settings.stages) == (
        "sample_from_datasets([read(train, shuffle_seed=3), test], seed=5)"
    )


def test_arguments_are_those_of_tensorflow() -> None:
    import tensorflow as tf

    found = _assembled(tf.data.Dataset.range(3, 9, 2).shuffle(4, seed=1))
    assert found.stages[0].arguments == {"start": 3, "stop": 9, "step": 2}
    assert found.stages[1].arguments == {
        "buffer_size": 4,
        "seed": 87654321,
        "seed2": 1,
        "reshuffle_each_iteration": True,
    }
