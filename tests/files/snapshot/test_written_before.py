"""Snapshots that an earlier shardctl wrote are read, and written again to the byte.

What `shardctl snapshot` and `diff` make of them is in tests/cli/commands/test_written_before.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from shardctl.core.snapshot.snapshot import Snapshot
from shardctl.files.comparable_file import read_comparable
from shardctl.files.snapshot.writer import snapshot_json, snapshot_yaml

FOLDER = Path(__file__).parent / "written_before"
FILES = sorted(path.name for path in FOLDER.glob("*.pinned.*"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_and_written_again_to_the_byte(name: str) -> None:
    found = read_comparable(FOLDER / name)
    assert isinstance(found, Snapshot)
    write = snapshot_json if name.endswith("json") else snapshot_yaml
    assert "".join(write(found)) == (FOLDER / name).read_text("utf-8")


def test_what_was_pinned_of_a_dataset_is_known() -> None:
    found = read_comparable(FOLDER / "splits.pinned.yaml")
    assert isinstance(found, Snapshot)
    assert (found.name, found.config, found.version) == ("toy", "small", "1.0.0")
    assert (found.title, found.file_format, found.ordered) == ("toy/small:1.0.0", "tfrecord", False)
    sizes = [(size.name, size.num_examples, size.num_shards) for size in found.identity.splits]
    # 40 + 0 + 73 + 61 + 12 + 90 in train, 3 * 5 + 1 in extra
    assert sizes == [("train", 276, 6), ("test", 50, 4), ("extra", 16, 4)]
    assert found.identity.data_dir is None
