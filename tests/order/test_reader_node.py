"""TFDS's reader as a source: keys of elements, seeds of iterators, files that repeat for ever."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UnpredictableOrderError, UsageError
from shardctl.iteration.iteration import UNKNOWN
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order import staged as module
from shardctl.order.plan_order import plan_order
from shardctl.order.reader_order import ReaderOrder
from shardctl.order.staged import ElementKeys, ReaderNode
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.subsplit import SplitRange
from shardctl.tfdata.shuffle_seeds import ScriptSeeds
from tests.cases import check_cases
from tests.tfdata.shuffle_oracles import iterator_seeds
from tests.tfds_datasets import build_dataset

LENGTHS = (5, 0, 3, 11, 4, 1, 7)


def test_a_key_holds_the_reader_the_reading_and_the_position() -> None:
    def check(case: tuple[int, int, int, int]) -> None:
        size, num_readers, reading, place = case
        several = [
            ElementKeys(size=size, reader=reader, num_readers=num_readers)
            for reader in range(num_readers)
        ]
        positions = np.array([place % size, size - 1])
        for reader, keys in enumerate(several):
            made = positions + keys.first(reading)
            assert keys.position(made).tolist() == positions.tolist()
            assert keys.reading(made).tolist() == [reading] * 2
            # Any reader's keys say whose a key is.
            assert several[0].readers(made).tolist() == [reader] * 2

    sizes = st.tuples(st.integers(1, 1 << 40), st.integers(1, 9), st.integers(0, 9000))
    check_cases(st.tuples(sizes, st.integers(0)).map(lambda c: (*c[0], c[1])), check, 150)
    for size, most in ((1 << 50, 2**11), (9, 2**20)):
        keys = ElementKeys(size=size, reader=3, num_readers=4)
        assert keys.first(most - 1) > 0
        with pytest.raises(UsageError, match=f"{most:,} times and more"):
            keys.first(most)


@pytest.mark.parametrize("most_kept", [1 << 21, 1000])
@pytest.mark.parametrize("seed", [None, 3])
def test_codes_of_a_node_are_those_of_its_readings(
    monkeypatch: pytest.MonkeyPatch, most_kept: int, seed: int | None
) -> None:
    monkeypatch.setattr(module, "_MOST_KEPT", most_kept)
    monkeypatch.setattr(module, "_MOST_READINGS", 2)
    lengths = np.full(30, 1000) - np.arange(30) % 3
    node = _node(tuple(lengths.tolist()), host="1/3", host_by="examples", shuffle_seed=seed)
    readings = [node.reading(node.iterate().number) for _ in range(4)]
    total, rng = readings[0].num_examples, np.random.default_rng(0)
    for start in [*range(0, total, 997), 5, total - 90]:
        near = rng.integers(start, min(start + 600, total), 500)
        for asked in (near, np.concatenate([near[:9], rng.integers(0, total, 5), [total - 1, 0]])):
            number = int(rng.integers(4))
            expected = readings[number].codes_at(asked)
            assert np.array_equal(node.codes_at(number, asked), expected)
    assert node.codes_at(0, np.empty(0, np.int64)).tolist() == []
    assert np.array_equal(node.codes_at(0, np.arange(total)), readings[0].codes(0, total))


def _node(lengths: tuple[int, ...] = LENGTHS, /, **settings: Any) -> ReaderNode:
    split = Split(name="train", shard_lengths=lengths)
    ranges = [SplitRange(split=split, start=0, stop=sum(lengths))]
    order = ReaderOrder(Dataset(name="d", splits=(split,)), ranges, ReadSettings(**settings))
    size = None if order.settings.repeat_files else order.epoch_size
    keys = ElementKeys(size=size, reader=0, num_readers=1)
    return ReaderNode(order, keys, ScriptSeeds(order.settings.global_seed))


def test_each_iterator_takes_the_next_pair_also_where_nobody_reads_it() -> None:
    node = _node(shuffle_seed=3)
    first, second, third = (node.iterate() for _ in range(3))
    for number, iteration in ((2, third), (0, first)):
        expected = _node(shuffle_seed=3, pass_index=number).reader.read(0, 31)
        assert node.codes_of(np.arange(31) + iteration.first).tolist() == expected.tolist()
    assert third.taken is not None
    assert third.taken.seeds == iterator_seeds(3, None, None, 2)
    # Keys are found by code in any reading, of what was pulled of it.
    second.pull(10)
    whole = node.codes_of(second.examples(np.arange(10)))
    query, keys = node.tickets_of(1, np.arange(31))
    assert node.codes_of(keys).tolist() == query.tolist() == sorted(whole.tolist())


def test_readings_that_are_alike_and_what_tfds_does_not_know() -> None:
    for settings in ({}, {"shuffle_seed": 3, "reshuffle": False}):
        node = _node(**settings)
        assert node.is_fixed
        orders = [node.codes_of(np.arange(31) + node.iterate().first).tolist() for _ in range(2)]
        assert orders[0] == orders[1] == node.reader.read(0, 31).tolist()
    assert not _node(shuffle_seed=3).is_fixed
    assert _node().cardinality == 31
    assert _node(host="0/2", host_by="files").cardinality == UNKNOWN
    assert _node(repeat_files=True).cardinality == UNKNOWN


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("reader"), splits={"train": list(LENGTHS)})


ENDLESS: dict[str, Any] = {"cycle": 3, "block": 2, "repeat_files": True}


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
    settings = {**ENDLESS, "stages": "shuffle(9, seed=2) | batch(4)", "shuffle_seed": seed}
    settings["reshuffle"] = reshuffle
    order = plan_order(read_tfds_folder(folder), "train", settings).order
    assert order.is_endless
    assert order.codes.tfds_ids(order.read(0, 160)) == read
    assert order.codes.tfds_ids(order.codes_at([159, 3])) == [read[159], read[3]]


def test_a_later_iterator_of_shuffled_files_that_repeat_is_refused(folder: Path) -> None:
    dataset, settings = read_tfds_folder(folder), {**ENDLESS, "stages": "take(40) | repeat(2)"}
    real = _endless(folder, None, None).take(40).repeat(2)
    order = plan_order(dataset, "train", settings).order
    read = [name.decode() for name in real.as_numpy_iterator()]
    assert order.codes.tfds_ids(order.read(0, 80)) == read
    with pytest.raises(UnpredictableOrderError, match="TFDS's shuffle of the files"):
        plan_order(dataset, "train", settings | {"shuffle_seed": 3})
