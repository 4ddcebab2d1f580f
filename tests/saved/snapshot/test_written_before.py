"""Snapshots that an earlier shardctl wrote are read, and written again to the byte.

What `shardctl snapshot` and `diff` make of them is in tests/verbs/test_written_before.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.saved.snapshot import Snapshot
from shardctl.saved.snapshot_file import read_comparable, snapshot_json, snapshot_yaml

FOLDER = Path(__file__).parent / "written_before"
VERSION_2 = Path(__file__).parent / "version_2"
FILES = sorted(path for folder in (FOLDER, VERSION_2) for path in folder.glob("*.pinned.*"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_file_is_read_and_written_again_to_the_byte(path: Path) -> None:
    found = read_comparable(path)
    assert isinstance(found, Snapshot)
    assert found.tree.version == (2 if path.parent == VERSION_2 else 1)
    write = snapshot_json if path.name.endswith("json") else snapshot_yaml
    assert "".join(write(found)) == path.read_text("utf-8")


def test_what_was_pinned_of_a_dataset_is_known() -> None:
    found = read_comparable(FOLDER / "splits.pinned.yaml")
    assert isinstance(found, Snapshot)
    assert (found.head.name, found.head.config, found.head.version) == ("toy", "small", "1.0.0")
    assert (found.title, found.head.file_format, found.ordered) == (
        "toy/small:1.0.0",
        "tfrecord",
        False,
    )
    sizes = [(size.name, size.num_examples, size.num_shards) for size in found.identity.splits]
    # 40 + 0 + 73 + 61 + 12 + 90 in train, 3 * 5 + 1 in extra
    assert sizes == [("train", 276, 6), ("test", 50, 4), ("extra", 16, 4)]
    assert found.identity.data_dir is None
