"""The built-in catalog holds facts: each has a source, and the well-known ones are as published."""

import json
from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

CATALOG = files("shardctl").joinpath("metadata", "catalog")
FILES = {file.name: json.loads(file.read_text("utf-8")) for file in CATALOG.iterdir()}


def entries() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields `name/config:version` and the entry, for each entry of each file."""
    for dataset in FILES.values():
        for entry in dataset["entries"]:
            config = f"/{entry['config']}" if entry["config"] else ""
            yield f"{dataset['name']}{config}:{entry['version']}", entry


def splits() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields `name/config:version split` and the split, for each split of each entry."""
    for reference, entry in entries():
        for split in entry["splits"]:
            yield f"{reference} {split['name']}", split


def rounded_lengths(num_examples: int, num_shards: int) -> list[int]:
    """Returns the lengths between TFDS's boundaries, `core/utils/shard_utils.py`."""
    boundaries = [round(num_examples * i / num_shards) for i in range(num_shards + 1)]
    return [stop - start for start, stop in pairwise(boundaries)]


def shard_lengths(split: dict[str, Any]) -> list[int]:
    """Returns the lengths that are written out, or those that the two numbers stand for."""
    if "shard_lengths" in split:
        return list(split["shard_lengths"])
    return rounded_lengths(split["num_examples"], split["num_shards"])


ENTRIES = dict(entries())
SPLITS = dict(splits())

each_entry = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES.keys())
each_split = pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS.keys())


def test_a_file_is_named_after_its_dataset() -> None:
    assert {f"{dataset['name']}.json" for dataset in FILES.values()} == set(FILES)


def test_a_file_is_small_enough_to_be_read_at_each_start() -> None:
    assert max(len(file.read_bytes()) for file in CATALOG.iterdir()) < 16_000


def test_a_file_holds_its_own_fields_and_no_others() -> None:
    assert {tuple(dataset) for dataset in FILES.values()} == {("name", "default_config", "entries")}


def test_a_name_config_and_version_are_listed_once() -> None:
    assert len(list(entries())) == len(ENTRIES)


def test_a_split_is_listed_once_in_an_entry() -> None:
    assert len(list(splits())) == len(SPLITS)


@pytest.mark.parametrize("dataset", FILES.values(), ids=FILES.keys())
def test_a_dataset_has_configs_in_each_entry_or_in_none(dataset: dict[str, Any]) -> None:
    has_configs = dataset["default_config"] is not None
    assert dataset["entries"]
    assert {entry["config"] is not None for entry in dataset["entries"]} == {has_configs}


@pytest.mark.parametrize("dataset", FILES.values(), ids=FILES.keys())
def test_newer_versions_of_a_config_come_first(dataset: dict[str, Any]) -> None:
    versions: dict[str | None, list[tuple[int, ...]]] = {}
    for entry in dataset["entries"]:
        version = tuple(int(number) for number in entry["version"].split("."))
        versions.setdefault(entry["config"], []).append(version)
    assert all(listed == sorted(listed, reverse=True) for listed in versions.values())


@each_entry
def test_an_entry_says_where_its_numbers_come_from(entry: dict[str, Any]) -> None:
    assert entry["source"].startswith("tensorflow/datasets@")
    assert entry["file_format"] == "tfrecord"
    assert len(entry["version"].split(".")) == 3
    assert entry["splits"]
    assert set(entry) == {"config", "version", "file_format", "source", "splits"}


@each_split
def test_a_split_is_given_by_two_numbers_or_by_its_lengths(split: dict[str, Any]) -> None:
    by_numbers = {"name", "num_examples", "num_shards", "num_bytes"}
    by_lengths = {"name", "shard_lengths", "num_bytes"}
    assert set(split) in (by_numbers, by_lengths)
    assert split["num_bytes"] is None or split["num_bytes"] > 0


@each_split
def test_every_shard_of_a_split_holds_an_example(split: dict[str, Any]) -> None:
    lengths = shard_lengths(split)
    assert lengths
    assert min(lengths) > 0
    assert sum(lengths) == split.get("num_examples", sum(lengths))


@pytest.mark.parametrize(
    "split",
    [split for split in SPLITS.values() if "shard_lengths" in split],
    ids=[name for name, split in SPLITS.items() if "shard_lengths" in split],
)
def test_lengths_are_written_out_only_where_rounding_does_not_give_them(
    split: dict[str, Any],
) -> None:
    lengths = split["shard_lengths"]
    assert lengths != rounded_lengths(sum(lengths), len(lengths))


@pytest.mark.parametrize(
    ("name", "num_examples", "num_shards", "num_bytes"),
    [
        ("imagenet2012:5.1.0 train", 1_281_167, 1024, 146_999_114_192),
        ("imagenet2012:5.1.0 validation", 50_000, 64, 6_711_099_535),
        ("imagenet2012:5.1.0 test", 100_000, 128, 13_619_139_599),
        ("imagenet2012:5.0.0 validation", 50_000, 64, None),
        ("mnist:3.0.1 train", 60_000, 1, 18_872_042),
        ("mnist:3.0.1 test", 10_000, 1, 3_150_056),
        ("cifar10:3.0.2 train", 50_000, 1, 115_700_776),
        ("cifar10:3.0.2 test", 10_000, 1, 23_132_469),
        ("cifar100:3.0.2 train", 50_000, 1, 115_334_082),
        ("fashion_mnist:3.0.1 train", 60_000, 1, 32_717_636),
        ("imdb_reviews/plain_text:1.0.0 unsupervised", 50_000, 1, 68_806_612),
        ("lm1b:1.1.0 train", 30_301_028, 64, 4_681_985_100),
        ("coco/2014:1.1.0 train", 82_783, 128, 13_524_503_973),
        ("coco/2017:1.1.0 train", 118_287, 256, None),
        ("c4/en:3.1.0 train", 364_613_570, 1024, 865_505_708_324),
        ("wikipedia/20230601.en:1.0.0 train", 6_672_479, 256, 21_348_192_424),
        ("glue/mnli:2.0.0 train", 392_702, 1, 95_620_596),
        ("squad/v2.0:3.0.0 train", 130_319, 2, 141_803_569),
        ("wmt14_translate/fr-en:1.0.0 train", 40_836_876, 128, 15_723_239_773),
        ("natural_questions/default:0.1.0 train", 307_373, 1024, 94_631_678_385),
    ],
)
def test_well_known_splits_are_as_published(
    name: str, num_examples: int, num_shards: int, num_bytes: int | None
) -> None:
    lengths = shard_lengths(SPLITS[name])
    assert (sum(lengths), len(lengths)) == (num_examples, num_shards)
    assert SPLITS[name]["num_bytes"] == num_bytes


def test_splits_are_in_the_order_of_the_metadata() -> None:
    names = {name: [split["name"] for split in entry["splits"]] for name, entry in ENTRIES.items()}
    assert names["imagenet2012:5.1.0"] == ["train", "validation", "test"]
    assert names["mnist:3.0.1"] == ["train", "test"]
    assert names["cifar10:3.0.2"] == ["test", "train"]
