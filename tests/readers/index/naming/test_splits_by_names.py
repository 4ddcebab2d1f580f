from __future__ import annotations

import pytest

from shardctl.errors import DatasetError
from shardctl.readers.index.naming.shard_sets import Folders
from shardctl.readers.index.naming.splits_by_names import splits_by_names
from tests.named_files import ROOT, files_named


def splits(*names: str, root: str = ROOT) -> dict[str, int]:
    found = splits_by_names(Folders(files=files_named(names, root), root=root))
    return {split.name: sum(map(len, split.sets)) for split in found}


def test_splits_are_in_the_order_of_their_use() -> None:
    found = splits("b-0.tar", "test-0.tar", "validation-0.tar", "train-0.tar", "a-0.tar")
    assert list(found) == ["train", "validation", "test", "a", "b"]


def test_a_name_like_those_of_splits_is_one() -> None:
    assert splits("train/0.mds", "odd/0.mds", "odd/1.mds") == {"train": 1, "odd": 2}
    assert splits("train.tfrecord", "val.tfrecord") == {"train": 1, "val": 1}


def test_one_kind_of_files_is_train_or_called_as_its_folder() -> None:
    assert splits("a-0.tar", "a-1.tar") == {"train": 2}
    assert splits("a-0.tar", "a-1.tar", root="/d/test") == {"test": 2}
    assert splits("x.tfrecord", "y.tfrecord") == {"train": 2}


@pytest.mark.parametrize("name", ["eval_set_train", "train-test-split"])
def test_a_name_of_two_splits_tells_none(name: str) -> None:
    with pytest.raises(DatasetError, match="names speak of several splits"):
        splits(f"{name}-0.tar", f"{name}-1.tar")
