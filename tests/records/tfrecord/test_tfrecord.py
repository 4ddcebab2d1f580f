"""TFRecord as a format: report by its first bytes, counted near and far."""

from __future__ import annotations

import gzip
import random
import zlib

import pytest

from shardctl.records import streams as window
from shardctl.records.contents import FileContents
from shardctl.records.read_file import count_file
from shardctl.records.tfrecord import TFRecord
from shardctl.stores.stores import store_of
from tests.record_files import counted_near, framed
from tests.stores.fault_server import Faults
from tests.stores.servers import FolderServer


def test_a_file_is_told_by_its_first_header() -> None:
    head = framed(b"abc" * 9)
    assert TFRecord().is_of(head) is True
    assert TFRecord().is_of(b"x" + head[1:]) is False
    assert TFRecord().is_of(head[:11]) is None


def test_a_compressed_file_is_told_by_what_is_inside() -> None:
    inside = framed(b"abc" * 9)
    for pack in (gzip.compress, zlib.compress):
        assert TFRecord().is_of(pack(inside)) is True
        assert TFRecord().is_of(pack(b"a line of a text\n")) is False
        assert TFRecord().is_of(pack(b"")) is None
    assert TFRecord().is_of(b"") is None


def counted_there(path: str, *, checksums: bool = False) -> FileContents:
    file = store_of(path).status(path)
    assert file is not None
    return count_file(file, "tfrecord", checksums=checksums)


def small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file of some kilobytes take several requests."""
    monkeypatch.setattr(window, "_REMOTE_FIRST", 300)
    monkeypatch.setattr(window, "_REMOTE_AHEAD", 4_000)
    monkeypatch.setattr(window, "_REMOTE_NEAR", 1_000)
    monkeypatch.setattr(window, "_REMOTE_HEADER", 12)


@pytest.mark.long
def test_a_file_behind_a_web_server(web: FolderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    small_requests(monkeypatch)
    rng = random.Random(1)
    files = {
        "small": framed(*(rng.randbytes(rng.randrange(90)) for _ in range(120))),
        "large": framed(*(rng.randbytes(rng.randrange(2_000, 2_900)) for _ in range(8))),
        "equal": framed(bytes(3_000)) * 15,
    }
    for name, data in files.items():
        for packed, compression in ((data, None), (gzip.compress(data, 1), "GZIP")):
            web.put(name, packed)
            for checksums in (True, False):
                found = counted_there(web.url(name), checksums=checksums)
                assert found.num_records == counted_near(data).num_records
                assert (found.damage, found.compression) == (None, compression)
            web.put(name, packed[:-5])
            cut = counted_there(web.url(name)).damage
            assert cut is not None
            assert cut.kind == "cut"


@pytest.mark.long
def test_a_body_that_ends_early_is_no_end_of_the_file(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_requests(monkeypatch)
    data = framed(*[b"x" * 84] * 100)  # half of a body ends between two records
    faults.put("a", data)
    for _ in range(2):
        faults.truncate = 1
        found = counted_there(faults.url("a"))
        assert (found.num_records, found.damage) == (100, None)


def test_a_file_that_is_replaced_meanwhile_is_not_counted(
    faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_requests(monkeypatch)
    faults.put("a", framed(*[b"x" * 84] * 100))
    num_answers = 0

    def replace_it() -> None:
        nonlocal num_answers
        num_answers += 1
        if num_answers == 2:
            faults.put("a", framed(*[b"y" * 84] * 100))

    faults.changed = replace_it
    found = counted_there(faults.url("a"))
    assert num_answers >= 2
    assert found.num_records is None
    assert found.damage is not None
    assert found.damage.kind == "unreadable"
    assert "changed while it was read" in found.damage.text
