"""Indices of the records of one file: NVIDIA DALI's `tfrecord2idx` and `wds2idx`, `tfrecord2idx`.

A line of text a record, its offset and its length; that of a tar archive begins with a version and
the number of samples. Source: DALI, tools/tfrecord2idx and tools/wds2idx.py; vahidk/tfrecord,
tfrecord/tools/tfrecord2idx.py.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Set

from shardctl.core.text import quoted
from shardctl.errors import DatasetError
from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stores import is_remote, store_of
from shardctl.files.stores.transfer.concurrently import concurrently
from shardctl.readers.records.sidecars.expected import ExpectedCount

_ENDINGS = (".index", ".idx")
_MOST_BYTES = 1 << 30
_AT_ONCE = 32
_ARCHIVE = re.compile(rb"v1\.\d (\d{1,18})\r?\n")


def is_record_index(name: str) -> bool:
    """Return whether a file is an index of the records of another, by its name."""
    return name.endswith(_ENDINGS)


class RecordIndices:
    """Indices beside their files, `a.tfrecord.idx` or `a.idx`, each read when it is asked for.

    Remote ones are read all at once, when the first is asked for.
    """

    def __init__(self, indices: Iterable[StoredFile]) -> None:
        self._indices = {file.path: file for file in indices}
        self._remote: dict[str, ExpectedCount | DatasetError] | None = None

    def expected(self, path: str) -> ExpectedCount | None:
        """Return what is said of a file, see `Sidecar.expected`."""
        for name in _names(path):
            file = self._indices.get(name)
            if file is None:
                continue
            if not is_remote(name):
                return _read(file)
            if self._remote is None:
                self._remote = self._read_remote()
            found = self._remote[name]
            if isinstance(found, DatasetError):
                raise found
            return found
        return None

    def _read_remote(self) -> dict[str, ExpectedCount | DatasetError]:
        remote = [file for path, file in self._indices.items() if is_remote(path)]
        found = concurrently(_read_or_error, remote, at_once=_AT_ONCE)
        return {file.path: answer for file, answer in zip(remote, found, strict=True)}

    def absent(self, listed: Set[str]) -> list[str]:
        """Return nothing: an index that is left over takes no examples away."""
        return []


def _names(path: str) -> Iterator[str]:
    stem, ending = os.path.splitext(path)
    for kind in _ENDINGS:
        yield path + kind
        if "/" not in ending:
            yield stem + kind


def _read_or_error(file: StoredFile) -> ExpectedCount | DatasetError:
    try:
        return _read(file)
    except DatasetError as error:
        return error


def _read(file: StoredFile) -> ExpectedCount:
    name = re.split(r"[/\\]", file.path)[-1]
    data = store_of(file.path).read(file.path, max_num_bytes=_MOST_BYTES)
    archive = _ARCHIVE.match(data)
    if archive is not None:
        return ExpectedCount(num_examples=int(archive[1]), said_by=name)
    lines = data.split()
    if len(lines) % 2:
        raise DatasetError(f"{quoted(name, 200)} is no index of records: offset and length a line")
    end = 0
    for offset, length in zip(lines[::2], lines[1::2], strict=True):
        if not (offset.isdigit() and length.isdigit()) or int(offset) != end:
            said = f"{quoted(name, 200)}: its records do not lie one behind the other"
            raise DatasetError(f"{said}, at byte {end}")
        end += int(length)
    return ExpectedCount(num_examples=len(lines) // 2, num_bytes=end, said_by=name)
