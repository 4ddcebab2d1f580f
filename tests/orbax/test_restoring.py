"""States restored on other numbers of processes: nothing is lost, and nothing repeated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import DatasetError, UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.tfds import Position, pipeline
from tests.cases import add_cases
from tests.late_modules import LateModule
from tests.tfds_datasets import build_dataset

ocp: Any = LateModule("orbax.checkpoint")
shardctl_args: Any = LateModule("shardctl.orbax")

LENGTHS = [9, 0, 17, 6, 11, 8, 1, 12]  # 64 examples
EPOCHS = 2
EVERY = dict.fromkeys(range(sum(LENGTHS)), EPOCHS)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    root = tmp_path_factory.mktemp("positions")
    return tfds.builder_from_directory(build_dataset(root, splits={"train": LENGTHS}))


def position_of(builder: Any, host: Host | None, **settings: Any) -> Position:
    return Position(
        builder,
        "train",
        ReadSettings(cycle=2, block=3, shuffle_seed=5, epochs=EPOCHS, host=host, **settings),
    )


def hosts(count: int) -> list[Host]:
    return [Host(index=i, count=count) for i in range(count)]


def read(position: Position, num_examples: int) -> list[int]:
    """Read so many examples of what a position has left, through TFDS, and count them."""
    rest = position.dataset(transform=lambda example: example["id"])
    return [int(i) for i in position.count(rest.take(num_examples).as_numpy_iterator())]


def save_all(folder: Path, positions: Sequence[Position]) -> None:
    """Save each position as one process of as many does, into one folder."""
    folder.mkdir()
    for process, position in zip(hosts(len(positions)), positions, strict=True):
        handler = shardctl_args.PositionHandler(process=process)
        handler.save(folder, shardctl_args.Save(position))


def restored(folder: Path, process: Host, position: Position) -> Position:
    with ocp.Checkpointer(shardctl_args.PositionHandler(process=process)) as checkpointer:
        same = checkpointer.restore(folder, args=shardctl_args.Restore(position)) is position
    assert same
    return position


def go_on(builder: Any, folder: Path, count: int) -> list[Position]:
    return [restored(folder, one, position_of(builder, one)) for one in hosts(count)]


@pytest.mark.slow
def test_eight_processes_stop_and_six_go_on_and_four(builder: Any, tmp_path: Path) -> None:
    numbers, seen = random.Random(8), list[int]()
    positions = [position_of(builder, one) for one in hosts(8)]
    for run, count in enumerate((6, 4)):
        for position in positions:  # each as far as it came: uneven counts
            seen += read(position, numbers.randint(0, 5))
        save_all(tmp_path / str(run), positions)
        positions = go_on(builder, tmp_path / str(run), count)
    again = go_on(builder, tmp_path / "1", 4)[3]
    left = [read(position, 1000) for position in positions]
    assert left[3] == read(again, 1000)
    assert Counter(seen) + Counter(i for one in left for i in one) == dict.fromkeys(
        range(sum(LENGTHS)), EPOCHS
    )
    add_cases(2)


def test_as_many_processes_go_on_with_the_very_examples(builder: Any, tmp_path: Path) -> None:
    stopped = [position_of(builder, one) for one in hosts(2)]
    seen = [read(position, 4 + i) for i, position in enumerate(stopped)]
    save_all(tmp_path / "data", stopped)
    for i, position in enumerate(go_on(builder, tmp_path / "data", 2)):
        whole = pipeline(
            builder,
            "train",
            ReadSettings(
                cycle=2, block=3, shuffle_seed=5, epochs=EPOCHS, host=Host(index=i, count=2)
            ),
            transform=lambda example: example["id"],
        )
        assert seen[i] + read(position, 1000) == [int(i) for i in whole.as_numpy_iterator()]


def test_processes_that_are_numbered_anew_take_the_state_of_their_host(
    builder: Any, tmp_path: Path
) -> None:
    stopped = [position_of(builder, one) for one in hosts(3)]
    for i, position in enumerate(stopped):
        position.advance(5 + i)
    save_all(tmp_path / "data", stopped)
    for process, host in zip(hosts(3), (2, 0, 1), strict=True):
        position = position_of(builder, Host(index=host, count=3))
        assert restored(tmp_path / "data", process, position).consumed == 5 + host


def test_processes_that_read_everything_go_on_as_any_number(builder: Any, tmp_path: Path) -> None:
    stopped = [position_of(builder, None) for _ in range(3)]
    for position in stopped:
        position.advance(9)
    save_all(tmp_path / "data", stopped)
    for process in (*hosts(3), *hosts(2), Host(index=0, count=1)):
        assert restored(tmp_path / "data", process, position_of(builder, None)).consumed == 9
    before = read(position_of(builder, None), 9)
    left = [read(position, 1000) for position in go_on(builder, tmp_path / "data", 2)]
    assert Counter(before) + Counter(i for one in left for i in one) == dict.fromkeys(
        range(sum(LENGTHS)), EPOCHS
    )


def test_two_processes_a_host_go_on_as_one_a_host(builder: Any, tmp_path: Path) -> None:
    stopped = [position_of(builder, one) for one in hosts(2) for _ in range(2)]
    for i, position in enumerate(stopped):
        position.advance(3 + i // 2)
    save_all(tmp_path / "data", stopped)
    assert [one.consumed for one in go_on(builder, tmp_path / "data", 2)] == [3, 4]


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


def test_this_process_is_the_one_that_jax_says() -> None:
    from shardctl.orbax.handler import this_process

    assert this_process() == Host(index=0, count=1)
