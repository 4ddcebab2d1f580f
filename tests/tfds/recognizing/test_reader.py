"""Readers of files, with the settings that they come to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from shardctl.spec.host import Host
from shardctl.tfds.recognizing.graph import operation_of
from shardctl.tfds.recognizing.reader import (
    FoundReader,
    UnknownReaderError,
    found_reader,
    reads_files,
)
from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("reader"), splits={"train": [3, 4, 2]})


def _files(folder: Path) -> Any:
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices(sorted(str(p) for p in folder.glob("*tfrecord*")))


def _reader(dataset: Any) -> FoundReader:
    operation = operation_of(dataset)
    assert reads_files(operation)
    return found_reader(operation)


def test_an_interleave_of_record_files(folder: Path) -> None:
    import tensorflow as tf

    files = _files(folder).shard(2, 1).shuffle(3, seed=5, reshuffle_each_iteration=False)
    found = _reader(files.interleave(tf.data.TFRecordDataset, cycle_length=3, block_length=4))
    assert dict(found.settings) == {
        "cycle": 3,
        "block": 4,
        "shuffle_files": True,
        "reshuffle": False,
        "host": Host(index=1, count=2),
        "host_by": "files",
    }
    assert (found.pair, found.listed.spec, found.is_tfds) == ((87654321, 5), "train", False)


def test_cycles_that_the_machine_decides(folder: Path) -> None:
    import tensorflow as tf

    cpus = len(os.sched_getaffinity(0))
    records = tf.data.TFRecordDataset
    tuned = _reader(_files(folder).interleave(records, num_parallel_calls=tf.data.AUTOTUNE))
    assert dict(tuned.settings)["cycle"] == -(-cpus // 3)
    plain = _reader(_files(folder).interleave(records))
    assert dict(plain.settings) == {"cycle": cpus, "block": 1}


@pytest.mark.parametrize(
    ("deterministic", "in_order"), [(True, "true"), (False, "false"), (None, "default")]
)
def test_who_decides_whether_files_are_read_in_order(
    folder: Path, deterministic: bool | None, in_order: str
) -> None:
    import tensorflow as tf

    found = _reader(
        _files(folder).interleave(
            tf.data.TFRecordDataset,
            cycle_length=2,
            num_parallel_calls=2,
            deterministic=deterministic,
        )
    )
    assert found.in_order == in_order


def test_files_that_are_not_here_are_said(tmp_path: Path) -> None:
    import tensorflow as tf

    gone = tf.data.TFRecordDataset([str(tmp_path / "gone")])
    with pytest.raises(UnknownReaderError, match="gone"):
        found_reader(operation_of(gone))


def test_what_opens_no_file_is_no_reader() -> None:
    import tensorflow as tf

    numbers = tf.data.Dataset.range(3)
    assert not reads_files(operation_of(numbers))
    assert not reads_files(operation_of(numbers.interleave(tf.data.Dataset.range)))
