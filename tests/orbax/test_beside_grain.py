"""Positions and loaders of Grain in one checkpoint, each by its own handler."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import shardctl
from shardctl.errors import DatasetError
from shardctl.grain import data_loader, elastic_iterator, map_dataset
from shardctl.guide.guides import guide_files
from shardctl.orbax.handler import states, write_state
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


def libraries(grain: Any) -> dict[str, Any]:
    """Return what lines of the guide have imported."""
    return {"grain": grain, "ocp": ocp, "shardctl": shardctl, "shardctl_args": shardctl_args}


def loader(builder: Any, host: Host | None = None, **place: Any) -> Any:
    settings = {"cycle": 2, "block": 2, "shuffle_seed": 5, "epochs": 2, "batch": 4, "host": host}
    return data_loader(list(range(64)), builder, "train", settings, **place)


def ids(batches: Any) -> list[int]:
    return [int(i) for batch in batches for i in batch]


def test_each_is_restored_by_its_own_handler(builder: Any, tmp_path: Path) -> None:
    grain = needs_grain()
    restore = grain.checkpoint.CheckpointRestore
    position, batches = Position(builder, "train", SETTINGS), iter(loader(builder))
    position.advance(8)
    head = ids(next(batches) for _ in range(5))
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        names = {"position": position, "batches": batches, "checkpoints": manager, "step": 1}
        exec(guide_files()["beside.py"], libraries(grain) | names)
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
    assert ids(loader(builder, states=states(folder))) == rest
    assert shardctl_args.states(str(folder.parent / "train")) == [again.get_state()]
    with ocp.CheckpointManager(tmp_path / "run") as manager:
        items = {"eval": shardctl_args.Restore(again)}
        with pytest.raises(DatasetError, match=r"eval/process_0-of-1.json: this is not a position"):
            manager.restore(1, args=ocp.args.Composite(**items))
    assert again.consumed == 8


def test_loaders_of_three_processes_go_on_as_two(builder: Any, tmp_path: Path) -> None:
    grain, read = needs_grain(), []
    run, item = tmp_path, tmp_path / "checkpoints" / "120" / "iter"
    item.mkdir(parents=True)
    for index in range(3):
        process = Host(index=index, count=3)
        batches = iter(loader(builder, process))
        read += ids(next(batches) for _ in range(index + 2))
        write_state(item, process, batches.get_state())
    for index in range(2):
        settings = replace(SETTINGS, host=Host(index=index, count=2))
        names = {"run": run, "builder": builder, "settings": settings, "source": [*range(64)]}
        exec(guide_files()["moved.py"], names := libraries(grain) | names)
        assert len(names["states"]) == 3
        read += ids(names["loader"])
    assert sorted(read) == sorted([*range(64)] * 2)
    (item / "process_1-of-3.json").unlink()
    with pytest.raises(DatasetError, match=r"process_1-of-3.json missing"):
        states(item)


def test_processes_that_read_all_have_one_state(builder: Any, tmp_path: Path) -> None:
    needs_grain()
    batches = iter(loader(builder))
    for index in range(2):
        next(batches)
        write_state(tmp_path, Host(index=index, count=2), batches.get_state())
    with pytest.raises(DatasetError, match="are both of one sampler and differ"):
        states(tmp_path)
    write_state(tmp_path, Host(index=0, count=2), batches.get_state())
    assert states(tmp_path) == [batches.get_state()]


def test_a_state_that_all_processes_share_is_one_file(builder: Any, tmp_path: Path) -> None:
    needs_grain()
    settings = replace(SETTINGS, drop_remainder=True)
    examples = map_dataset(list(range(64)), builder, "train", settings)
    batches = elastic_iterator(examples)
    next(batches)
    file = tmp_path / "process_0.json"
    file.write_text(json.dumps(batches.get_state()))
    (state,) = states(tmp_path)
    read = []
    for index in range(2):
        host = Host(index=index, count=2)
        own = replace(settings, host=host, batch=2)
        read += ids(data_loader([*range(64)], builder, "train", own, states=[state]))
    assert sorted(read) == sorted(ids(batches))
    file.write_text(json.dumps({"global_next_index": 4}))
    with pytest.raises(DatasetError, match=r"process_0.json: this is not a position"):
        states(tmp_path)
