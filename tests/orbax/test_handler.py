"""Positions as items of real checkpoints of Orbax: when they are taken, and how they return."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position, pipeline
from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

ocp: Any = LateModule("orbax.checkpoint")
ocp_v1: Any = LateModule("orbax.checkpoint.experimental.v1")
shardctl_args: Any = LateModule("shardctl.orbax")

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)
STATE = {"weights": np.arange(6.0)}


LENGTHS = [9, 0, 17, 6, 11, 8, 1, 12]  # 64 examples


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("positions")
    return tfds.builder_from_directory(build_dataset(root, splits={"train": LENGTHS}))


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
    model, data = ocp.args.StandardRestore(STATE), shardctl_args.Restore(position)
    return manager.restore(step, args=ocp.args.Composite(state=model, data=data))


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
    assert loaded(Position(builder, "train", SETTINGS), folder.parent).consumed == 8  # by API v1
    assert found.state["weights"].tolist() == STATE["weights"].tolist()


def test_the_state_is_that_of_the_call_though_it_is_written_later(
    manager: Any, position: Position, builder: Any, monkeypatch: pytest.MonkeyPatch
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
        model = ocp.args.Composite(state=ocp.args.StandardRestore(STATE))
        assert set(later.restore(0, args=model).keys()) == {"state"}


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
    kinds = shardctl_args.Save, shardctl_args.Restore, shardctl_args.Checkpointable
    for arguments in kinds:
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
    assert said.stdout.endswith(" -m pip install 'orbax-checkpoint>=0.11.25'\n")


# As Orbax's API v1 takes a position.


def loaded(position: Position, path: Path) -> Position:
    data = shardctl_args.Checkpointable(position)
    assert isinstance(data, ocp_v1.StatefulCheckpointable)
    assert ocp_v1.load_checkpointables(path, {"data": data})["data"] is data
    return position


def test_a_checkpointable_is_saved_when_it_is_called_and_loaded_in_place(
    builder: Any, tmp_path: Path
) -> None:
    position = Position(builder, "train", SETTINGS, consumed=9)
    path, data = tmp_path / "first", shardctl_args.Checkpointable(position)
    saving = ocp_v1.save_checkpointables_async(path, {"state": STATE, "data": data})
    position.advance(8)
    saving.result()
    names = [file.name for file in (path / "data").glob("process_*")]
    assert names == ["process_0-of-1.json"]
    assert loaded(Position(builder, "train", SETTINGS), path).consumed == 9
    other = Position(builder, "train", ReadSettings(shuffle_seed=6), consumed=3)
    with pytest.raises(UsageError, match="shuffle_seed was 5, now 6"):
        loaded(other, path)
    assert other.consumed == 3


# States restored on other numbers of processes: nothing is lost, and nothing repeated.

EPOCHS = 2


def position_of(builder: Any, host: Host | None, **settings: Any) -> Position:
    read = {"cycle": 2, "block": 3, "shuffle_seed": 5, "epochs": EPOCHS, **settings}
    return Position(builder, "train", ReadSettings(**read, host=host))


def hosts(count: int) -> list[Host]:
    return [Host(index=i, count=count) for i in range(count)]


def read(position: Position, num_examples: int) -> list[int]:
    rest = position.dataset(transform=lambda example: example["id"])
    return [int(i) for i in position.count(rest.take(num_examples).as_numpy_iterator())]


def save_all(folder: Path, positions: Sequence[Position]) -> None:
    folder.mkdir()
    for process, position in zip(hosts(len(positions)), positions, strict=True):
        handler = shardctl_args.PositionHandler(process=process)
        handler.save(folder, shardctl_args.Save(position))


def restored(folder: Path, process: Host, position: Position) -> Position:
    with ocp.Checkpointer(shardctl_args.PositionHandler(process=process)) as checkpointer:
        found = checkpointer.restore(folder, args=shardctl_args.Restore(position))
    assert id(found) == id(position)
    return position


def go_on(builder: Any, folder: Path, count: int) -> list[Position]:
    return [restored(folder, one, position_of(builder, one)) for one in hosts(count)]


def test_as_many_processes_go_on_with_the_very_examples(builder: Any, tmp_path: Path) -> None:
    stopped = [position_of(builder, one) for one in hosts(2)]
    seen = [read(position, 4 + i) for i, position in enumerate(stopped)]
    save_all(tmp_path / "data", stopped)
    for i, position in enumerate(go_on(builder, tmp_path / "data", 2)):
        settings = position_of(builder, Host(index=i, count=2)).settings
        whole = pipeline(builder, "train", settings, transform=lambda example: example["id"])
        assert seen[i] + read(position, 1000) == [int(i) for i in whole.as_numpy_iterator()]


def test_states_of_other_settings_or_too_few_are_refused_and_change_nothing(
    builder: Any, tmp_path: Path
) -> None:
    save_all(tmp_path / "data", [position_of(builder, one) for one in hosts(3)])
    process = Host(index=0, count=2)
    position = position_of(builder, process, buffer=4, buffer_seed=1)
    position.advance(2)
    with pytest.raises(UsageError, match="buffer was None, now 4"):
        restored(tmp_path / "data", process, position)
    (tmp_path / "data" / "process_1-of-3.json").unlink()
    with pytest.raises(DatasetError, match=r"data: process_1-of-3.json missing; on another number"):
        restored(tmp_path / "data", process, position)
    assert position.consumed == 2
