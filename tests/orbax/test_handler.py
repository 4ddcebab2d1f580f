"""Positions as items of real checkpoints of Orbax: when they are taken, and how they return."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position
from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

ocp: Any = LateModule("orbax.checkpoint")
shardctl_args: Any = LateModule("shardctl.orbax")

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)
STATE = {"weights": np.arange(6.0)}


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("positions")
    return tfds.builder_from_directory(build_dataset(root, splits={"train": [4, 0, 7, 6]}))


@pytest.fixture
def position(builder: Any) -> Position:
    return Position(builder, "train", SETTINGS)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Any]:
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        yield manager


def items(position: Position) -> Any:
    return ocp.args.Composite(state=ocp.args.StandardSave(STATE), data=shardctl_args.Save(position))


def saved(manager: Any, position: Position, step: int = 0) -> Path:
    manager.save(step, args=items(position))
    manager.wait_until_finished()
    return Path(manager.directory) / str(step) / "data"


def restore(manager: Any, position: Position, step: int = 0) -> Any:
    return manager.restore(
        step,
        args=ocp.args.Composite(
            state=ocp.args.StandardRestore(STATE), data=shardctl_args.Restore(position)
        ),
    )


def test_a_position_comes_back_in_place_beside_the_model(
    manager: Any, position: Position, builder: Any
) -> None:
    position.advance(8)
    folder = saved(manager, position)
    assert [path.name for path in folder.glob("process_*")] == ["process_0-of-1.json"]
    assert (folder / "process_0-of-1.json").read_bytes() == position.get_state()
    again = Position(builder, "train", SETTINGS)
    found = restore(manager, again)
    assert found.data is again
    assert again.consumed == 8
    assert found.state["weights"].tolist() == STATE["weights"].tolist()


def test_the_state_is_that_of_the_call_though_it_is_written_later(
    manager: Any,
    position: Position,
    builder: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from shardctl.orbax.handler import write_state

    moved_on = threading.Event()

    def slow(*arguments: Any) -> None:
        assert moved_on.wait(20)
        write_state(*arguments)

    monkeypatch.setattr("shardctl.orbax.handler.write_state", slow)
    position.advance(4)
    manager.save(0, args=items(position))
    assert not list(Path(manager.directory).rglob("data*/process_*"))  # training goes on meanwhile
    position.advance(12)
    moved_on.set()
    manager.wait_until_finished()
    again = Position(builder, "train", SETTINGS)
    restore(manager, again)
    assert again.consumed == 4


def test_a_position_that_cannot_be_written_leaves_no_checkpoint(
    manager: Any, position: Position, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(manager, position, step=1)

    def full(*arguments: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("shardctl.orbax.handler.write_state", full)
    with pytest.raises(OSError, match="No space left"):
        saved(manager, position, step=2)
    with ocp.CheckpointManager(manager.directory) as later:
        assert later.all_steps() == [1]


def test_arguments_are_made_once_and_saved_often(
    manager: Any, position: Position, builder: Any
) -> None:
    arguments = items(position)
    for step in (1, 2, 3):
        position.advance(4)
        manager.save(step, args=arguments)
    manager.wait_until_finished()
    again = Position(builder, "train", SETTINGS)
    assert [restore(manager, again, step).data.consumed for step in (2, 3, 1)] == [8, 12, 4]


@pytest.mark.parametrize("kind", ["Checkpointer", "AsyncCheckpointer"])
def test_a_position_is_a_checkpoint_of_its_own_too(
    kind: str, position: Position, builder: Any, tmp_path: Path
) -> None:
    position.advance(5)
    with getattr(ocp, kind)(shardctl_args.PositionHandler()) as alone:
        alone.save(tmp_path / "data", args=shardctl_args.Save(position))
        again = Position(builder, "train", SETTINGS)
        if kind == "AsyncCheckpointer":
            alone.wait_until_finished()
        assert alone.restore(tmp_path / "data", args=shardctl_args.Restore(again)) is again
    assert again.consumed == 5


def test_without_arguments_the_states_are_returned(manager: Any, position: Position) -> None:
    position.advance(9)
    folder = saved(manager, position)
    head = json.loads((folder.parent / "_CHECKPOINT_METADATA").read_text())
    assert head["item_handlers"]["data"] == "shardctl.orbax.PositionHandler"
    with ocp.CheckpointManager(manager.directory) as later:
        assert later.restore(0).data == [position.get_state()]


def test_the_model_is_restored_without_the_position(manager: Any, position: Position) -> None:
    saved(manager, position)
    with ocp.CheckpointManager(manager.directory) as later:
        found = later.restore(0, args=ocp.args.Composite(state=ocp.args.StandardRestore(STATE)))
    assert set(found.keys()) == {"state"}


def test_a_checkpoint_from_before_has_no_such_item_and_the_position_stays(
    manager: Any, position: Position
) -> None:
    manager.save(0, args=ocp.args.Composite(state=ocp.args.StandardSave(STATE)))
    manager.wait_until_finished()
    position.advance(3)
    with pytest.raises(KeyError, match='"data" was not found in the checkpoint'):
        restore(manager, position)
    assert position.consumed == 3


def test_what_is_refused_is_said_as_it_is_and_changes_nothing(
    manager: Any, position: Position, builder: Any
) -> None:
    position.advance(8)
    file = saved(manager, position) / "process_0-of-1.json"
    other = Position(builder, "train", ReadSettings(shuffle_seed=6, epochs=2), consumed=3)
    with pytest.raises(UsageError, match="shuffle_seed was 5, now 6, batch was 4, now None"):
        restore(manager, other)
    file.write_bytes(file.read_bytes().replace(b'"consumed": 8', b'"consumed": 9'))
    with pytest.raises(DatasetError, match=r"process_0-of-1.json: it does not match its digest"):
        restore(manager, position)
    file.unlink()
    with pytest.raises(DatasetError, match="no position is in this item of the checkpoint"):
        restore(manager, position)
    assert (other.consumed, position.consumed) == (3, 8)


def test_a_position_of_another_host_than_the_process_is_refused(
    builder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jax.process_index", lambda: 1)
    monkeypatch.setattr("jax.process_count", lambda: 2)
    own, other = (
        Position(builder, "train", replace(SETTINGS, host=Host(index=i, count=2))) for i in (1, 0)
    )
    everything = Position(builder, "train", SETTINGS)
    said = r"the position is for host 0 of 2, and by jax.process_index\(\) this process is host 1"
    for arguments in (shardctl_args.Save, shardctl_args.Restore):
        arguments(own)
        arguments(everything)  # which every process may read
        arguments(other, host=0)  # where hosts are counted otherwise
        with pytest.raises(UsageError, match=said):
            arguments(other)
        with pytest.raises(UsageError, match="said to be host 0 of 3"):
            arguments(other, host="0/3")
    with pytest.raises(UsageError, match='position="here": a Position is needed'):
        shardctl_args.Save("here")


def test_without_orbax_the_command_is_said_that_installs_it() -> None:
    code = (
        "import sys; sys.modules['orbax'] = None\n"
        "from shardctl.errors import MissingDependencyError\n"
        "try:\n    import shardctl.orbax\n"
        "except MissingDependencyError as error:\n    print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("Orbax is needed for this and cannot be imported (")
    assert said.stdout.endswith("install it with: pip install 'shardctl[orbax]'\n")
