"""Numbers of readings: each repetition of a source counts on, and codes stay what they are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from shardctl.iteration import iteration as readings
from shardctl.iteration.build import build
from shardctl.iteration.iteration import EVERYTHING, NOTHING
from shardctl.stages.text import parse_stages

TEXTS = [
    "repeat(3)",
    "shuffle(3, seed=1) | repeat(3) | batch(2)",
    "shuffle(3, seed=1) | map | repeat(3)",
    "cache | shuffle(4, seed=1) | repeat(3)",
    "repeat(2) | map | shuffle(3, seed=1) | repeat(2)",
    "repeat(3) | shuffle(5, seed=1) | batch(4) | unbatch",
    "batch(2) | repeat(3) | shard(1, 0)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_each_example_is_once_in_each_reading(text: str) -> None:
    node = build(parse_stages(f"range(5) | {text}"), lambda read: NOTHING)
    iteration = node.iterate()
    iteration.pull(EVERYTHING)
    places = np.arange(iteration.num_examples)
    codes, numbers = iteration.codes_at(places), iteration.readings_at(places)
    seen = Counter(zip(codes.tolist(), numbers.tolist(), strict=True))
    assert set(seen.values()) == {1}
    assert len(seen) == len(places) == 5 * iteration.num_readings
    assert set(numbers.tolist()) == set(range(iteration.num_readings))


def test_inputs_of_a_mixture_count_for_themselves() -> None:
    text = "choose_from_datasets([range(2) | repeat, range(9)], choices=range(2) | repeat(4))"
    iteration = build(parse_stages(text), lambda read: NOTHING).iterate()
    iteration.pull(EVERYTHING)
    places = np.arange(8)
    assert iteration.codes_at(places).tolist() == [0, 0, 1, 1, 0, 2, 1, 3]
    assert iteration.readings_at(places).tolist() == [0, 0, 0, 0, 1, 0, 1, 0]
    assert iteration.num_readings == 2


def test_a_second_dataset_behind_the_first_is_no_repetition() -> None:
    iteration = build(
        parse_stages("range(3) | concatenate(range(2)) | repeat(2)"), lambda read: NOTHING
    ).iterate()
    iteration.pull(EVERYTHING)
    assert iteration.readings_at(np.arange(10)).tolist() == [0] * 5 + [1] * 5


def test_codes_are_handed_out_again_when_counting_is_over() -> None:
    with readings.counted():
        with readings.counted(on=False):
            assert not readings.are_counted()
        assert readings.are_counted()
    assert not readings.are_counted()
