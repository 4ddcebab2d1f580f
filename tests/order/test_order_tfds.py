"""Orders against TFDS's own reader: the tfds_id of every example, on datasets on disk."""

from __future__ import annotations

import pytest

from shardctl.order.order import Order
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases, fuzzed
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import (
    Case,
    Toys,
    cases,
    predicted,
    read_by_tfds,
    shuffled_paths,
)

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

    check_cases(cases(), check, num_cases, fuzz=num_cases == FUZZ // 2)


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
