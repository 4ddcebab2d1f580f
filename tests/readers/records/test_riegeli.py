"""Riegeli files by a stand-in of their library, which nobody can install by pip."""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace, TracebackType
from typing import Any, BinaryIO

import pytest

from shardctl.errors import MissingDependencyError
from shardctl.readers.records.contents import FileContents
from shardctl.readers.records.riegeli import Riegeli
from tests.byte_sources import MemorySource, far, near


class RiegeliError(Exception):
    """What riegeli/base/riegeli_error.py defines."""


class RecordReader:
    """Reads records behind their lengths, as google/riegeli's RecordReader is used and fails.

    python/riegeli/records/record_reader.cc: `read_records` raises at damage; at a file that is cut
    off it ends, and closing raises; in a `with` whose body raised, closing raises nothing.
    """

    def __init__(self, src: BinaryIO) -> None:
        self._src = src
        self._is_cut = False

    @property
    def pos(self) -> SimpleNamespace:
        return SimpleNamespace(numeric=self._src.tell())

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        if kind is None and self._is_cut:
            raise RiegeliError("Truncated Riegeli/records file; at byte 70; reading file")

    def read_records(self) -> Iterator[bytes]:
        while head := self._src.read(4):
            length = struct.unpack("<I", head.ljust(4, b"\0"))[0]
            if length == 0xFFFFFFFF:
                raise RiegeliError("Corrupted Riegeli/records file: chunk at 64, length 2\nmore")
            record = self._src.read(length)
            if len(record) < length:
                self._is_cut = True
                return
            yield record


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("riegeli")
    module.RecordReader, module.RiegeliError = RecordReader, RiegeliError
    monkeypatch.setitem(sys.modules, "riegeli", module)


def records(count: int) -> bytes:
    return b"".join(struct.pack("<I", 5) + b"abcde" for _ in range(count))


def read(data: bytes, **options: Any) -> FileContents:
    return Riegeli().count(near(data), **options)


@pytest.mark.parametrize("count", [0, 1, 5000])
@pytest.mark.parametrize("place", [near, far])
def test_all_records_are_read(count: int, place: Any) -> None:
    data, told = records(count), list[int]()
    found = Riegeli().count(place(data), told=told.append)
    assert (found.num_records, found.damage, found.checked) == (count, None, "checksums")
    assert sum(told) == found.num_bytes_read == found.num_bytes == len(data)


def test_damage_is_named_by_the_records_before_it() -> None:
    found = read(records(7) + b"\xff\xff\xff\xff")
    assert found.damage is not None
    assert (found.num_records, found.damage.record, found.damage.byte) == (7, 7, 64)
    assert found.damage.text == "record 7: Corrupted Riegeli/records file: chunk at 64, length 2"


def test_a_file_that_is_cut_off_is_noticed_at_its_end() -> None:
    found = read(records(7)[:-1])
    assert found.damage is not None
    assert (found.num_records, found.damage.record, found.damage.byte) == (6, 6, 70)
    assert not found.whole


def test_what_a_source_raises_is_damage() -> None:
    class Failing(MemorySource):
        def file(self) -> BinaryIO:
            class File(io.BytesIO):
                def read(self, size: int | None = -1) -> bytes:
                    raise OSError(5, "Input/output error")

            return File()

    found = Riegeli().count(Failing(records(1)))
    assert found.damage is not None
    assert "Input/output error" in found.damage.text


def test_a_missing_library_is_named_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: Any = None
    monkeypatch.setitem(sys.modules, "riegeli", hidden)
    with pytest.raises(MissingDependencyError, match=r"not on PyPI.*tfds convert_format"):
        read(records(1))


def test_the_signature_is_that_of_array_record_too() -> None:
    form = Riegeli()
    assert form.is_of(b"hello" * 20) is False
    head = bytes.fromhex("83af70d10d884a3f") + bytes(8) + b"\x40" + bytes(7)
    assert form.is_of(head + bytes(40)) is None
