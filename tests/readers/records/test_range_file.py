"""A file over ranges is a file, and reads nothing ahead."""

from __future__ import annotations

import io
import random

from shardctl.readers.records.window import RangeFile
from tests.byte_sources import far
from tests.cases import counted


def test_it_reads_as_a_file_does() -> None:
    rng = random.Random(2)
    data = rng.randbytes(1000)
    for _ in counted(range(40)):
        source = far(data)
        told: list[int] = []
        ours, other = RangeFile(source, told.append), io.BytesIO(data)
        for _ in range(20):
            whence, offset = rng.choice([(0, 500), (1, 3), (2, -200), (0, 0), (2, 0)])
            assert ours.seek(offset, whence) == other.seek(offset, whence)
            size = rng.choice([0, 1, 99, 5000, -1])
            assert ours.read(size) == other.read(size)
            assert ours.tell() == other.tell()
        assert ours.num_bytes_read == source.num_bytes_read == sum(told)
    assert ours.readable()
    assert ours.seekable()
    assert not ours.closed
