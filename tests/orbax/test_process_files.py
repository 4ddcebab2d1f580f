"""The files of the processes: which are read, which are refused, and by which name."""

from __future__ import annotations

import re
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


def test_as_many_processes_need_their_own_file_alone(tmp_path: Path) -> None:
    state = state_of("1/3", 2)  # on a disk that no other process has
    files.write_state(tmp_path, Host(index=1, count=3), state)
    assert files.own_state(tmp_path, Host(index=1, count=3), Host(index=1, count=3)) == state
    with pytest.raises(DatasetError, match=r"process_0-of-3.json, process_2-of-3.json missing"):
        files.states(tmp_path)


def test_another_number_of_processes_or_another_host_has_no_state_of_its_own(
    tmp_path: Path,
) -> None:
    filled(tmp_path, state_of("0/2", 1), state_of("1/2", 2))
    assert files.own_state(tmp_path, Host(index=0, count=3), Host(index=0, count=3)) is None
    assert files.own_state(tmp_path, Host(index=0, count=1), None) is None
    assert files.own_state(tmp_path, Host(index=0, count=2), Host(index=1, count=2)) is None
    assert files.own_state(tmp_path, Host(index=0, count=2), None) is None


@pytest.mark.parametrize(
    ("hosts", "kept"),
    [
        ([f"{i}/11" for i in (3, 10, 0, 1, 2, 4, 5, 6, 7, 9, 8)], [f"{i}/11" for i in range(11)]),
        (["0/2", "0/2", "1/2", "1/2"], ["0/2", "1/2"]),  # two processes a host
        ([None, None, None], [None]),  # processes that read everything
    ],
)
def test_there_is_a_state_a_host_in_their_order(tmp_path: Path, hosts: Any, kept: Any) -> None:
    filled(tmp_path, *(state_of(host, 3) for host in hosts))
    assert files.states(tmp_path) == [state_of(host, 3) for host in kept]


@pytest.mark.parametrize(
    ("host", "said"), [(None, "both of no host and differ"), ("1/2", "both of host 1 of 2 and")]
)
def test_one_host_in_two_places_is_refused(tmp_path: Path, host: str | None, said: str) -> None:
    filled(tmp_path, state_of(host, 3), state_of(host, 3), state_of(host, 4))
    with pytest.raises(
        DatasetError, match=f"process_0-of-3.json and process_2-of-3.json are {said}"
    ):
        files.states(tmp_path)


OWN, STATE = "process_0-of-1.json", state_of(None, 3)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (None, "item: cannot be read .*No such file"),
        ({}, "item: no position is in this item"),
        ({"metadata": b"{}"}, "item: no position is in this item"),
        ({OWN: STATE, "process_01-of-2.json": b"{}"}, "process_01-of-2.json is the file of no pr"),
        ({OWN: STATE, "process_1-of-1.json": STATE}, "process_1-of-1.json is the file of no proc"),
        ({OWN: STATE, "process_0-of-2.json": STATE}, "item: files of 1, 2 processes are in one"),
        ({OWN: STATE[:-20]}, f"{OWN}: .*JSON"),
        ({OWN: b""}, f"{OWN}: .*"),
        ({OWN: STATE.replace(b'd": 3', b'd": 4')}, f"{OWN}: it does not match its digest"),
        ({OWN: b'{"version": 2, "last_seen_indices": {}}'}, f"{OWN}: this is not a position"),
        ({OWN: None}, f"{OWN}: cannot be read .*directory"),
        ({"process_0.json": STATE[:-20]}, r"process_0.json: |is the file of no process"),
        ({"process_0.json": None}, r"process_0.json: cannot be read|is the file of no process"),
        ({"process_0.json": STATE, OWN: STATE}, r"process_0.json is the file of no process"),
    ],
)
@pytest.mark.parametrize("alone", [True, False])
def test_what_no_run_wrote_is_refused_by_name(
    tmp_path: Path, made: dict[str, bytes | None] | None, said: str, alone: bool
) -> None:
    folder = tmp_path / "item"
    if made is not None:
        folder.mkdir()
    for name, content in (made or {}).items():
        (folder / name).mkdir() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(DatasetError, match=said) as refusal:
        files.own_state(folder, Host(index=0, count=1), None) if alone else files.states(folder)
    assert "\n" not in str(refusal.value)
    assert re.match(rf"{re.escape(str(folder))}(/\S+)?: ", str(refusal.value))
