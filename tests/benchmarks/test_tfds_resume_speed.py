"""What it costs to go on in mid-epoch through a shuffle buffer, beside TFDS and tf.data themselves.

Run with `pytest -s tests/benchmarks/test_tfds_resume_speed.py`; the figures printed are the ones to
quote. CPU time is compared, since other work on the machine leaves that alone.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import shardctl.tfds
from shardctl.core.settings.read_settings import ReadSettings
from tests.tfds_datasets import build_dataset

LENGTHS = [2000] * 25
SETTINGS = ReadSettings(shuffle_seed=3, buffer=5000, buffer_seed=5, batch=100)
TOTAL = sum(LENGTHS)


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    folder: Path = build_dataset(tmp_path_factory.mktemp("speed"), splits={"train": LENGTHS})
    return tfds.builder_from_directory(folder)


def cost(dataset: Any) -> tuple[float, float]:
    """Return (CPU microseconds an example, seconds to the first batch)."""
    start, cpu, first, count = time.perf_counter(), time.process_time(), 0.0, 0
    for batch in dataset:
        first = first or time.perf_counter() - start
        count += int(batch["id"].shape[0])
    return (time.process_time() - cpu) / count * 1e6, first


def test_a_replayed_epoch_costs_no_more_than_twice_the_cpu_of_tfds(builder: Any) -> None:
    datasets = {
        "TFDS and tf.data": shardctl.tfds.pipeline(builder, "train", SETTINGS),
        "from the start": shardctl.tfds.exact_order(builder, "train", SETTINGS, consumed=0),
        "after 10%": shardctl.tfds.exact_order(builder, "train", SETTINGS, consumed=TOTAL // 10),
        "after 50%": shardctl.tfds.exact_order(builder, "train", SETTINGS, consumed=TOTAL // 2),
        "after 80%": shardctl.tfds.exact_order(builder, "train", SETTINGS, consumed=TOTAL * 4 // 5),
    }
    for dataset in datasets.values():
        cost(dataset.take(1))  # what TensorFlow does once
    found = {name: cost(dataset) for name, dataset in datasets.items()}
    for name, (cpu, first) in found.items():
        print(f"{name:20} {cpu:6.1f} us of CPU an example, first batch after {first:.2f} s")
    assert found["after 10%"][0] < 2 * found["TFDS and tf.data"][0]
    # Of the buffer, not of the place in the epoch.
    assert found["after 80%"][1] < 3 * found["after 10%"][1] + 0.5
