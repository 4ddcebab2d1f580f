"""What TFDS puts behind its interleave belongs to its reader, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.stages.stages import WithOptions
from shardctl.tfds.recognizing.graph import Operation, Options, operation_of
from shardctl.tfds.recognizing.reader import found_reader, reads_files
from shardctl.tfds.recognizing.walk import BehindReader, behind_tfds
from tests.tfds_datasets import build_dataset


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import tensorflow_datasets as tfds

    folder: Path = build_dataset(tmp_path_factory.mktemp("tfds"), splits={"train": [3, 4, 2]})
    return tfds.builder_from_directory(folder)


def _behind(dataset: Any, options: Options | None = None) -> BehindReader:
    chain: list[Operation] = [operation_of(dataset)]
    while not reads_files(chain[-1]):
        chain.append(chain[-1].input)
    first, *rest = reversed(chain)
    return behind_tfds(found_reader(first), tuple(rest), options or Options())


def test_all_of_as_dataset_is_the_reader(builder: Any) -> None:
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(shuffle_seed=1)
    for shuffled in (False, True):
        read = builder.as_dataset(split="train", shuffle_files=shuffled, read_config=config)
        assert _behind(read).rest == ()
    behind = _behind(read.cache().prefetch(2))
    assert [operation.op for operation in behind.rest] == ["CacheDatasetV2", "PrefetchDataset"]


def test_a_cache_that_keeps_a_shuffled_order_is_a_stage(builder: Any) -> None:
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(shuffle_seed=1, skip_prefetch=True)
    read = builder.as_dataset(split="train", shuffle_files=True, read_config=config).cache()
    assert [operation.op for operation in _behind(read).rest] == ["CacheDatasetV2"]


def test_a_cache_in_a_file_is_never_that_of_the_reader(builder: Any, tmp_path: Path) -> None:
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(skip_prefetch=True, try_autocache=False)
    read = builder.as_dataset(split="train", read_config=config)
    assert _behind(read.cache()).rest == ()
    in_file = _behind(read.cache(str(tmp_path / "kept")))
    assert [operation.op for operation in in_file.rest] == ["CacheDatasetV2"]


def test_options_of_the_reader_are_stages_where_they_say_something(builder: Any) -> None:
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig()
    assert _behind(builder.as_dataset(split="train", read_config=config)).options == ()
    config.options.experimental_optimization.shuffle_and_repeat_fusion = False
    read = builder.as_dataset(split="train", read_config=config)
    ((stage, operation),) = _behind(read, Options(fusion=False)).options
    assert (stage, operation.op) == (WithOptions(fusion=False), "OptionsDataset")


def test_decoding_that_hands_out_what_is_ready(builder: Any) -> None:
    import tensorflow_datasets as tfds

    loose = Options(deterministic=False)
    assert not _behind(builder.as_dataset(split="train"), loose).reader.decodes_in_order
    config = tfds.ReadConfig(num_parallel_calls_for_decode=1)
    alone = builder.as_dataset(split="train", read_config=config)
    assert _behind(alone, loose).reader.decodes_in_order
