"""A copy has the bytes that are needed at their places, and is gone afterwards."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shardctl.errors import DatasetError
from shardctl.records import streams as partial_copy
from tests.byte_sources import far


def test_it_is_as_long_as_the_source_and_takes_no_room_for_the_rest() -> None:
    data = bytes(range(1, 256)) * 40_000
    source, report = far(data), list[int]()
    with partial_copy.partial_copy(source, 10_000_000, len(data), report=report.append) as path:
        copied = Path(path).read_bytes()
        assert copied[10_000_000:] == data[10_000_000:]
        assert copied[:10_000_000] == bytes(10_000_000)
        assert os.stat(path).st_blocks * 512 < 1_000_000
    assert not os.path.exists(path)
    assert sum(report) == source.num_bytes_read == len(data) - 10_000_000


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch: Any) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=1 << 28))
    with (
        pytest.raises(DatasetError, match="has no room for 9 bytes of it; TMPDIR may name another"),
        partial_copy.partial_copy(far(b"123456789"), 0, 9),
    ):
        pass


def test_few_large_copies_are_there_at_once(monkeypatch: Any) -> None:
    monkeypatch.setattr(partial_copy, "_LARGE", 2)
    at_once = partial_copy._at_once
    with partial_copy.partial_copy(far(b"abcd"), 0, 4), partial_copy.partial_copy(far(b"ab"), 0, 2):
        assert at_once._value == 1
    assert at_once._value == 2
