"""The dataset behind a builder: as the metadata has it, without a file read."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import shardctl.tfds
from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import DatasetError
from shardctl.tfds.builder_layout import dataset_of, in_order_of
from tests.order.toy_pipelines import Toys
from tests.tfds_datasets import build_dataset


def test_the_layout_of_a_builder_is_that_of_its_metadata(toys: Toys) -> None:
    for name, toy in toys.items():
        found = shardctl.tfds.dataset_of(toy.builder)
        assert found.ordered == toy.dataset.ordered
        assert found.title == toy.dataset.title
        assert found.file_format == toy.dataset.file_format
        names = {split.name: split for split in found.splits}
        for split in toy.dataset.splits:
            one = names[split.name]
            assert (one.files, one.shard_lengths) == (split.files, split.shard_lengths), name


def test_a_config_and_a_size_are_those_of_the_builder(tfds: Any, tmp_path: Path) -> None:
    folder = build_dataset(tmp_path, config="small", splits={"train": [0]}, with_files=False)
    found = dataset_of(tfds.builder_from_directory(str(folder)))
    assert (found.title, found.origin) == ("toy/small:1.0.0", "builder")
    assert found.splits[0].num_bytes is None  # TFDS writes 0 where it does not know


def test_a_builder_of_nothing_that_is_prepared_says_what_to_call() -> None:
    info = SimpleNamespace(splits={}, full_name="toy/1.0.0")
    builder = SimpleNamespace(info=info, data_dir="/data/toy/1.0.0")
    with pytest.raises(DatasetError) as refused:
        dataset_of(builder)
    assert str(refused.value) == (
        "toy/1.0.0 has no splits: it is not prepared in /data/toy/1.0.0; "
        "call builder.download_and_prepare() first"
    )


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["c", "a", "b"], ["c", "a", "b"]),
        (["c"], ["c", "a", "b"]),
        ([], ["a", "b", "c"]),
        (["x", "b"], ["b", "a", "c"]),
    ],
)
def test_splits_are_in_an_order_that_is_named_the_others_behind(
    names: list[str], expected: list[str]
) -> None:
    splits = tuple(Split(name=name, shard_lengths=(1,)) for name in "abc")
    found = in_order_of(Dataset(name="toy", splits=splits), names)
    assert [split.name for split in found.splits] == expected
