"""What Grain keeps of a sampler: the same text for the same order, and read back as a position."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from shardctl import Host, ReadSettings, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.errors import DatasetError, UsageError
from shardctl.grain.states import place_of_text, place_text, record_of_place
from shardctl.live.key_order import KeyOrder
from shardctl.saved.resume_plan import RunSegment
from tests.cases import counted
from tests.grain.toys import random_settings, toy


def test_a_place_is_read_back_with_all_that_the_order_follows_from() -> None:
    numbers = random.Random(5)
    data = toy(9, 0, 7, 12)
    for _ in counted(range(150)):
        try:
            order = KeyOrder(data, "train[2:]+test", random_settings(numbers), consumed=3)
        except UsageError:
            continue  # more hosts than files, or fewer examples
        place = place_of_text(place_text(order, workers=2), source="it")
        record = record_of_place(place, data, 5, source="it")
        assert (record.spec, record.settings, record.consumed) == (
            "train[2:]+test",
            order.settings,
            5,
        )
        assert (place["consumed"], place["workers"], place["size"]) == (3, 2, order.total)
        assert record.dataset == data.identity


def test_stretches_are_part_of_it() -> None:
    stretch = RunSegment(consumed=(4, 4, 3), batch=2, host_by="files")
    order = KeyOrder(
        toy(9, 7, 5), "train", ReadSettings(host=Host(index=1, count=2)), stretches=(stretch,)
    )
    place = place_of_text(place_text(order), source="it")
    assert record_of_place(place, toy(9, 7, 5), 1, source="it").stretches == (stretch,)


def test_the_text_says_nothing_that_a_release_or_a_folder_changes() -> None:
    settings = ReadSettings(shuffle_seed=7, batch=4)
    text = place_text(KeyOrder(toy(9, 7), "train", settings), workers=2)
    document = json.loads(text.removeprefix("shardctl.grain.Sampler(").removesuffix(")"))
    assert document.pop("fingerprint") == toy(9, 7).fingerprint
    assert document == {
        "dataset": "toy",
        "spec": "train",
        "settings": {
            "cycle": 16,
            "block": 16,
            "shuffle_files": True,
            "shuffle_seed": 7,
            "reshuffle": True,
            "batch": 4,
        },
        "size": 16,
        "consumed": 0,
        "workers": 2,
    }
    files = (ShardFiles(pattern="toy-train-\\0", num_shards=2, data_dir="/here"),)
    here = Split(name="train", shard_lengths=(9, 7), files=files)
    there = replace(here, files=(replace(files[0], data_dir="/there"),))
    texts = {
        place_text(KeyOrder(replace(toy(), splits=(split,)), "train", settings))
        for split in (here, there)
    }
    assert len(texts) == 1


def test_other_orders_have_other_texts() -> None:
    settings = ReadSettings(shuffle_seed=7)
    order = KeyOrder(toy(9, 7), "train", settings)
    others = [
        KeyOrder(toy(9, 8), "train", settings),
        KeyOrder(toy(9, 7), "train[1:]", settings),
        KeyOrder(toy(9, 7), "train", ReadSettings(shuffle_seed=8)),
        KeyOrder(order.dataset, order.spec, order.settings, consumed=1),
        order.of_fit(1),
    ]
    assert len({place_text(one) for one in (order, *others)}) == 6


def test_another_dataset_and_another_sampler_are_refused() -> None:
    text = place_text(KeyOrder(toy(9, 7), "train", ReadSettings()))
    place = place_of_text(text, source="it")
    with pytest.raises(DatasetError, match="it: it is of toy, and this is the same name with oth"):
        record_of_place(place, toy(9, 8), 7, source="it")
    with pytest.raises(DatasetError, match=r"begin with the count that it holds, consumed=7$"):
        record_of_place(place, toy(9, 8), 7, source="it")
    with pytest.raises(DatasetError, match="it is of toy, and this is digits, with other files"):
        record_of_place(place, toy(9, 8, name="digits"), 0, source="it")
    with pytest.raises(DatasetError, match="it is of another sampler than shardctl"):
        place_of_text("IndexSampler(num_records=5)", source="it")
