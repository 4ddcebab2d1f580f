"""The answer of `index`: a dataset, or why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError
from shardctl.metadata.index.answer import Index, IndexedSplit
from shardctl.metadata.index.names import NameProblem
from shardctl.metadata.layouts import BrokenFile

FILES = ShardFiles(data_dir="/d", num_shards=2, names=("a", "b"))
WHOLE = Index(
    name="toy",
    version="1.0.0",
    file_format="tfrecord",
    compression=None,
    data_dir="/d",
    splits=(
        IndexedSplit(
            split=Split(name="train", shard_lengths=(2, 1), files=(FILES,)), versions=("", "")
        ),
    ),
    broken=(),
    problems=(),
    keep_going=False,
    num_files=2,
    num_known=0,
    num_counted=2,
    num_bytes_read=0,
    seconds=1.0,
)
BROKEN = BrokenFile("x/c", None, "cut", "cut off", None, None, 1, "")
GAP = NameProblem(kind="gap", split="train", text="shard 2 is missing")


def test_what_is_whole_is_a_dataset() -> None:
    assert WHOLE.whole
    assert WHOLE.dataset.title == "toy:1.0.0"
    assert WHOLE.dataset.split("train").filenames == ("a", "b")
    assert repr(WHOLE) == "<Index toy: 3 examples, 2 files>"


def test_what_is_not_says_the_first_thing_that_is_wrong() -> None:
    wrong = replace(WHOLE, broken=(BROKEN,), problems=(GAP,))
    assert list(wrong.faults()) == ["shard 2 is missing", "'x/c': cut off"]
    with pytest.raises(DatasetError, match="shard 2 is missing"):
        _ = wrong.dataset
    with pytest.raises(DatasetError, match="'x/c': cut off"):
        _ = replace(WHOLE, broken=(BROKEN,)).dataset
    assert replace(wrong, keep_going=True).dataset.split("train").num_shards == 2
    assert repr(wrong) == "<Index toy: 3 examples, 2 files, 2 problems>"


def test_nothing_whole_is_no_dataset() -> None:
    nothing = replace(WHOLE, splits=(), broken=(BROKEN,), keep_going=True)
    with pytest.raises(DatasetError, match="no whole record file in '/d'"):
        _ = nothing.dataset


def test_how_long_it_took_does_not_count() -> None:
    assert replace(WHOLE, seconds=9.0) == WHOLE
