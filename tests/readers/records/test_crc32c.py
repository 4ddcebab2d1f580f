"""CRC32C beside its definition and its published check value."""

from __future__ import annotations

import random
import struct

from shardctl.readers.records.crc32c import extend_crc32c, length_crc32c, masked
from tests.cases import counted
from tests.record_files import crc32c, stored


def test_both_ways_give_the_checksum_of_the_definition() -> None:
    extend, rng = extend_crc32c(), random.Random(1)
    for size in counted(range(60)):
        data = rng.randbytes(size)
        expected = crc32c(data)
        assert length_crc32c(data) == expected
        assert extend(0, data) == expected
        assert extend(extend(0, data[: size // 3]), data[size // 3 :]) == expected
        assert struct.pack("<I", masked(expected)) == stored(data)


def test_the_check_value_of_the_catalogue_of_checksums() -> None:
    # reveng.sourceforge.io/crc-catalogue: CRC-32/ISCSI, and RFC 3720, B.4: 32 bytes of zeros.
    assert extend_crc32c()(0, b"123456789") == 0xE3069283
    assert length_crc32c(bytes(32)) == 0x8A9136AA
