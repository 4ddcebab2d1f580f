"""TFRecord as a format: told by its first bytes."""

from __future__ import annotations

from shardctl.readers.records.tfrecord.tfrecord import TFRecord
from tests.record_files import framed


def test_a_file_is_told_by_its_first_header() -> None:
    head = framed(b"abc" * 9)
    assert TFRecord().is_of(head) is True
    assert TFRecord().is_of(b"x" + head[1:]) is False
    assert TFRecord().is_of(head[:11]) is None
