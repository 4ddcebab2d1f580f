"""One record file, of any format that is read here; whatever is in its place ends in an answer."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from shardctl.core.dataset.file_finding import FindingKind
from shardctl.core.text import printable, quoted
from shardctl.core.tfds_rules import FILE_FORMATS
from shardctl.readers.records.array_record import read_array_record
from shardctl.readers.records.contents import Damage, FileContents, Told, untold
from shardctl.readers.records.parquet import read_parquet
from shardctl.readers.records.tfrecord import read_tfrecords

READ_FORMATS = ("tfrecord", "array_record", "parquet")

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def why_not_read(file_format: str) -> str | None:
    """Return why files of a format are not read here, None where they are.

    >>> why_not_read("riegeli")
    'riegeli files are not read: their library for Python is not on PyPI'
    """
    if file_format in READ_FORMATS:
        return None
    if file_format == "riegeli":
        return "riegeli files are not read: their library for Python is not on PyPI"
    known = "a format that TFDS knows" if file_format in FILE_FORMATS else "no format of TFDS"
    return f"{printable(file_format, 40)} files are not read: it is {known}"


def read_record_file(
    path: str, file_format: str, *, checksums: bool = True, told: Told = untold
) -> FileContents:
    """Return what a local file holds; without `checksums` its records are counted, no more.

    What is no regular file is not opened, since a FIFO would wait for a writer and a device may
    have no end.

    Raises:
        MissingDependencyError: a package that the format needs is not installed.
        ValueError: a format that is not read here, see `why_not_read`.
    """
    if file_format not in READ_FORMATS:
        raise ValueError(f"no way to read {file_format}")
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return _no_file(status)
        # What was put there since then must not be waited for either.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with open(descriptor, "rb", buffering=0) as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return _no_file(status)
            size = status.st_size
            return _read(path, file, size, file_format, checksums=checksums, told=told)
    except FileNotFoundError:
        if os.path.islink(path):
            text = f"a link to {quoted(os.readlink(path), 200)}, which is not there"
            return _nothing("not-a-file", text)
        return _nothing("missing", "missing")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        return _nothing("unreadable", printable(said, 200))


_BINARY = getattr(os, "O_BINARY", 0)


def _read(
    path: str, file: BinaryIO, num_bytes: int, file_format: str, *, checksums: bool, told: Told
) -> FileContents:
    if file_format == "tfrecord":
        return read_tfrecords(file, checksums=checksums, told=told, num_bytes=num_bytes)
    if file_format == "array_record":
        return read_array_record(path, num_bytes=num_bytes, checksums=checksums, told=told)
    return read_parquet(file, num_bytes=num_bytes, checksums=checksums, told=told)


def _no_file(status: os.stat_result) -> FileContents:
    kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
    return _nothing("not-a-file", f"{kind}, not a file")


def _nothing(kind: FindingKind, text: str) -> FileContents:
    return FileContents(num_records=None, damage=Damage(kind=kind, text=text))
