"""TFRecord as one of the formats."""

from __future__ import annotations

from shardctl.core.tfds_rules import TFRECORD_HEADER_BYTES
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import FileContents, Told, untold
from shardctl.readers.records.tfrecord.scan import read_tfrecords


class TFRecord:
    """Records with their length before them; nothing in a file says how many there are."""

    name = "tfrecord"
    suffixes: tuple[str, ...] = (".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record", ".records")

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds, see `RecordFormat.count`."""
        return read_tfrecords(
            source.file(), checksums=checksums, told=told, num_bytes=source.num_bytes
        )

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins with the header of a record, see `RecordFormat.is_of`."""
        if len(head) < TFRECORD_HEADER_BYTES:
            return None
        return _begins_with_a_record(head)


def _begins_with_a_record(head: bytes) -> bool:
    from shardctl.readers.records.crc32c import length_crc32c, masked

    return masked(length_crc32c(head[:8])) == int.from_bytes(head[8:12], "little")
