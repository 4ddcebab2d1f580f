"""What is known: of the cache first, then of a layout; what is counted goes to the cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.files.documents import to_yaml
from shardctl.metadata.index.answer import index_document
from shardctl.metadata.index.count import known_counts
from shardctl.metadata.index.index import index
from shardctl.metadata.index.workers import FileToCount
from shardctl.records.contents import FileContents
from shardctl.stores.stores import store_of
from tests.record_files import framed


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    (tmp_path / "a.tfrecord").write_bytes(framed(b"x"))
    path = tmp_path / "layout.yaml"
    path.write_text("".join(to_yaml(index_document(index(tmp_path, cache=False)))))
    return path


def task(path: Path) -> FileToCount:
    file = store_of(str(path)).status(str(path))
    assert file is not None
    return FileToCount(index=0, file=file, file_format="tfrecord")


def test_the_cache_learns_what_a_layout_knows(layout: Path) -> None:
    asked = task(layout.with_name("a.tfrecord"))
    with known_counts(cache=True, earlier=None) as known:
        assert known.find(asked) is None
    with known_counts(cache=True, earlier=layout) as known:
        assert known.find(asked) == FileContents(num_records=1, num_bytes=17)
    with known_counts(cache=True, earlier=None) as known:
        assert known.find(asked) == FileContents(num_records=1, num_bytes=17)
    with known_counts(cache=False, earlier=None) as known:
        known.keep(asked, FileContents(num_records=1))
        assert known.find(asked) is None
        assert known.warnings == ()
