"""Riegeli files by their library, where it is installed: it is not on PyPI.

Source: google/riegeli, python/riegeli/records/record_reader.cc: a reader takes a file that seeks,
`read_records` raises RiegeliError at what is damaged, and closing does where the file is cut off.
"""

from __future__ import annotations

import re
from dataclasses import replace

from shardctl.errors import MissingDependencyError
from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.array_record import SIGNATURE
from shardctl.readers.records.contents import FileContents, Told, refused, untold

_REPORTED = 1 << 10  # records between two reports
_PLACE = re.compile(r"(?:chunk|byte|position)(?: at)? (\d+)")


class Riegeli:
    """Chunks of records, each with checksums; there is no footer, so all of a file is read."""

    name = "riegeli"
    suffixes: tuple[str, ...] = (".riegeli",)

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds, see `RecordFormat.count`; its checksums are always compared.

        Raises:
            MissingDependencyError: the library is not installed.
        """
        try:
            import riegeli
        except ImportError as error:
            raise MissingDependencyError(
                "riegeli files are read by a library that is not on PyPI: build it from "
                "github.com/google/riegeli, or write the dataset as array_record, whose chunks are "
                "the same (`tfds convert_format`)"
            ) from error
        found = FileContents(num_records=0, num_bytes=source.num_bytes, checked="checksums")
        num_records = done = 0
        file = source.file()
        file.seek(0)
        try:
            with riegeli.RecordReader(file) as reader:
                for num_records, _ in enumerate(reader.read_records(), 1):
                    if not num_records % _REPORTED:
                        reached = min(reader.pos.numeric, source.num_bytes)
                        told(max(0, reached - done))
                        done = max(done, reached)
        except (riegeli.RiegeliError, OSError, EOFError, ValueError) as error:
            place = _PLACE.search(str(error))
            damage = refused(
                error,
                empty=not source.num_bytes,
                record=num_records if source.num_bytes else None,
                byte=None if place is None else int(place[1]),
            )
            return replace(found, num_records=num_records, num_bytes_read=done, damage=damage)
        told(source.num_bytes - done)
        return replace(found, num_records=num_records, num_bytes_read=source.num_bytes)

    def is_of(self, head: bytes) -> bool | None:
        """Return False, or None: ArrayRecord files begin the same, see `RecordFormat.is_of`."""
        return None if head.startswith(SIGNATURE) else False
