"""TFDS's reader as a source: which seeds its iterators take, and files that repeat for ever."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UnpredictableOrderError
from shardctl.iteration.iteration import UNKNOWN
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.plan_order import plan_order
from shardctl.order.reader_node import ElementKeys, ReaderNode
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from tests.tfdata.shuffle_oracles import iterator_seeds
from tests.tfds_datasets import build_dataset

SPLIT = Split(name="train", shard_lengths=(5, 0, 3, 11, 4, 1, 7))
DATASET = Dataset(name="d", splits=(SPLIT,))


def _node(**settings: Any) -> ReaderNode:
    ranges = [SplitRange(split=SPLIT, start=0, stop=31)]
    order = ReaderOrder(DATASET, ranges, ReadSettings(**settings))
    size = None if order.settings.repeat_files else order.epoch_size
    tickets = ElementKeys(size=size, reader=0, num_readers=1)
    return ReaderNode(order, tickets, ScriptSeeds(order.settings.global_seed))


def test_each_iterator_takes_the_next_pair_also_where_nobody_reads_it() -> None:
    node = _node(shuffle_seed=3)
    for _ in range(3):
        node.iterate()
    for number in (2, 0):
        expected = _node(shuffle_seed=3, pass_index=number).reader.read(0, 31)
        read = node.codes_of(np.arange(31) + node.tickets.first(number))
        assert read.tolist() == expected.tolist()
    taken = node.iterations[2].taken
    assert taken is not None
    assert taken.seeds == iterator_seeds(3, None, None, 2)


def test_readings_that_are_alike_take_no_seeds() -> None:
    for settings in ({}, {"shuffle_seed": 3, "reshuffle": False}):
        node = _node(**settings)
        assert node.is_fixed
        orders = [node.codes_of(np.arange(31) + node.iterate().first).tolist() for _ in range(2)]
        assert orders[0] == orders[1] == node.reader.read(0, 31).tolist()
    assert not _node(shuffle_seed=3).is_fixed


def test_what_tfds_does_not_know_is_no_cardinality() -> None:
    assert _node().cardinality == 31
    assert _node(host="0/2", host_by="files").cardinality == UNKNOWN
    assert _node(repeat_files=True).cardinality == UNKNOWN


def test_tickets_are_found_by_code_in_any_reading() -> None:
    node = _node(shuffle_seed=3)
    first, second = node.iterate(), node.iterate()
    first.pull(31)
    second.pull(10)
    whole = node.codes_of(second.examples(np.arange(10)))
    query, tickets = node.tickets_of(1, np.arange(31))
    assert len(tickets) == 10
    assert node.codes_of(tickets).tolist() == query.tolist() == sorted(whole.tolist())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("reader")
    return build_dataset(root, splits={"train": [5, 0, 3, 11, 4, 1, 7]})


def _endless(folder: Path, seed: int | None, reshuffle: bool | None) -> Any:
    import tensorflow_datasets as tfds

    config = tfds.ReadConfig(
        shuffle_seed=seed,
        shuffle_reshuffle_each_iteration=reshuffle,
        interleave_cycle_length=3,
        interleave_block_length=2,
        repeat_filenames=True,
        assert_cardinality=False,
        try_autocache=False,
        add_tfds_id=True,
    )
    builder = tfds.builder_from_directory(folder)
    dataset = builder.as_dataset(split="train", read_config=config, shuffle_files=seed is not None)
    return dataset.map(lambda example: example["tfds_id"])


@pytest.mark.parametrize(("seed", "reshuffle"), [(None, None), (7, None), (7, False)])
def test_files_that_repeat_are_followed_as_far_as_asked(
    folder: Path, seed: int | None, reshuffle: bool | None
) -> None:
    real = _endless(folder, seed, reshuffle).shuffle(9, seed=2).batch(4)
    read = [name.decode() for batch in islice(real.as_numpy_iterator(), 40) for name in batch]
    settings = {
        "stages": "shuffle(9, seed=2) | batch(4)",
        "shuffle_seed": seed,
        "reshuffle": reshuffle,
        "cycle": 3,
        "block": 2,
        "repeat_files": True,
    }
    order = plan_order(read_tfds_folder(folder), "train", settings).order
    assert order.is_endless
    assert order.codes.tfds_ids(order.read(0, 160)) == read
    assert order.codes.tfds_ids(order.codes_at([159, 3])) == [read[159], read[3]]


def test_a_later_iterator_of_shuffled_files_that_repeat_is_refused(folder: Path) -> None:
    dataset = read_tfds_folder(folder)
    settings = {"repeat_files": True, "stages": "take(40) | repeat(2)"}
    real = _endless(folder, None, None).take(40).repeat(2)
    read = [name.decode() for name in real.as_numpy_iterator()]
    order = plan_order(dataset, "train", settings | {"cycle": 3, "block": 2}).order
    assert order.codes.tfds_ids(order.read(0, 80)) == read
    with pytest.raises(UnpredictableOrderError, match="TFDS's shuffle of the files"):
        plan_order(dataset, "train", settings | {"shuffle_seed": 3})
