"""Settings as TFDS and tf.data calls: the dataset that one writes by hand, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import shardctl.tfds
from shardctl.errors import UnpredictableOrderError
from shardctl.settings.read_settings import ReadSettings
from tests.cases import FUZZ, check_cases
from tests.order.order_cases import changed, elements
from tests.order.toy_pipelines import (
    Case,
    Toys,
    as_line,
    cases,
    predicted,
    read_by_tfds,
    shuffled_paths,
)


def checker(toys: Toys) -> Callable[[Case], None]:
    def check(case: Case) -> None:
        import tensorflow as tf

        toy, settings = toys[case.toy], case.settings
        if case.file_order is not None:
            settings = changed(settings, file_order=tuple(shuffled_paths(toy, case.file_order)))
        order = predicted(toy, case, settings)
        if order is None:
            return
        expected = read_by_tfds(toy, case, settings, order.epoch_size)
        passes = [elements(expected, bytes.decode) for _ in range(1 + (not settings.repeat_files))]
        tf.random.set_seed(None)
        dataset = shardctl.tfds.pipeline(
            toy.builder, case.spec, settings, transform=as_line, add_tfds_id=True
        )
        assert [elements(dataset, bytes.decode) for _ in passes] == passes

    return check


def test_it_is_the_pipeline_written_by_hand(toys: Toys) -> None:
    check_cases(cases(), checker(toys), 2)


@pytest.mark.fuzz
def test_it_is_the_pipeline_written_by_hand_fuzzed(toys: Toys) -> None:
    check_cases(cases(), checker(toys), FUZZ // 4, fuzz=True)


def test_all_of_several_folders_has_no_order_to_keep_a_place_in(toys: Toys) -> None:
    builder, settings = toys["several"].builder, ReadSettings(batch=2)
    for call in (
        lambda: shardctl.tfds.pipeline(builder, "all", settings),
        lambda: shardctl.tfds.Position(builder, "all", settings),
        lambda: shardctl.tfds.exact_order(builder, "all", settings, consumed=3),
    ):
        with pytest.raises(UnpredictableOrderError, match="name them in the order"):
            call()
    assert shardctl.tfds.Position(builder, "test+train", settings).num_examples == 60
