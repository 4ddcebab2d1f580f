"""One interface for all formats: what is in a record file, and whether it is of a format."""

from __future__ import annotations

from typing import Protocol

from shardctl.files.stores.store import ByteSource
from shardctl.readers.records.contents import FileContents, Told, untold


class RecordFormat(Protocol):
    """How files of a format are counted, from framing or footers alone.

    name: as layout files, `--format-of-files` and `Dataset.file_format` say it.
    suffixes: what file names of the format hold, `.tfrecord`, `.parquet`.
    """

    name: str
    suffixes: tuple[str, ...]

    def count(
        self, source: ByteSource, *, checksums: bool = False, told: Told = untold
    ) -> FileContents:
        """Return what a file holds; with `checksums` its contents are read and checked too.

        Damage is part of the answer, with record and byte where they are known.

        Raises:
            MissingDependencyError: a package that the format needs is not installed.
        """

    def is_of(self, head: bytes) -> bool | None:
        """Return whether a file that begins so (4 KiB of it) is of the format, None for unsure."""
