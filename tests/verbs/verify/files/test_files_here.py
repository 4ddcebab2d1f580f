"""Which files of a dataset are here."""

from __future__ import annotations

from pathlib import Path

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.verbs.verify.verify_files import exists, file_path


def test_a_file_lies_in_the_folder_of_its_part_if_there_is_one() -> None:
    parts = (ShardFiles(data_dir="/data", pattern="d-\0", num_shards=2), ShardFiles(num_shards=1))
    named = Split(name="train", shard_lengths=(1, 2, 3), files=parts)
    unnamed = Split(name="test", shard_lengths=(1,))
    dataset = Dataset(name="toy", splits=(named, unnamed))
    assert file_path(dataset, 0, 1) == "/data/d-00001"
    assert file_path(dataset, 0, 2) is None
    assert file_path(dataset, 1, 0) is None


def test_a_file_is_looked_for_in_a_folder_or_behind_a_url(tmp_path: Path) -> None:
    (tmp_path / "here").touch()
    assert exists(str(tmp_path / "here"))
    assert not exists(str(tmp_path / "there"))
    assert exists(f"file://{tmp_path}/here")
    assert not exists(f"file://{tmp_path}/there")
