"""The files of the processes: which are read, which are refused, and by which name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError
from shardctl.saved.position_file import PositionRecord, position_text
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from tests.late_modules import LateModule

pytestmark = pytest.mark.long

files: Any = LateModule("shardctl.orbax.handler")

DATASET = Dataset(name="toy", version="1.0.0", splits=(Split(name="train", shard_lengths=(5, 7)),))


def state_of(host: str | None, consumed: int) -> bytes:
    settings = ReadSettings(shuffle_seed=1, host=None if host is None else Host.parse(host))
    return position_text(
        PositionRecord(dataset=DATASET.identity, spec="train", settings=settings, consumed=consumed)
    )


def filled(folder: Path, *states: bytes) -> Path:
    for i, state in enumerate(states):
        files.write_state(folder, Host(index=i, count=len(states)), state)
    return folder


def test_each_process_writes_a_file_of_its_own(tmp_path: Path) -> None:
    states = [state_of("0/3", 1), state_of("1/3", 2), state_of("2/3", 0)]
    filled(tmp_path, *states)
    names = ["process_0-of-3.json", "process_1-of-3.json", "process_2-of-3.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for i, state in enumerate(states):
        process = Host(index=i, count=3)
        assert files.own_state(tmp_path, process, process) == state
    assert files.all_states(tmp_path) == states


def test_as_many_processes_need_their_own_file_alone(tmp_path: Path) -> None:
    state = state_of("1/3", 2)  # on a disk that no other process has
    files.write_state(tmp_path, Host(index=1, count=3), state)
    assert files.own_state(tmp_path, Host(index=1, count=3), Host(index=1, count=3)) == state
    with pytest.raises(DatasetError, match=r"process_0-of-3.json, process_2-of-3.json missing"):
        files.all_states(tmp_path)


def test_another_number_of_processes_or_another_host_has_no_state_of_its_own(
    tmp_path: Path,
) -> None:
    filled(tmp_path, state_of("0/2", 1), state_of("1/2", 2))
    assert files.own_state(tmp_path, Host(index=0, count=3), Host(index=0, count=3)) is None
    assert files.own_state(tmp_path, Host(index=0, count=1), None) is None
    assert files.own_state(tmp_path, Host(index=0, count=2), Host(index=1, count=2)) is None
    assert files.own_state(tmp_path, Host(index=0, count=2), None) is None


def test_the_states_stand_in_the_order_of_their_hosts(tmp_path: Path) -> None:
    hosts = [f"{i}/11" for i in (3, 10, 0, 1, 2, 4, 5, 6, 7, 9, 8)]
    filled(tmp_path, *(state_of(host, 1) for host in hosts))
    assert [files.host_of(state) for state in files.all_states(tmp_path)] == [
        Host(index=i, count=11) for i in range(11)
    ]


def test_processes_that_are_one_host_have_one_state(tmp_path: Path) -> None:
    first, second = state_of("0/2", 3), state_of("1/2", 4)
    assert files.all_states(filled(tmp_path, first, first, second, second)) == [first, second]


def test_processes_that_read_everything_have_one_state(tmp_path: Path) -> None:
    state = state_of(None, 3)
    assert files.all_states(filled(tmp_path, state, state, state)) == [state]


@pytest.mark.parametrize(
    ("host", "said"), [(None, "both of no host and differ"), ("1/2", "both of host 1 of 2 and")]
)
def test_one_host_in_two_places_is_refused(tmp_path: Path, host: str | None, said: str) -> None:
    filled(tmp_path, state_of(host, 3), state_of(host, 3), state_of(host, 4))
    with pytest.raises(
        DatasetError, match=f"process_0-of-3.json and process_2-of-3.json are {said}"
    ):
        files.all_states(tmp_path)


def nothing(folder: Path) -> None:
    pass


def without_a_folder(folder: Path) -> None:
    folder.rmdir()


def of_another_kind(folder: Path) -> None:
    (folder / "metadata").write_text("{}")


def unknown(folder: Path) -> None:
    filled(folder, state_of(None, 3))
    (folder / "process_01-of-2.json").write_text("{}")


def one_too_many(folder: Path) -> None:
    filled(folder, state_of(None, 3))
    write_state_at(folder, "process_1-of-1.json")


def of_two_runs(folder: Path) -> None:
    filled(folder, state_of(None, 3))
    write_state_at(folder, "process_0-of-2.json")


def write_state_at(folder: Path, name: str) -> None:
    (folder / name).write_bytes(state_of(None, 3))


def torn(folder: Path) -> None:
    (folder / "process_0-of-1.json").write_bytes(state_of(None, 3)[:-20])


def empty(folder: Path) -> None:
    (folder / "process_0-of-1.json").write_bytes(b"")


def edited(folder: Path) -> None:
    text = state_of(None, 3).replace(b'"consumed": 3', b'"consumed": 4')
    (folder / "process_0-of-1.json").write_bytes(text)


def of_grain(folder: Path) -> None:
    (folder / "process_0-of-1.json").write_text('{"version": 2, "last_seen_indices": {"0": 5}}')


def a_folder(folder: Path) -> None:
    (folder / "process_0-of-1.json").mkdir()


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (nothing, "item: no position is in this item"),
        (without_a_folder, "item: cannot be read .*No such file"),
        (of_another_kind, "item: no position is in this item"),
        (unknown, "item: process_01-of-2.json is the file of no process"),
        (one_too_many, "item: process_1-of-1.json is the file of no process"),
        (of_two_runs, "item: files of 1, 2 processes are in one checkpoint"),
        (torn, "process_0-of-1.json: .*JSON"),
        (empty, "process_0-of-1.json: .*"),
        (edited, "process_0-of-1.json: it does not match its digest"),
        (of_grain, "process_0-of-1.json: this is not a position"),
        (a_folder, "process_0-of-1.json: cannot be read .*directory"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_no_run_wrote_is_refused_by_name(
    tmp_path: Path, made: Callable[[Path], None], said: str, alone: bool
) -> None:
    folder = tmp_path / "item"
    folder.mkdir()
    made(folder)
    with pytest.raises(DatasetError, match=said) as refusal:
        files.own_state(folder, Host(index=0, count=1), None) if alone else files.all_states(folder)
    assert "\n" not in str(refusal.value)
    assert re.match(rf"{re.escape(str(folder))}(/\S+)?: ", str(refusal.value))


def test_a_file_is_named_as_grain_names_its_own() -> None:
    assert files.file_of(Host(index=7, count=12)) == "process_7-of-12.json"
