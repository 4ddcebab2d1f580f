"""How long large metadata takes to read, and many hosts to compare, beside TFDS in the same run.

Run with `pytest -o addopts= tests/benchmarks/test_reading_speed.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from shardctl.metadata.tfds_metadata import read_tfds_folder

NUM_SHARDS = 1_000_000


def _million_shards(folder: Path) -> Path:
    lengths = [str(1000 + index % 7) for index in range(NUM_SHARDS)]
    info = {
        "name": "toy",
        "version": "1.0.0",
        "splits": [{"name": "train", "numBytes": "1", "shardLengths": lengths}],
    }
    (folder / "dataset_info.json").write_text(json.dumps(info))
    return folder


def test_a_million_shards_load_faster_than_in_tfds(benchmark: Any, tmp_path: Path) -> None:
    from tensorflow_datasets.core.dataset_info import read_proto_from_builder_dir

    folder = _million_shards(tmp_path)
    start = time.process_time()
    assert len(read_proto_from_builder_dir(folder).splits[0].shard_lengths) == NUM_SHARDS
    tfds_seconds = time.process_time() - start
    dataset = benchmark.pedantic(read_tfds_folder, args=(folder,), rounds=3)
    assert dataset.splits[0].num_shards == NUM_SHARDS
    benchmark.extra_info["tfds_seconds"] = tfds_seconds
    assert benchmark.stats["min"] < tfds_seconds


def test_ten_thousand_hosts_over_a_hundred_thousand_shards(benchmark: Any, tmp_path: Path) -> None:
    layout = tmp_path / "big.yaml"
    layout.write_text("splits: {train: {num_examples: 1000000123, num_shards: 100000}}")
    command = [sys.executable, "-m", "shardctl", "hosts", "--hosts", "10000", "-d", str(layout)]

    def run() -> None:
        subprocess.run([*command, "--batch", "64", "-f", "json"], capture_output=True, check=True)

    benchmark.pedantic(run, rounds=3)
    assert benchmark.stats["min"] < 3
