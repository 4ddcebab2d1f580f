"""TFRecord as a format: told by its first bytes."""

from __future__ import annotations

import gzip
import zlib

from shardctl.readers.records.tfrecord.tfrecord import TFRecord
from tests.record_files import framed


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
