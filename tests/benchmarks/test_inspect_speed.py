"""What a pipeline reads, told by inspecting it, against reading it: both in one run."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import shardctl.tfds
from tests.tfds_datasets import build_dataset

NUM_EXAMPLES = 20_000
EPOCHS = 3


@pytest.mark.tensorflow
def test_ids_of_an_inspected_pipeline_come_sooner_than_the_examples(tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    folder = build_dataset(tmp_path, splits={"train": [NUM_EXAMPLES // 8] * 8})
    config = tfds.ReadConfig(shuffle_seed=7, try_autocache=False)
    dataset = tfds.builder_from_directory(folder).as_dataset(
        split="train", read_config=config, shuffle_files=True
    )
    dataset = dataset.cache().shuffle(1000, seed=3).map(lambda example: example["id"] + 0)
    dataset = dataset.repeat(EPOCHS).batch(100)
    shardctl.tfds.inspect(dataset).ids()  # what is imported at the first call

    start = time.perf_counter()
    told = shardctl.tfds.inspect(dataset).ids().tolist()
    middle = time.perf_counter()
    read = [int(one) for batch in dataset.as_numpy_iterator() for one in batch]
    end = time.perf_counter()

    assert told == read
    ratio = (end - middle) / (middle - start)
    print(f"inspect + ids {middle - start:.3f} s, iterated {end - middle:.3f} s: {ratio:.1f} times")
    assert ratio > 2
