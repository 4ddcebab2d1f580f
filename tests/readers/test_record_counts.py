"""Record files counted from framing and footers, beside what was written into them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.readers.record_counts import (
    COUNTED_FORMATS,
    RecordCount,
    count_records,
    count_tfrecords,
)
from tests.cases import check_cases
from tests.tfds_datasets import build_dataset


@pytest.mark.parametrize("file_format", COUNTED_FORMATS)
def test_each_format_holds_what_was_written(tmp_path: Path, file_format: str) -> None:
    lengths = [0, 1, 40, 300]
    folder = build_dataset(tmp_path, splits={"train": lengths}, file_format=file_format)
    files = sorted(folder.glob("toy-train*"))
    assert [count_records(str(file), file_format) for file in files] == [
        RecordCount(num_records=length) for length in lengths
    ]
    missing = count_records(str(tmp_path / "none"), file_format)
    assert missing == RecordCount(num_records=None, problem="missing")
    files[3].write_bytes(files[3].read_bytes()[:-9])
    cut = count_records(str(files[3]), file_format)
    assert cut.problem
    assert cut.num_records == (299 if file_format == "tfrecord" else None)


def write_records(path: Path, records: list[bytes]) -> bytes:
    import tensorflow as tf

    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return path.read_bytes()


def read_by_tensorflow(path: Path) -> tuple[int, bool]:
    """Return how many records TensorFlow reads, and whether it then complains."""
    import tensorflow as tf

    num_read = 0
    try:
        for _ in tf.data.TFRecordDataset(str(path)):
            num_read += 1
    except tf.errors.DataLossError:
        return num_read, True
    return num_read, False


def test_records_of_any_size_are_counted(tmp_path: Path) -> None:
    sizes = st.lists(st.sampled_from([0, 1, 11, 12, 16, 1000, 16_383, 65_536, 200_000]), max_size=9)

    def law(drawn: list[int]) -> None:
        data = write_records(tmp_path / "records", [b"x" * size for size in drawn])
        assert count_tfrecords(io.BytesIO(data)) == RecordCount(num_records=len(drawn))

    check_cases(sizes, law, 60)


def test_a_file_that_is_cut_off_has_the_records_before_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "records"
    data = write_records(path, [b"a" * 5, b"", b"c" * 30])
    ends = [0, 21, 37, len(data)]
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        count = count_records(str(path), "tfrecord")
        assert count.num_records == sum(cut >= end for end in ends[1:])
        assert (count.problem is None) == (cut in ends)
        assert read_by_tensorflow(path)[0] == count.num_records


def test_what_is_not_a_record_file_says_where(tmp_path: Path) -> None:
    path = tmp_path / "records"
    data = write_records(path, [b"a" * 5, b"b" * 5, b"c" * 5])
    for byte in range(12):  # the length of the second record, or its checksum
        broken = bytearray(data)
        broken[21 + byte] ^= 64
        path.write_bytes(broken)
        count = count_records(str(path), "tfrecord")
        assert count == RecordCount(num_records=1, problem="no record at byte 21, after record 1")
        assert read_by_tensorflow(path) == (1, True)
    path.write_bytes(b"PNG and so on, long enough")
    assert count_records(str(path), "tfrecord").num_records == 0


def test_a_folder_in_the_place_of_a_file(tmp_path: Path) -> None:
    assert count_records(str(tmp_path), "tfrecord").problem == "Is a directory"


def test_a_format_that_nothing_counts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="riegeli"):
        count_records(str(tmp_path), "riegeli")


@pytest.mark.parametrize(
    ("module", "file_format", "package"),
    [
        ("array_record.python", "array_record", "pip install array-record"),
        ("pyarrow", "parquet", "pip install pyarrow"),
    ],
)
def test_a_missing_library_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, module: str, file_format: str, package: str
) -> None:
    import sys

    from shardctl.errors import MissingDependencyError

    hidden: Any = None
    monkeypatch.setitem(sys.modules, module, hidden)
    with pytest.raises(MissingDependencyError, match=package):
        count_records(str(tmp_path / "x"), file_format)
