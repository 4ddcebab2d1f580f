"""How fast records are counted, beside tf.data and TFDS on the same files in the same run.

Run with `pytest -o addopts= -s tests/benchmarks/test_counting_speed.py`.
"""

from __future__ import annotations

import os
import random
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import google_crc32c
import pytest

from shardctl.records.read_file import count_file
from shardctl.records.tfrecord import masked
from shardctl.stores.stores import store_of

NUM_FILES = 4


def written(folder: Path, sizes: Sequence[int]) -> list[str]:
    """Write files of records of these sizes each."""
    extend, data = google_crc32c.extend, os.urandom(1 << 20)

    def with_checksum(part: bytes) -> bytes:
        return part + struct.pack("<I", masked(extend(0, part)))

    paths = [str(folder / f"toy.tfrecord-{shard:05d}-of-{NUM_FILES:05d}") for shard in range(4)]
    for path in paths:
        with open(path, "wb", buffering=1 << 20) as file:
            for index, size in enumerate(sizes):
                file.write(with_checksum(struct.pack("<Q", size)))
                start = index * 7919 % (len(data) - size)
                file.write(with_checksum(data[start : start + size]))
    return paths


def seconds(work: Callable[[], int], expected: int, rounds: int) -> tuple[float, float]:
    """Return the seconds that pass, and those of all processors, in the best of some rounds."""
    walls, cpus = [], []
    for _ in range(rounds):
        start, start_of_cpu = time.perf_counter(), time.process_time()
        assert work() == expected
        walls.append(time.perf_counter() - start)
        cpus.append(time.process_time() - start_of_cpu)
    return min(walls), min(cpus)


def sizes_of(kind: str) -> list[int]:
    rng = random.Random(1)
    return {
        "100 B": [100] * 100_000,
        "50-200 B": [rng.randrange(50, 201) for _ in range(100_000)],
        "500-1500 B": [rng.randrange(500, 1501) for _ in range(60_000)],
        "20 kB": [20_000] * 6_000,
        "10-30 kB": [rng.randrange(10_000, 30_001) for _ in range(6_000)],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "times"),
    [("100 B", 5), ("50-200 B", 2), ("500-1500 B", 2), ("20 kB", 5), ("10-30 kB", 4)],
)
def test_records_are_counted_faster_than_tensorflow_reads_them(
    tmp_path: Path, kind: str, times: int
) -> None:
    import numpy as np
    import tensorflow as tf
    from tensorflow_datasets.core import file_adapters

    sizes = sizes_of(kind)
    paths = written(tmp_path, sizes)
    num_records, num_bytes = NUM_FILES * len(sizes), sum(map(os.path.getsize, paths))
    adapter = file_adapters.ADAPTER_FOR_FORMAT[file_adapters.FileFormat.TFRECORD]

    def by_reduce() -> int:
        found = tf.data.TFRecordDataset(paths).reduce(np.int64(0), lambda count, _: count + 1)
        return int(found)

    def in_batches() -> int:
        batches = tf.data.TFRecordDataset(paths).batch(4096)
        return sum(int(n) for n in batches.map(lambda batch: tf.shape(batch)[0]))

    def as_tfds_counts() -> int:
        # TFDS core/folder_dataset/compute_split_utils.py, _process_shard
        return sum(1 for path in paths for _ in adapter.make_tf_data(path))

    def ours(checksums: bool) -> int:
        found = 0
        for path in paths:
            file = store_of(path).status(path)
            assert file is not None
            contents = count_file(file, "tfrecord", checksums=checksums)
            assert contents.damage is None
            found += contents.num_records or 0
        return found

    in_batches()  # TensorFlow warms up, and the files are in the page cache
    ways: dict[str, tuple[float, float]] = {
        "shardctl": seconds(lambda: ours(False), num_records, 5),
        "shardctl --crc": seconds(lambda: ours(True), num_records, 5),
        "tf.data in batches": seconds(in_batches, num_records, 3),
        "tf.data reduce": seconds(by_reduce, num_records, 1),
        "TFDS": seconds(as_tfds_counts, num_records, 1),
    }
    wall, cpu = ways["shardctl"]
    print(f"\n{kind}: {num_records} records, {num_bytes / 2**20:.0f} MiB, {NUM_FILES} files")
    for name, (its_wall, its_cpu) in ways.items():
        records, gigabytes = num_records / its_wall / 1e6, num_bytes / its_wall / 2**30
        print(
            f"  {name:18} {its_wall:7.3f} s {its_cpu:7.3f} CPU s, {records:7.3f} M records/s, "
            f"{gigabytes:6.2f} GiB/s; shardctl takes a {its_wall / wall:.1f}th, "
            f"of CPU a {its_cpu / cpu:.1f}th"
        )
    # CPU time, which is less at the mercy of what else runs; the wall by less.
    reduce_wall, reduce_cpu = ways["tf.data reduce"]
    batch_wall, batch_cpu = ways["tf.data in batches"]
    assert reduce_cpu > 5 * cpu
    assert reduce_wall > 5 * wall
    assert batch_cpu > times * cpu
    assert batch_wall > wall
    assert ways["shardctl --crc"][1] < reduce_cpu
