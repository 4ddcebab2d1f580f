"""CRC32C as TFRecord files hold it: masked, of the length of a record and of its data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from shardctl.core.tfds_rules import CRC32C_MASK_DELTA, CRC32C_POLYNOMIAL
from shardctl.errors import MissingDependencyError

# Continues a checksum with more data; 0 begins one.
Extend = Callable[[int, bytes], int]


def extend_crc32c() -> Extend:
    """Return the function of google-crc32c, which uses the processor's own instruction.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    try:
        from google_crc32c import extend
    except ImportError as error:
        raise MissingDependencyError(
            "checking the data of TFRecord files needs a package: pip install google-crc32c"
        ) from error
    found: Extend = extend
    return found


def masked(crc: int) -> int:
    """Return a checksum as it is stored (xla/tsl/lib/hash/crc32c.h: Mask)."""
    return (((crc >> 15) | (crc << 17)) + CRC32C_MASK_DELTA) & 0xFFFFFFFF


def length_crc32c(data: bytes) -> int:
    """Return the CRC32C of a few bytes; this needs no package, so lengths are always checked.

    >>> hex(length_crc32c(b"123456789"))
    '0xe3069283'
    """
    table = _table()
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    """Return the table of CRC32C (Castagnoli)."""
    entries = []
    for byte in range(256):
        entry = byte
        for _ in range(8):
            entry = (entry >> 1) ^ (CRC32C_POLYNOMIAL if entry & 1 else 0)
        entries.append(entry)
    return tuple(entries)
