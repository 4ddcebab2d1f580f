"""Files of this machine's disks, as every kind of place answers for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.stores.stores import LocalStore


def test_a_file_is_listed_opened_and_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    (tmp_path / "folder").mkdir()
    store = LocalStore()
    (listed,) = store.scan(str(tmp_path))
    assert listed == store.status(str(tmp_path / "a"))
    assert store.subfolders(str(tmp_path)) == ["folder"]
    with store.open(listed) as source:
        assert (source.read(0, 2), source.read(8, 10)) == (b"01", b"89")


def test_a_file_that_changed_since_it_was_listed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    store = LocalStore()
    (listed,) = store.scan(str(tmp_path))
    os.utime(path, ns=(1, 1))
    with pytest.raises(DatasetError, match="changed while it was read"), store.open(listed):
        pass


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    os.utime(path, ns=(1, 1))
    (listed,) = LocalStore().scan(str(tmp_path))

    def read() -> None:
        with LocalStore().open(listed) as source:
            assert source.read(0, 5) == b"01234"
            path.write_bytes(b"another 10")
            assert source.read(5, 10) == b"er 10"

    with pytest.raises(DatasetError, match="changed while it was read"):
        read()


def test_a_file_in_whose_place_another_is_put_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    (listed,) = LocalStore().scan(str(tmp_path))
    (tmp_path / "b").write_bytes(b"another 10")
    os.utime(tmp_path / "b", ns=(1, 1))

    def read(change: Callable[[], object]) -> None:
        with LocalStore().open(listed):
            change()

    with pytest.raises(DatasetError, match="changed while it was read"):
        read(lambda: os.replace(tmp_path / "b", path))
    listed = replace(listed, version="mtime:1")
    with pytest.raises(DatasetError, match="vanished while it was read"):
        read(path.unlink)


def test_a_fifo_is_no_file_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a")
    assert LocalStore().status(str(tmp_path / "a")) is None
    assert list(LocalStore().scan(str(tmp_path))) == []
