"""TFRecord as one of the formats: plain files, and files compressed as a whole."""

from __future__ import annotations

from shardctl.core.tfds_rules import TFRECORD_HEADER_BYTES
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import FileContents, Told, untold
from shardctl.readers.records.crc32c import extend_crc32c
from shardctl.readers.records.tfrecord.blocks import Blocks, FarBlocks, NearBlocks, first_bytes
from shardctl.readers.records.tfrecord.headers import NO_LENGTH, Lengths
from shardctl.readers.records.tfrecord.inflated import InflatedBlocks, compression_of, opened
from shardctl.readers.records.tfrecord.scan import Scan

_TELLING = 1 << 12  # bytes that say how a file is compressed


class TFRecord:
    """Records with their length before them; nothing in a file says how many there are."""

    name = "tfrecord"
    suffixes: tuple[str, ...] = (".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record", ".records")

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds; without `checksums` the data of records is jumped over.

        Lengths are checked in any case. A record whose data is damaged is counted, and the reading
        goes on behind it; behind a damaged length nothing says where records begin. A file that is
        compressed as a whole is decompressed in any case; record and byte are those inside.

        Raises:
            MissingDependencyError: `checksums` without google-crc32c.
        """
        extend = extend_crc32c() if checksums else None
        head = first_bytes(source)
        plain = not head or Lengths()[head[:TFRECORD_HEADER_BYTES]] != NO_LENGTH
        compression = None if plain else compression_of(head[:_TELLING])
        if compression is not None:
            blocks: Blocks = InflatedBlocks(source, compression, head)
            head = b""
        else:
            plain_blocks = FarBlocks if source.local_path is None else NearBlocks
            blocks = plain_blocks(source, len(head))
        scan = Scan(blocks=blocks, told=told, extend=extend, buffer=head)
        scan.run()
        return FileContents(
            num_records=scan.num_records,
            num_bytes=source.num_bytes,
            num_bytes_read=blocks.num_bytes_read,
            checked="checksums" if checksums else "framing",
            damage=scan.damage,
            compression=compression,
        )

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file begins with the header of a record, see `RecordFormat.is_of`."""
        compression = compression_of(head[:_TELLING])
        if compression is not None:
            head = opened(head, compression) or b""
        if len(head) < TFRECORD_HEADER_BYTES:
            return None
        return Lengths()[head[:TFRECORD_HEADER_BYTES]] != NO_LENGTH
