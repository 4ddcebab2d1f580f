"""Orders: what tf.data hands out over ranges in place of files, at any position, in any pass."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st

from shardctl.core.dataset import Dataset, Split
from shardctl.core.file_instruction import SplitRange
from shardctl.core.hosts import Host
from shardctl.core.order import Order
from shardctl.core.read_settings import ReadSettings
from shardctl.errors import UnpredictableOrderError, UsageError
from tests.core.order_cases import Case, cases, changed, elements, tensorflow_dataset
from tests.strategies import NUM_FUZZ, Recorder, count_cases

NUM_PASSES = 3


def whole(order: Order) -> list[int]:
    return order.read(0, order.num_examples).tolist()


def agrees_with_tensorflow(case: Case) -> None:
    import tensorflow as tf

    dataset = tensorflow_dataset(tf, case)
    for index in range(1 if case.settings.repeat_files else NUM_PASSES):
        assert whole(case.order(index)) == elements(dataset), (case, index)
    tf.random.set_seed(None)


def test_every_pass_is_what_tensorflow_hands_out(record_property: Recorder) -> None:
    record_property("cases", count_cases(cases(), agrees_with_tensorflow, 200))


@pytest.mark.fuzz
def test_every_pass_is_what_tensorflow_hands_out_fuzzed(record_property: Recorder) -> None:
    record_property("cases", count_cases(cases(), agrees_with_tensorflow, NUM_FUZZ, fuzz=True))
