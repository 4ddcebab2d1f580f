"""What is kept of a file: taken back for the same file alone, and never damaged."""

from __future__ import annotations

from shardctl.files.stores.store import StoredFile
from shardctl.readers.index.counting.cache import (
    alike,
    contents_in,
    folder_of,
    name_of,
    rows_to_keep,
)
from shardctl.readers.index.runner import FileToCount
from shardctl.readers.records.contents import FileContents


def task(path: str, version: str = "mtime:1", checksums: bool = False) -> FileToCount:
    file = StoredFile(path=path, num_bytes=3, version=version)
    return FileToCount(index=0, file=file, file_format="tfrecord", checksums=checksums)


def test_a_path_is_a_folder_and_a_name() -> None:
    assert (folder_of(task("gs://b/a/c")), name_of(task("gs://b/a/c"))) == (b"gs://b/a/", b"c")
    assert (folder_of(task("c")), name_of(task("c"))) == (b"", b"c")


def test_files_are_looked_up_by_folder_and_kind() -> None:
    files = [task("/a/1"), task("/b/1"), task("/a/2"), task("/a/3", checksums=True)]
    assert list(alike(files)) == [[0, 2], [1], [3]]


def test_a_row_that_changed_is_not_believed() -> None:
    one = task("/a/1")
    ids = {b"/a/": 1, b"/b/": 1}
    ((_, name, _, *row),) = rows_to_keep([(one, FileContents(num_records=7))], ids)
    assert isinstance(name, bytes)
    found = contents_in({name: [tuple(row)]}, one)
    assert found is not None
    assert found.num_records == 7
    for place in range(len(row)):
        changed = [*row]
        changed[place] = "GZIP" if row[place] is None else type(row[place])()
        if changed != row:
            assert contents_in({name: [tuple(changed)]}, one) is None
    assert contents_in({name: [tuple(row)]}, task("/b/1")) is None
