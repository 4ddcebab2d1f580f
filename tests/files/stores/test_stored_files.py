from __future__ import annotations

import pickle
import random
import tracemalloc

import pytest

from shardctl.files.stores.store import StoredFile
from shardctl.files.stores.stored_files import FileColumns, StoredFiles, as_bytes, split_path

_FILES = [
    StoredFile(path="/data/a", num_bytes=3, version="mtime:1763798400000000000"),
    StoredFile(path="/data/b/\udcff", num_bytes=0, version="mtime:0"),
    StoredFile(path="gs://bucket/x/é", num_bytes=1 << 40, version="generation:7"),
    StoredFile(path="plain", num_bytes=1),
    StoredFile(path="/data/c", num_bytes=2, version="mtime:007"),
    StoredFile(path="/data/d", num_bytes=2, version=f"mtime:{1 << 64}"),
    StoredFile(path="/data/e", num_bytes=2, version='etag:"0-1"'),
]


def test_files_come_back_as_they_were() -> None:
    files = StoredFiles.of(_FILES)
    assert list(files) == _FILES == [files[at] for at in range(len(_FILES))]
    assert files == tuple(_FILES)
    assert files != _FILES[1:]
    assert len(files) == 7
    assert list(files.paths()) == [file.path for file in _FILES]
    assert files[-1] == _FILES[-1]
    assert list(files[1:5:2]) == _FILES[1:5:2]
    assert files.num_bytes == sum(file.num_bytes for file in _FILES)
    assert pickle.loads(pickle.dumps(files)) == files
    assert StoredFiles.of(files) is files
    assert repr(files) == "<7 stored files>"


def test_chosen_files_may_be_chosen_from_again() -> None:
    rng = random.Random(0)
    files, expected = StoredFiles.of(_FILES), list(_FILES)
    for size in (7, 5, 5, 2, 0):
        places = [rng.randrange(len(expected)) for _ in range(size)]
        files, expected = files.chosen(places), [expected[place] for place in places]
        assert files == expected
        assert [files.folder(number) + name for number, name in files.folders_and_names()] == [
            file.path for file in expected
        ]


def test_names_of_a_folder() -> None:
    columns = FileColumns()
    for file in _FILES:
        columns.add(file)
    assert columns.names_in("/data/") == {"a", "c", "d", "e"}
    assert not columns.names_in("/x/")


def test_a_path_is_its_folder_and_its_name() -> None:
    assert split_path("/a/b") == ("/a/", "b")
    assert split_path("b") == ("", "b")
    assert sorted(["\udcff", "é", "z", "Z"], key=as_bytes) == ["Z", "z", "é", "\udcff"]


@pytest.mark.long
def test_a_file_takes_less_than_a_hundred_bytes() -> None:
    def files() -> StoredFiles:
        return StoredFiles.of(
            StoredFile(
                path=f"/data/toy-train.tfrecord-{at:05d}-of-20000",
                num_bytes=at,
                version=f"mtime:{1763798400000000000 + at}",
            )
            for at in range(20_000)
        )

    tracemalloc.start()
    kept = files()
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == 20_000
    assert size < 100 * 20_000
