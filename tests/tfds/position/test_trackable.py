"""Positions in checkpoints of TensorFlow: saved with the weights, restored or refused with them."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.tfds import Position
from tests.order.order_cases import changed
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(cycle=2, shuffle_seed=5, buffer=5, buffer_seed=1, epochs=2, batch=4)
OTHER = changed(SETTINGS, buffer=6, shuffle_seed=6)
CHANGES = "shuffle_seed was 5, now 6, buffer was 5, now 6"


def checkpoint_of(tf: Any, position: Any = None, step: int = 0) -> Any:
    parts = {"step": tf.Variable(step)}
    return tf.train.Checkpoint(**parts if position is None else {**parts, "data": position})


def consumed_in(tf: Any, path: str, key: str = "data") -> int:
    state = tf.train.load_checkpoint(path).get_tensor(f"{key}/.ATTRIBUTES/py_state")
    return int(json.loads(state)["consumed"])


def test_it_is_saved_and_restored_with_what_stands_beside_it(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    position = Position(builder, "train", SETTINGS)
    assert isinstance(position, tf.train.experimental.PythonState)
    checkpoint = checkpoint_of(tf, position)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=2)
    for _ in position.count(position.dataset(), step=checkpoint.step):
        checkpoint.step.assign_add(1)
        manager.save(checkpoint_number=checkpoint.step)
        if position.consumed == 24:
            break
    assert [consumed_in(tf, path) for path in manager.checkpoints] == [20, 24]
    again = Position(builder, "train", SETTINGS)
    restored = checkpoint_of(tf, again)
    status = restored.restore(manager.checkpoints[0])
    status.assert_consumed().assert_existing_objects_matched()
    assert (again.consumed, int(restored.step)) == (20, 5)
    restored.read(manager.checkpoints[1]).assert_consumed()
    assert (again.consumed, int(restored.step)) == (24, 6)
    assert tf.train.CheckpointManager(restored, tmp_path, 2).restore_or_initialize()
    assert again.get_state() == position.get_state()


def test_a_refusal_reaches_the_caller_and_changes_neither_position_nor_weights(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    path = checkpoint_of(tf, Position(builder, "train", SETTINGS, consumed=8), 2).save(
        tmp_path / "ck"
    )
    position = Position(builder, "train", OTHER, consumed=4)
    checkpoint = checkpoint_of(tf, position, 7)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=None)
    for call in (
        lambda: checkpoint.restore(path),
        lambda: checkpoint.read(path),
        manager.restore_or_initialize,
    ):
        with pytest.raises(UsageError, match=CHANGES) as refusal:
            call()
        assert type(refusal.value) is UsageError
        assert (position.consumed, int(checkpoint.step)) == (4, 7)
    waiting = tf.train.Checkpoint()
    waiting.restore(path)
    with pytest.raises(UsageError, match=CHANGES):  # as soon as it is there
        waiting.data = position
    late = tf.train.Checkpoint()
    late.restore(path)
    late.data = Position(builder, "train", SETTINGS)
    assert late.data.consumed == 8


def test_another_version_is_refused_unless_it_is_allowed(
    tf: Any, tfds: Any, tmp_path: Path
) -> None:
    first, second = (
        tfds.builder_from_directory(build_dataset(tmp_path, version=version))
        for version in ("1.0.0", "1.0.1")
    )
    path = checkpoint_of(tf, Position(first, "train", consumed=3)).save(tmp_path / "ck")
    message = r"its version was 1.0.0, now 1.0.1; --allow-version takes it all the same"
    with pytest.raises(DatasetError, match=message):
        checkpoint_of(tf, Position(second, "train")).restore(path)
    allowed = Position(second, "train", allow_version=True)
    checkpoint_of(tf, allowed).restore(path)
    assert allowed.consumed == 3


def test_a_checkpoint_without_a_position_is_noticed(tf: Any, builder: Any, tmp_path: Path) -> None:
    path = checkpoint_of(tf, None, 6).save(tmp_path / "ck")
    position = Position(builder, "train", SETTINGS)
    checkpoint = checkpoint_of(tf, position)
    status = checkpoint.restore(path)
    with pytest.raises(AssertionError, match="Position 0 of 34 examples"):
        status.assert_existing_objects_matched()
    batches = position.count(position.dataset(), step=checkpoint.step)
    with pytest.warns(UserWarning, match="position is at its beginning, and step is 6"):
        next(batches)


def test_an_asynchronous_save_writes_the_position_of_its_call(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    """TensorFlow asks for the state when it writes, in a thread, after the loop has gone on."""
    options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
    position = Position(builder, "train", changed(SETTINGS, batch=None))
    checkpoint = checkpoint_of(tf, position)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=None)
    for _ in range(6):
        position.advance(3)
        checkpoint.step.assign_add(1)
        manager.save(options=options)
        position.advance(1)
    checkpoint.sync()
    assert [consumed_in(tf, path) for path in manager.checkpoints] == [3, 7, 11, 15, 19, 23]
    checkpoint.restore(manager.checkpoints[2])
    assert (position.consumed, int(checkpoint.step)) == (11, 3)


def test_a_position_that_is_part_of_a_model_is_saved_with_it(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.position = Position(builder, "train", SETTINGS, consumed=8)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "ck")
    assert consumed_in(tf, path, "model/position") == 8
    model.position.advance(4)
    tf.train.Checkpoint(model=model).restore(path)
    assert model.position.consumed == 8
    model.save(tmp_path / "model.keras")
    keras.models.load_model(tmp_path / "model.keras")


def test_a_save_within_a_function_would_hold_the_first_position(
    tf: Any, builder: Any, tmp_path: Path
) -> None:
    checkpoint = checkpoint_of(tf, Position(builder, "train", SETTINGS))
    save: Any = tf.function(lambda: checkpoint.write(str(tmp_path / "ck")))
    with pytest.raises(ShardctlError, match=r"within a tf\.function"):
        save()


def test_copies_are_positions_of_their_own(tf: Any, builder: Any, tmp_path: Path) -> None:
    position = Position(builder, "train", SETTINGS, consumed=8)
    checkpoint_of(tf, position).save(tmp_path / "ck")
    batches = position.count(position.dataset())
    next(batches)
    ways: tuple[Callable[[Any], Any], ...] = (
        copy.copy,
        copy.deepcopy,
        lambda one: pickle.loads(pickle.dumps(one)),
    )
    for made in ways:
        other = made(position)
        assert type(other) is type(position)
        assert isinstance(other, Position)
        other.advance(4)
        assert (other.consumed, position.consumed) == (16, 12)
        checkpoint_of(tf, other).restore(tmp_path / "ck-1")
        assert (other.consumed, position.consumed) == (8, 12)


def test_without_tensorflow_a_position_is_none_of_its_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert type(Position.__new__(Position)) is not Position
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert type(Position.__new__(Position)) is Position


def test_its_arguments_are_those_that_it_takes() -> None:
    shown = inspect.signature(Position)
    taken = list(inspect.signature(Position.__init__).parameters.values())
    assert list(shown.parameters.values()) == taken[1:]
