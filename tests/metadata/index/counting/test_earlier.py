"""A layout as a source of counts: for files that are as it says, and for nobody else."""

from __future__ import annotations

from pathlib import Path

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.metadata.index.count import Known, read_earlier
from shardctl.metadata.index.workers import FileToCount
from shardctl.metadata.layouts import IndexedLayout
from shardctl.records.contents import FileContents
from shardctl.stores.store import StoredFile

FILES = ShardFiles(data_dir="/d", num_shards=3, names=("a", "b", "c"))
SPLIT = Split(name="train", shard_lengths=(4, 5, 6), files=(FILES,))
LAYOUT = IndexedLayout(
    dataset=Dataset(name="d", splits=(SPLIT,), compression="GZIP"),
    sizes=[[10, 20, 30]],
    versions=[["mtime:1", "etag:x", ""]],
    broken=[],
    paths=[],
    globs={},
)
KNOWN = Known(None, LAYOUT)


def find(
    path: str, num_bytes: int, version: str, file_format: str = "tfrecord", checksums: bool = False
) -> FileContents | None:
    file = StoredFile(path=path, num_bytes=num_bytes, version=version)
    return KNOWN.find(FileToCount(index=0, file=file, file_format=file_format, checksums=checksums))


def test_files_that_are_as_it_says_are_known() -> None:
    assert find("/d/b", 20, "etag:x") == FileContents(
        num_records=5, num_bytes=20, compression="GZIP"
    )
    assert find("/d/a", 10, "mtime:1") is not None


def test_others_are_not() -> None:
    assert find("/d/b", 21, "etag:x") is None
    assert find("/d/b", 20, "etag:y") is None
    assert find("/d/c", 30, "") is None
    assert find("/e/b", 20, "etag:x") is None
    assert find("/d/b", 20, "etag:x", file_format="parquet") is None
    assert find("/d/b", 20, "etag:x", checksums=True) is None


def test_what_is_no_layout_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("[")
    (tmp_path / "b.yaml").write_text("kind: plan\n")
    for path in ("-", str(tmp_path), str(tmp_path / "none"), *map(str, tmp_path.iterdir())):
        assert read_earlier(path) is None
