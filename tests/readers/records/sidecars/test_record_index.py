"""Indices of records, as NVIDIA's tools write them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from shardctl.errors import DatasetError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import LocalStore
from shardctl.readers.records import sidecars as record_index
from shardctl.readers.records.sidecars import RecordIndices, is_record_index
from tests.record_files import framed


def tfrecord2idx(data: bytes) -> str:
    """Return the index that DALI's tools/tfrecord2idx writes: offset and length of each record."""
    lines, position = [], 0
    while position < len(data):
        length = 16 + int.from_bytes(data[position : position + 8], "little")
        lines.append(f"{position} {length}\n")
        position += length
    return "".join(lines)


def indices(folder: Path) -> RecordIndices:
    return RecordIndices(
        file for file in LocalStore().scan(str(folder)) if is_record_index(file.path)
    )


@pytest.mark.parametrize("name", ["a.tfrecord.idx", "a.tfrecord.index", "a.idx", "a.index"])
@pytest.mark.parametrize("count", [0, 1, 30])
def test_records_and_bytes_are_said(tmp_path: Path, name: str, count: int) -> None:
    data = framed(*(b"x" * number for number in range(count)))
    (tmp_path / name).write_text(tfrecord2idx(data))
    expected = indices(tmp_path).expected(str(tmp_path / "a.tfrecord"))
    assert expected is not None
    assert (expected.num_examples, expected.num_bytes) == (count, len(data))
    assert expected.said_by == name
    assert indices(tmp_path).expected(str(tmp_path / "b.tfrecord")) is None
    assert indices(tmp_path).absent(set()) == []


def test_the_index_of_an_archive_says_its_samples(tmp_path: Path) -> None:
    # DALI, tools/wds2idx.py: a version and the number, then a line a sample.
    (tmp_path / "a.idx").write_text("v1.2 2\njpg 512 3 a.jpg\njpg 1536 3 b.jpg\n")
    expected = indices(tmp_path).expected(str(tmp_path / "a.tar"))
    assert expected is not None
    assert (expected.num_examples, expected.num_bytes) == (2, None)


def test_shards_that_are_named_by_a_number_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001.idx").write_text("0 20\n")
    expected = indices(tmp_path).expected(str(tmp_path / "train-00000-of-00001"))
    assert expected is not None
    assert expected.num_examples == 1


@pytest.mark.parametrize("text", ["0 20\n30 5\n", "5 20\n", "0 20\n20\n", "a b\n", "0 -5\n", "{}"])
def test_what_is_no_index_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.idx").write_text(text)
    with pytest.raises(DatasetError, match=r"'a.idx'.*(record|index)"):
        indices(tmp_path).expected(str(tmp_path / "a.tfrecord"))


def test_remote_indices_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"gs://b/{number:02}.idx": f"0 {number}\n" for number in range(20)}
    texts["gs://b/20.idx"] = "hello"
    at_once = threading.Barrier(8, timeout=10)  # nobody goes on before so many read
    asked: list[str] = []

    class Store:
        def read(self, path: str, *, max_num_bytes: int) -> bytes:
            asked.append(path)
            if len(asked) <= 8:
                at_once.wait()
            return texts[path].encode()

    monkeypatch.setattr(record_index, "store_of", lambda path: Store())
    found = RecordIndices(StoredFile(path=path, num_bytes=1) for path in texts)
    for number in range(20):
        expected = found.expected(f"gs://b/{number:02}.tfrecord")
        assert expected is not None
        assert expected.num_bytes == number
    for _ in range(2):
        with pytest.raises(DatasetError, match=r"'20.idx' is no index"):
            found.expected("gs://b/20.tfrecord")
    assert sorted(asked) == sorted(texts)
