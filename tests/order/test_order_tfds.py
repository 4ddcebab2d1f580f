"""Orders against TFDS's own reader: the tfds_id of every example, on datasets on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shardctl.errors import UnpredictableOrderError
from shardctl.metadata.tfds_metadata import read_tfds_folder
from shardctl.order.order import Order
from shardctl.order.reader_order import ReaderOrder
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.spec.subsplit import resolve_subsplit
from tests.cases import FUZZ, check_cases, fuzzed
from tests.order.order_cases import behind_the_reader, changed, elements
from tests.order.toy_pipelines import (
    Case,
    Toys,
    cases,
    predicted,
    read_by_tfds,
    reader_of_tfds,
    shuffled_paths,
)
from tests.pipelines.real_pipelines import epochs_of_fit
from tests.tfds_datasets import build_dataset

NUM_PASSES = 3


def agrees_with_tfds(toys: Toys, case: Case) -> int:
    """Compare all passes and return how many there were."""
    toy, settings = toys[case.toy], case.settings
    if case.file_order is not None:
        settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
    order = predicted(toy, case, settings)
    if order is None:
        with pytest.raises((ValueError, IndexError)):
            elements(read_by_tfds(toy, case, settings, 1))
        return 1
    dataset = read_by_tfds(toy, case, settings, order.epoch_size)
    num_passes = 1 if settings.repeat_files else NUM_PASSES
    for index in range(num_passes):
        again = predicted(toy, case, changed(settings, pass_index=index))
        assert again is not None
        expected, found = elements(dataset, bytes.decode), lines(again)
        if case.toy == "several":  # the examples of each folder hold ids from 0
            expected, found = ([line.split()[0] for line in side] for side in (expected, found))
        assert found == expected, (case, index)
    return num_passes


def lines(order: Order) -> list[str]:
    codes = order.read(0, order.num_examples)
    names = zip(order.codes.tfds_ids(codes), order.codes.names(codes), strict=True)
    return [f"{tfds_id} {name.rpartition(':')[2]}" for tfds_id, name in names]


@fuzzed(6, FUZZ // 2)
def test_every_pass_is_what_tfds_reads(toys: Toys, num_cases: int) -> None:
    def check(case: Case) -> None:
        agrees_with_tfds(toys, case)

    check_cases(cases(), check, num_cases)


@pytest.mark.parametrize(
    ("spec", "reshuffle", "is_cached"),
    [
        ("extra", None, True),
        ("extra[:4]", None, True),
        ("train[:2]", False, True),
        ("extra[:2]+extra[1:]", None, False),
        ("train", None, False),
        ("train", False, True),
    ],
)
def test_what_tfds_caches_has_the_order_it_would_have_without(
    toys: Toys, spec: str, reshuffle: bool | None, is_cached: bool
) -> None:
    import tensorflow_datasets as tfds

    settings = ReadSettings(shuffle_seed=3, reshuffle=reshuffle, epochs=2, cycle=2, block=1)
    builder = toys["plain"].builder
    config = tfds.ReadConfig(shuffle_seed=3, shuffle_reshuffle_each_iteration=reshuffle)
    cached = builder._should_cache_ds(spec, shuffle_files=True, read_config=config)
    # What is cached repeats its first pass; it is cached where all passes are alike anyway.
    assert cached == is_cached
    agrees_with_tfds(toys, Case(toy="plain", spec=spec, settings=settings))


# As Keras reads them: `fit` takes two iterators an epoch where it knows the length.

LENGTHS = [2, 3, 4, 2, 5]
FILES = {"shuffle_seed": 3, "cycle": 2, "block": 2, "batch": 5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_dataset(tmp_path_factory.mktemp("keras"), splits={"train": LENGTHS})


def order_of(folder: Path, settings: ReadSettings, pass_index: int = 0) -> Order:
    dataset = read_tfds_folder(folder)
    ranges = resolve_subsplit("train", dataset).ranges
    return ReaderOrder(dataset, ranges, changed(settings, pass_index=pass_index, loop="keras-fit"))


def read_for_keras(folder: Path, settings: ReadSettings) -> Any:
    import tensorflow_datasets as tfds

    builder = tfds.builder_from_directory(folder)
    dataset = reader_of_tfds(builder, "train", settings)
    epoch_size = order_of(folder, settings).epoch_size
    return behind_the_reader(dataset.map(lambda example: example["id"]), settings, epoch_size)


@pytest.mark.parametrize(
    "settings",
    [
        FILES,
        {**FILES, "reshuffle": False},
        {**FILES, "buffer": 5, "buffer_seed": 1},
        {**FILES, "buffer": -2, "buffer_seed": 1, "epochs": 2},
        {**FILES, "buffer": 4, "buffer_seed": 1, "buffer_reshuffle": False},
        # A pass of 32 examples leaves a partial batch of 2, one of 16 leaves one of 1.
        {**FILES, "epochs": 2},
        {**FILES, "epochs": 3, "buffer": 5, "buffer_seed": 1},
        {**FILES, "host": Host(index=1, count=2), "host_by": "files"},
        {**FILES, "host": Host(index=0, count=1), "host_by": "files"},
        {**FILES, "host": Host(index=1, count=2), "host_by": "examples"},
        {**FILES, "host": Host(index=0, count=2), "host_by": "files", "buffer": 3}
        | {"buffer_seed": 8},
    ],
)
@pytest.mark.filterwarnings("ignore:Your input ran out of data")  # its length is unknown
def test_every_epoch_of_fit(folder: Path, settings: dict[str, Any]) -> None:
    read = ReadSettings(**settings)
    found = []
    for index in range(NUM_PASSES):
        order = order_of(folder, read, index)
        found.append(order.read(0, order.num_examples).tolist())
    real = read_for_keras(folder, read)
    assert found == epochs_of_fit(real, ("batch", "example", False), NUM_PASSES)


@pytest.mark.parametrize("rest", [{"batch": 4}, {"batch": 5, "drop_remainder": True}])
def test_a_later_fit_epoch_over_a_repeat_without_a_partial_batch_is_open(
    folder: Path, rest: dict[str, Any]
) -> None:
    settings = ReadSettings(**{**FILES, "epochs": 2, **rest})
    assert order_of(folder, settings, 0).read(0, 1).tolist()
    with pytest.raises(UnpredictableOrderError, match="timing"):
        order_of(folder, settings, 1).read(0, 1)
