"""What the database of counts keeps of a file, sealed, so that no damage of it is believed."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import Compression, FileContents

_COMPRESSIONS: dict[object, Compression] = {"GZIP": "GZIP", "ZLIB": "ZLIB"}


def folder_of(task: FileToCount) -> bytes:
    return _encoded(task.file.path[: -len(_base(task)) or None])


def name_of(task: FileToCount) -> bytes:
    return _encoded(_base(task))


def _base(task: FileToCount) -> str:
    return task.file.path.rpartition("/")[2]


def _encoded(path: str) -> bytes:
    """Return a path as bytes, those of names that are no UTF-8 too."""
    return path.encode("utf-8", "surrogatepass")


def alike(files: Sequence[FileToCount]) -> Iterable[list[int]]:
    """Return the places of files that are looked up by one query."""
    places: dict[tuple[bytes, str, bool], list[int]] = {}
    for place, task in enumerate(files):
        places.setdefault((folder_of(task), task.file_format, task.checksums), []).append(place)
    return places.values()


def rows_to_keep(
    counted: Iterable[tuple[FileToCount, FileContents]], ids: Mapping[bytes, int]
) -> Iterator[tuple[object, ...]]:
    for task, contents in counted:
        row = (
            int(task.checksums),
            task.file.num_bytes,
            task.file.version,
            contents.num_records,
            contents.compression,
        )
        folder = ids[folder_of(task)]
        yield (folder, name_of(task), task.file_format, *row, _seal(task, row))


def contents_in(
    rows: Mapping[bytes, Sequence[tuple[object, ...]]], task: FileToCount
) -> FileContents | None:
    """Return what is kept of a file, None where that is of another version of it."""
    for *row, seal in rows.get(name_of(task), ()):
        checksums, num_bytes, version, num_records, compression = row
        same = (num_bytes, version) == (task.file.num_bytes, task.file.version)
        if version and same and seal == _seal(task, row) and type(num_records) is int:
            return FileContents(
                num_records=num_records,
                num_bytes=task.file.num_bytes,
                checked="checksums" if checksums else "framing",
                compression=_COMPRESSIONS.get(compression),
            )
    return None


def _seal(task: FileToCount, row: Sequence[object]) -> int:
    """Return a checksum of a row and its path, so that no damage of the database is believed."""
    return zlib.crc32(repr((task.file.path, task.file_format, *row)).encode("utf-8", "replace"))
