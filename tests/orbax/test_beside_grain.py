"""Positions and loaders of Grain in one checkpoint, each by its own handler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.errors import DatasetError
from shardctl.grain import data_loader
from shardctl.orbax.handler import all_states, write_state
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position
from tests.grain.toys import needs_grain
from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

ocp: Any = LateModule("orbax.checkpoint")
shardctl_args: Any = LateModule("shardctl.orbax")

LENGTHS = [9, 0, 17, 6, 11, 8, 1, 12]  # 64 examples
SETTINGS = ReadSettings(cycle=2, block=2, shuffle_seed=5, epochs=2, batch=4)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("beside")
    return tfds.builder_from_directory(build_dataset(root, splits={"train": LENGTHS}))


def loader(builder: Any, host: Host | None = None, **place: Any) -> Any:
    settings = {"cycle": 2, "block": 2, "shuffle_seed": 5, "epochs": 2, "batch": 4, "host": host}
    return data_loader(list(range(64)), builder, "train", settings, **place)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch]


def test_each_is_restored_by_its_own_handler(builder: Any, tmp_path: Path) -> None:
    grain = needs_grain()
    save, restore = grain.checkpoint.CheckpointSave, grain.checkpoint.CheckpointRestore
    position, batches = Position(builder, "train", SETTINGS), iter(loader(builder))
    state = {"weights": np.arange(3.0)}
    position.advance(8)
    head = ids(next(batches) for _ in range(5))
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        kept = {"train": shardctl_args.Save(position), "eval": save(batches)}
        state_item = ocp.args.StandardSave(state)
        manager.save(1, args=ocp.args.Composite(state=state_item, **kept))
        position.advance(4)
        rest = ids(batches)
        manager.wait_until_finished()
        again, new = Position(builder, "train", SETTINGS), iter(loader(builder))
        items = {"train": shardctl_args.Restore(again), "eval": restore(new)}
        found = manager.restore(1, args=ocp.args.Composite(**items))
        assert found["train"] is again
        assert found["eval"] is new
        assert (again.consumed, ids(new)) == (8, rest)
        assert len(head + rest) == 128
    folder = tmp_path / "run" / "1" / "eval"
    assert ids(loader(builder, states=shardctl_args.states(folder))) == rest
    assert shardctl_args.states(str(folder.parent / "train")) == [again.get_state()]
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        items = {"eval": shardctl_args.Restore(again)}
        with pytest.raises(DatasetError, match=r"eval/process_0-of-1.json: this is not a position"):
            manager.restore(1, args=ocp.args.Composite(**items))
    assert again.consumed == 8


def test_loaders_of_three_processes_go_on_as_two(builder: Any, tmp_path: Path) -> None:
    needs_grain()
    read = []
    for index in range(3):
        process = Host(index=index, count=3)
        batches = iter(loader(builder, process))
        read += ids(next(batches) for _ in range(index + 2))
        write_state(tmp_path, process, batches.get_state())
    states = all_states(tmp_path)
    assert len(states) == 3
    for index in range(2):
        read += ids(loader(builder, Host(index=index, count=2), states=states))
    assert sorted(read) == sorted([*range(64)] * 2)
    (tmp_path / "process_1-of-3.json").unlink()
    with pytest.raises(DatasetError, match=r"process_1-of-3.json missing"):
        all_states(tmp_path)


def test_processes_that_read_all_have_one_state(builder: Any, tmp_path: Path) -> None:
    needs_grain()
    batches = iter(loader(builder))
    for index in range(2):
        next(batches)
        write_state(tmp_path, Host(index=index, count=2), batches.get_state())
    with pytest.raises(DatasetError, match="are both of one sampler and differ"):
        all_states(tmp_path)
    write_state(tmp_path, Host(index=0, count=2), batches.get_state())
    assert all_states(tmp_path) == [batches.get_state()]
