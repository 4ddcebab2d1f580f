"""What it costs to go on in mid-epoch through a shuffle buffer, beside TFDS and tf.data themselves.

Run with `pytest -s tests/benchmarks/test_tfds_resume_speed.py`; the figures printed are the ones to
quote. CPU time is compared, since other work on the machine leaves that alone.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shardctl.tfds
from shardctl.settings.read_settings import ReadSettings
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


# Examples of (bytes): how many in each of 64 files, of which a cycle has a few open; buffer, batch.
RECORDS = {1_000: (1000, 8000, 100), 20_000: (150, 1500, 50), 200_000: (20, 200, 10)}


def opaque(folder: Path, size: int, lengths: list[int]) -> Any:
    """Return the builder of examples of so many bytes, which are not decoded further."""
    import tensorflow_datasets as tfds

    noise = np.random.default_rng(0).bytes(size + 4096)
    features = tfds.features.FeaturesDict(
        {"id": np.int64, "data": tfds.features.Tensor(shape=(), dtype=np.bytes_)}
    )
    return tfds.builder_from_directory(
        build_dataset(
            folder,
            splits={"train": lengths},
            features=features,
            example=lambda i: {"id": i, "data": noise[i % 4096 : i % 4096 + size]},
        )
    )


def seconds(batches: Iterator[Any], skip: int) -> tuple[float, float]:
    """Return (CPU, wall) seconds of what is left after so many batches."""
    for _ in range(skip):
        next(batches)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in batches:
        pass
    return time.process_time() - cpu, time.perf_counter() - wall


@pytest.mark.parametrize("size", RECORDS)
def test_the_rest_of_an_epoch_costs_what_it_costs_tfds(tmp_path: Path, size: int) -> None:
    """From the same place, 40% into the epoch, to its end; ours went on after 20% of it.

    A reader that was just opened reads ahead, and so does TFDS's own when it starts; what is
    compared comes behind that.
    """
    length, buffer, batch = RECORDS[size]
    builder = opaque(tmp_path, size, [length] * 64)
    settings = ReadSettings(shuffle_seed=3, buffer=buffer, buffer_seed=5, batch=batch)
    fifth = length * 64 // batch // 5
    own = shardctl.tfds.pipeline(builder, "train", settings)
    ours = shardctl.tfds.exact_order(builder, "train", settings, consumed=fifth * batch)
    found: dict[str, list[tuple[float, float]]] = {"TFDS and tf.data": [], "continued": []}
    for _ in range(9):
        found["TFDS and tf.data"].append(seconds(iter(own), 2 * fifth))
        found["continued"].append(seconds(iter(ours), fifth))
    count = length * 64 - 2 * fifth * batch
    least = {name: np.min(costs, axis=0) / count * 1e6 for name, costs in found.items()}
    for name, (cpu, wall) in least.items():
        print(f"{size} bytes, {name:17} {cpu:6.1f} us of CPU an example, {wall:6.1f} us of time")
    ratio = least["continued"][0] / least["TFDS and tf.data"][0]
    print(f"{size} bytes: {ratio:.2f} times the CPU of TFDS")
    if size >= 20_000:
        assert ratio <= 1.15


def test_a_continued_run_starts_at_most_a_second_after_tfds(tmp_path: Path) -> None:
    """1,024 shards, a buffer of 100,000: what it takes to make the dataset and its first batch."""
    import tensorflow_datasets as tfds

    opaque(tmp_path, 300, [1000] * 1024)
    settings = ReadSettings(shuffle_seed=3, buffer=100_000, buffer_seed=5, batch=100)

    def start(make: Callable[[Any], Any]) -> float:
        gc.collect()
        cpu = time.process_time()
        next(iter(make(tfds.builder_from_directory(tmp_path / "toy" / "1.0.0"))))
        return time.process_time() - cpu

    def after(consumed: int) -> Callable[[Any], Any]:
        return lambda builder: shardctl.tfds.exact_order(
            builder, "train", settings, consumed=consumed
        )

    own: list[float] = []
    ours: dict[int, list[float]] = {consumed: [] for consumed in (50_000, 500_000, 920_000)}
    for _ in range(3):
        own.append(start(lambda builder: shardctl.tfds.pipeline(builder, "train", settings)))
        for consumed, costs in ours.items():
            costs.append(start(after(consumed)))
    print(f"TFDS and tf.data: first batch after {min(own):.2f} s of CPU")
    for consumed, costs in ours.items():
        print(f"after {consumed:9,} examples: first batch after {min(costs):.2f} s of CPU")
        assert min(costs) < min(own) + 1
