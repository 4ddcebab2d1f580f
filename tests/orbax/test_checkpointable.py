"""Positions in checkpoints of Orbax's API v1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position
from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

ocp: Any = LateModule("orbax.checkpoint")
ocp_v1: Any = LateModule("orbax.checkpoint.experimental.v1")
shardctl_args: Any = LateModule("shardctl.orbax")

SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("positions")
    return tfds.builder_from_directory(build_dataset(root, splits={"train": [4, 0, 7, 6]}))


def saved(position: Position, path: Path, **more: Any) -> None:
    items = {"state": {"w": np.arange(3.0)}}
    data = shardctl_args.Checkpointable(position, **more)
    ocp_v1.save_checkpointables(path, {**items, "data": data})


def loaded(position: Position, path: Path) -> Position:
    data = shardctl_args.Checkpointable(position)
    assert isinstance(data, ocp_v1.StatefulCheckpointable)
    assert ocp_v1.load_checkpointables(path, {"data": data})["data"] is data
    return position


def test_a_position_is_saved_and_loaded_in_place(builder: Any, tmp_path: Path) -> None:
    saved(Position(builder, "train", SETTINGS, consumed=9), tmp_path / "first")
    files = [path.name for path in (tmp_path / "first" / "data").glob("process_*")]
    assert files == ["process_0-of-1.json"]
    assert loaded(Position(builder, "train", SETTINGS), tmp_path / "first").consumed == 9


def test_the_state_is_that_of_the_call_though_it_is_written_later(
    builder: Any, tmp_path: Path
) -> None:
    position = Position(builder, "train", SETTINGS, consumed=9)
    response = ocp_v1.save_checkpointables_async(
        tmp_path / "first", {"data": shardctl_args.Checkpointable(position)}
    )
    position.advance(8)
    response.result()
    assert loaded(Position(builder, "train", SETTINGS), tmp_path / "first").consumed == 9


def test_a_checkpoint_that_save_wrote_is_loaded(builder: Any, tmp_path: Path) -> None:
    position = Position(builder, "train", SETTINGS, consumed=7)
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        manager.save(2, args=ocp.args.Composite(data=shardctl_args.Save(position)))
        manager.wait_until_finished()
    assert loaded(Position(builder, "train", SETTINGS), tmp_path / "run" / "2").consumed == 7


def test_other_settings_are_refused_and_change_nothing(builder: Any, tmp_path: Path) -> None:
    saved(Position(builder, "train", SETTINGS, consumed=9), tmp_path / "first")
    other = Position(builder, "train", ReadSettings(shuffle_seed=6), consumed=3)
    with pytest.raises(UsageError, match="shuffle_seed was 5, now 6"):
        loaded(other, tmp_path / "first")
    assert other.consumed == 3


def test_a_position_of_another_host_than_the_process_is_refused(
    builder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jax.process_index", lambda: 1)
    monkeypatch.setattr("jax.process_count", lambda: 2)
    position = Position(builder, "train", ReadSettings(shuffle_seed=5, host=Host(index=0, count=2)))
    shardctl_args.Checkpointable(position, host="0/2")
    with pytest.raises(UsageError, match=r"the position is for host 0 of 2, and by jax"):
        shardctl_args.Checkpointable(position)
