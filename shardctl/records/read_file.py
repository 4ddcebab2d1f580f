"""Counts one record file of any format; whatever lies at the path, the result is an answer.

`FORMATS` has the formats, and `count_file` counts a file, local or remote.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace

from shardctl.base.text import printable, quoted
from shardctl.base.tfds_rules import has_builder
from shardctl.dataset.dataset import FindingKind
from shardctl.errors import DatasetError, MissingDependencyError, ShardctlError
from shardctl.records.array_record import count_array_record
from shardctl.records.arrow import count_arrow, count_parquet
from shardctl.records.contents import Damage, FileContents, Report, no_report
from shardctl.records.mds import count_mds
from shardctl.records.tfrecord import count_tfrecord, is_tfrecord
from shardctl.records.webdataset import count_webdataset
from shardctl.stores.store import RangeFile, StoredFile
from shardctl.stores.stores import is_remote, store_of


@dataclass(frozen=True)
class RecordFormat:
    """How files of a format are counted, from framing or footers alone.

    count: a `ByteSource` -> what the file holds; with `checksums` its contents are read and checked
        too, and `report` takes how much is done. Damage is part of the answer, with record and byte
        where they are known. It raises MissingDependencyError where a package is not installed.
    suffixes: what file names of the format hold.
    """

    count: Callable[..., FileContents]
    suffixes: tuple[str, ...]


# By the names that layout files, `--format-of-files` and `Dataset.file_format` have for them.
FORMATS = {
    "tfrecord": RecordFormat(
        count_tfrecord, (".tfrecord", ".tfrecords", ".tfrec", ".tfr", ".record", ".records")
    ),
    "array_record": RecordFormat(count_array_record, (".array_record", ".arrayrecord")),
    "parquet": RecordFormat(count_parquet, (".parquet",)),
    "mds": RecordFormat(count_mds, (".mds",)),
    "webdataset": RecordFormat(count_webdataset, (".tar", ".tgz")),
    "arrow": RecordFormat(count_arrow, (".arrow", ".arrows")),
}
_PIECE = 1 << 22  # bytes that a digest takes at a time
HEAD_BYTES = 1 << 12  # of a file whose name does not tell its format

# What a store or a library raises of a file that it cannot read. What `report` raises to end the
# reading is none of these, nor is MemoryError, which says nothing of the file.
_FAILURES = (ShardctlError, OSError, ValueError, RuntimeError, EOFError, LookupError)


def why_not_read(file_format: str) -> str | None:
    """Return why files of a format are not read here, None where they are.

    >>> why_not_read("riegeli")
    'riegeli files are not read'
    """
    if not has_builder(file_format):
        return f"{file_format} files are counted by inspect, and not checked"
    return None if file_format in FORMATS else f"{printable(file_format, 40)} files are not read"


def count_file(
    file: StoredFile,
    file_format: str,
    *,
    checksums: bool = False,
    digest: bool = False,
    listed: bool = True,
    report: Report = no_report,
) -> FileContents:
    """Return what a file holds; without `checksums` its records are counted, no more.

    With `digest` all its bytes are read for their SHA-256, if its records could be counted.
    Whatever is wrong with the file, or with the place where it lies, is `damage` of the answer: one
    that changed since it was listed is "unreadable", as is one that cannot be reached. Where it is
    not `listed` whatever is at its path is counted. What is no regular file is not opened, since a
    FIFO would wait for a writer and a device may have no end. What `report` raises to end the
    reading is passed on.

    Raises:
        MissingDependencyError: a package that the format or the place needs is not installed.
        ValueError: a format that is not read here, see `why_not_read`.
    """
    counter = FORMATS.get(file_format)
    if counter is None:
        raise ValueError(f"no way to read {file_format}")
    try:
        store = store_of(file.path)
        there = file if listed else store.status(file.path)
        if there is None:
            return _not_there(file.path) or _nothing("missing", "missing")
        with store.open(there) as source:
            found = counter.count(source, checksums=checksums, report=report)
            if not digest or found.num_records is None:
                return found
            # Its bytes are reported once: by what checks its records, where that reads them.
            read = RangeFile(source, no_report if checksums else report)
            taken = hashlib.file_digest(io.BufferedReader(read, _PIECE), "sha256").hexdigest()
            return replace(found, digest=f"sha256:{taken}", num_bytes_read=source.num_bytes)
    except MissingDependencyError:
        raise
    except _FAILURES as error:
        return _not_read(file.path, error)


def format_of(file: StoredFile) -> str | None:
    """Return the format of a file by its name, else whether it begins as TFRecord files do.

    Raises:
        DatasetError: the name does not tell, and the file cannot be read.
        MissingDependencyError: a package that the place needs is not installed.
    """
    by_name = format_of_name(file.path)
    if by_name is not None or not file.num_bytes:
        return by_name
    with store_of(file.path).open(file) as source:
        head = source.read(0, min(HEAD_BYTES, file.num_bytes))
    return "tfrecord" if is_tfrecord(head) else None


def format_of_name(path: str) -> str | None:
    """Return the format that the name of a file ends in, or has before a number of the shard.

    >>> format_of_name("gs://b/toy-train.tfrecord-00000-of-00001"), format_of_name("a.tfrecord.gz")
    ('tfrecord', 'tfrecord')
    >>> format_of_name("tfrecord/part-00000")
    """
    name = re.split(r"[/\\]", path)[-1].lower()
    # A suffix counts also before a number: "toy.tfrecord-00000-of-00001", but not "tfrecords_old".
    endings = (
        (found.start(), known)
        for known, counter in FORMATS.items()
        for suffix in counter.suffixes
        for found in re.finditer(re.escape(suffix) + r"(?![a-z0-9_])", name)
    )
    # The last one in the name: "a.tar.parquet" is parquet.
    return max(endings, default=(0, None))[1]


def _not_read(path: str, error: Exception) -> FileContents:
    """Return what is at a path that a store or a library failed to read."""
    # What is in its place explains more than what the system said when it was opened.
    there = None if is_remote(path) else _not_there(path)
    if there is not None:
        return there
    cause = error.__cause__ if isinstance(error, DatasetError) else error
    said = cause.strerror if isinstance(cause, OSError) else None
    return _nothing("unreadable", printable(said or str(error) or type(error).__name__, 500))


def _not_there(path: str) -> FileContents | None:
    """Return what is in the place of a local file, None where it is a file."""
    try:
        # lstat first, so that a link to nowhere is told apart from no file at all.
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            status = os.stat(path)
        if stat.S_ISREG(status.st_mode):
            return None
        what = "a folder" if stat.S_ISDIR(status.st_mode) else "a FIFO or a device"
        return _nothing("not-a-file", f"{what}, not a file")
    except FileNotFoundError:
        if os.path.islink(path):
            text = f"a link to {quoted(os.readlink(path), 200)}, which is not there"
            return _nothing("not-a-file", text)
        return _nothing("missing", "missing")
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        return _nothing("unreadable", printable(said, 200))


def _nothing(kind: FindingKind, text: str) -> FileContents:
    return FileContents(num_records=None, damage=Damage(kind=kind, text=text))
