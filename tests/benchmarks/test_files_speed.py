"""How long it takes to check every record of a dataset, beside tf.data and TFDS in the same run.

Run with `pytest -o addopts= tests/benchmarks/test_files_speed.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.verbs.verify.verify_files import verify_files

NUM_FILES = 4


def _written(folder: Path, size: int, count: int) -> Dataset:
    import tensorflow as tf

    data = os.urandom(size + 1000)
    pattern = "toy-train.tfrecord-\0-of-00004"
    for shard in range(NUM_FILES):
        name = pattern.replace("\0", f"{shard:05d}")
        with tf.io.TFRecordWriter(str(folder / name)) as writer:
            for index in range(count):
                writer.write(data[index % 1000 : index % 1000 + size])
    files = ShardFiles(data_dir=str(folder), pattern=pattern, num_shards=NUM_FILES)
    split = Split(name="train", shard_lengths=(count,) * NUM_FILES, files=(files,))
    return Dataset(name="toy", splits=(split,))


def _seconds(work: Callable[[], int], expected: int, rounds: int = 1) -> tuple[float, float]:
    """Return the seconds that pass, and those of all processors, in the best of some rounds."""
    found = []
    for _ in range(rounds):
        start, start_of_cpu = time.perf_counter(), time.process_time()
        assert work() == expected
        found.append((time.perf_counter() - start, time.process_time() - start_of_cpu))
    return min(seconds for seconds, _ in found), min(cpu for _, cpu in found)


@pytest.mark.parametrize(("size", "count"), [(150, 60_000), (784, 40_000), (20_000, 3_000)])
def test_files_are_checked_faster_than_tensorflow_reads_them(
    benchmark: Any, tmp_path: Path, size: int, count: int
) -> None:
    import tensorflow as tf
    from tensorflow_datasets.core import file_adapters

    dataset = _written(tmp_path, size, count)
    paths = [str(tmp_path / name) for name in dataset.splits[0].filenames]
    adapter = file_adapters.ADAPTER_FOR_FORMAT[file_adapters.FileFormat.TFRECORD]

    def in_batches() -> int:
        batches = tf.data.TFRecordDataset(paths).batch(4096)
        return sum(int(n) for n in batches.map(lambda batch: tf.shape(batch)[0]))

    def as_tfds_counts() -> int:
        # TFDS core/folder_dataset/compute_split_utils.py, _process_shard
        return sum(1 for path in paths for _ in adapter.make_tf_data(path))

    def check() -> int:
        answer = verify_files(dataset)
        assert answer.equal
        return answer.splits[0].num_records

    num_records = NUM_FILES * count
    in_batches()
    tf_seconds, tf_cpu = _seconds(in_batches, num_records, 3)
    tfds_seconds, _ = _seconds(as_tfds_counts, num_records)
    assert benchmark.pedantic(check, rounds=3) == num_records
    ours, cpu = _seconds(check, num_records, 5)
    benchmark.extra_info["of_tf_data"] = f"{tf_seconds / ours:.1f}, CPU {tf_cpu / cpu:.1f}"
    benchmark.extra_info["of_tfds"] = f"{tfds_seconds / ours:.1f}"
    benchmark.extra_info["records_a_second"] = round(num_records / ours)
    benchmark.extra_info["bytes_a_second"] = round(num_records * size / ours)
    print(benchmark.extra_info)
    assert cpu < tf_cpu  # which is less at the mercy of what else runs
    assert ours < tfds_seconds / 5
