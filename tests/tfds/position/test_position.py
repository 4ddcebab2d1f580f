"""Positions: what is counted, what is in the file, and what is refused."""

from __future__ import annotations

import copy
import inspect
import json
import pickle
import pickletools
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError, ShardctlError, UsageError
from shardctl.order.plan_order import plan_order
from shardctl.saved.position_file import position_of_text, position_text
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.spec.host import Host
from shardctl.tfds import Position
from tests.order.order_cases import changed
from tests.tfds_datasets import build_dataset

SETTINGS = ReadSettings(
    cycle=2, block=2, shuffle_seed=5, buffer=5, buffer_seed=1, epochs=2, batch=4
)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch["id"]]


def test_a_run_in_pieces_sees_what_one_run_sees(builder: Any, tmp_path: Path) -> None:
    whole = ids(shardctl.tfds.pipeline(builder, "train", SETTINGS))
    file, seen = tmp_path / "position.json", list[int]()
    for num_steps in (3, 9):
        position = shardctl.tfds.Position(builder, "train", SETTINGS)
        if file.exists():
            position.restore(file)
        for step, batch in enumerate(position.count(position.dataset())):
            seen += ids([batch])
            assert position.consumed == len(seen)
            position.save(file)
            if step + 1 == num_steps:
                break  # what was read ahead is not counted
    assert seen == whole
    assert position.consumed == position.num_examples == len(whole) == 34
    assert ids(position.dataset()) == []


def test_more_than_the_order_has_is_refused(builder: Any) -> None:
    position = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=30)
    with pytest.raises(UsageError, match="5 examples after 30: the order of train has 34"):
        position.advance(5)
    with pytest.raises(UsageError, match="a batch of 7 examples where batches of 4 are counted"):
        next(position.count(iter([{"id": np.arange(7)}])))
    with pytest.raises(UsageError, match="has 34"):
        shardctl.tfds.Position(builder, "train", SETTINGS, consumed=35)
    assert position.consumed == 30


def test_a_state_is_the_text_of_the_file_and_taken_like_it(builder: Any, tmp_path: Path) -> None:
    file = tmp_path / "position.json"
    position = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=8)
    position.save(file)
    assert position.get_state() == file.read_bytes()
    other = shardctl.tfds.Position(builder, "train", SETTINGS, consumed=4)
    state = position.get_state()
    for broken, message in (
        (state.replace(b'"consumed": 8', b'"consumed": 9'), "the state: .* match its digest"),
        (state[:100], "the state: line .* is not JSON"),
        (b"", "the state"),
        (b"{}", "this is not a position, .*get_state returns one"),
        (state.replace(b'"format_version": 1', b'"format_version": 3'), "of version 1 and 2"),
    ):
        with pytest.raises(DatasetError, match=message):
            other.set_state(broken)
        assert other.consumed == 4
    record = replace(position_of_text(state, source="it"), consumed=35)
    with pytest.raises(UsageError, match="is after 35 examples: the order of train has 34"):
        other.set_state(position_text(record))
    assert other.consumed == 4
    given: Any = bytearray(state)
    other.set_state(given)
    assert other.consumed == 8
    assert other.get_state() == state


@pytest.mark.long
def test_importing_the_bridge_loads_no_tensorflow() -> None:
    code = (
        "import sys, shardctl.tfds\n"
        "print([m for m in sys.modules if m.partition('.')[0].startswith('tensorflow')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_help_lists_every_public_name() -> None:
    text = shardctl.tfds.__doc__ or ""
    assert sorted(shardctl.tfds.__all__) == shardctl.tfds.__all__
    taken = list(inspect.signature(Position.__init__).parameters.values())
    assert list(inspect.signature(Position).parameters.values()) == taken[1:]
    for name in shardctl.tfds.__all__:
        assert getattr(shardctl.tfds, name).__doc__, name
        assert re.search(rf"^    {name}\(", text, re.M) or name in ("Host", "ReadSettings"), name
    assert max(map(len, text.splitlines())) <= 100


def test_a_position_written_before_is_restored_wherever_the_files_lie(
    tfds: Any, tmp_path: Path
) -> None:
    before = Path(__file__).parents[2] / "saved" / "written_before"
    splits = {"train": [4, 0, 7, 6], "test": [3, 2]}
    builder = tfds.builder_from_directory(build_dataset(tmp_path, splits=splits))
    position = shardctl.tfds.Position(builder, "train", SETTINGS)
    position.restore(before / "buffered.position.json")
    assert position.consumed == 12
    with pytest.raises(DatasetError, match="its name was steps, now toy; its config was c"):
        position.restore(before / "ordered.position.json")
    host = Host(index=1, count=3)
    settings = changed(SETTINGS, buffer=3, batch=2, host=host, host_by="even")
    of_host = shardctl.tfds.Position(builder, "train", settings)
    of_host.restore(before / "host.position.json")
    assert of_host.consumed == 6
    for other in (Host(index=0, count=3), Host(index=1, count=2), None):
        position = shardctl.tfds.Position(builder, "train", changed(settings, host=other))
        with pytest.raises(UsageError, match=f"host was 1/3, now {other}"):
            position.restore(before / "host.position.json")
    stages = "read(train) | shuffle(5, seed=1) | repeat(2) | batch(4)"
    settings = as_settings({"stages": stages, "shuffle_seed": 5, "global_seed": 9})
    staged = shardctl.tfds.Position(builder, None, settings)
    staged.set_state((before / "staged.position.json").read_bytes())
    assert staged.consumed == 8
    elements = plan_order(shardctl.tfds.dataset_of(builder), None, settings).order.read(8, 12)
    assert len(next(iter(staged.dataset()))["id"]) == len(elements) == 4


def test_what_the_files_may_not_keep_is_said(builder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    position = "shardctl.tfds.position.dataset_of"
    train = Split(name="train", shard_lengths=(214,))
    parquet = Dataset(name="d", splits=(train,), file_format="parquet")
    monkeypatch.setattr(position, lambda _: parquet)
    with pytest.warns(UserWarning, match="a file of 214 examples holds 114 rows"):
        shardctl.tfds.Position(builder, "train")
    monkeypatch.setattr(position, lambda _: replace(parquet, file_format="array_record"))
    with pytest.raises(DatasetError, match="as_dataset does not read array_record files"):
        shardctl.tfds.Position(builder, "train")


# Datasets that begin where a position is when they are iterated.


def test_every_iterator_begins_where_the_position_is(tf: Any, builder: Any) -> None:
    settings = changed(SETTINGS, buffer=None, buffer_seed=None, batch=None)

    def numbers(dataset: Any) -> list[int]:
        return [int(i) for i in dataset.as_numpy_iterator()]

    order = numbers(shardctl.tfds.pipeline(builder, "train", settings, transform=lambda e: e["id"]))
    position = shardctl.tfds.Position(builder, "train", settings)
    dataset = position.dataset(transform=lambda example: example["id"])
    mapped = dataset.map(lambda i: i).prefetch(2)
    assert numbers(dataset) == numbers(mapped) == order
    assert len(dataset) == 34
    early = iter(mapped)
    next(early)  # what has begun goes on
    consumed = 13
    position.advance(consumed)
    assert numbers(mapped) == order[consumed:]
    assert len(dataset) == 34 - consumed
    late = iter(mapped)
    assert int(next(late)) == order[consumed]
    assert int(dataset.reduce(tf.constant(0, tf.int64), lambda n, _: n + 1)) == 34 - consumed
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


# Positions in checkpoints of TensorFlow: saved with the weights, restored or refused with them.


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
    message = r"its version was 1.0.0, now 1.0.1; --allow-version accepts it"
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
    pickled = pickle.loads(pickle.dumps(position))
    for other in (copy.copy(position), copy.deepcopy(position), pickled):
        assert type(other) is type(position)
        assert isinstance(other, Position)
        other.advance(4)
        assert (other.consumed, position.consumed) == (16, 12)
        checkpoint_of(tf, other).restore(tmp_path / "ck-1")
        assert (other.consumed, position.consumed) == (8, 12)


def test_pickles_name_public_modules_alone(builder: Any) -> None:
    pickled = pickle.dumps(Position(builder, "train", SETTINGS, consumed=8))
    named = {text for _, text, _ in pickletools.genops(pickled) if isinstance(text, str)}
    assert {text for text in named if text.startswith("shardctl")} == {"shardctl.tfds"}


def test_without_tensorflow_a_position_is_none_of_its_objects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert type(Position.__new__(Position)) is not Position
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    assert type(Position.__new__(Position)) is Position
