"""Scores: what a metric loses by its fault, what several come to, what a score is worth."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.order.plan_order import plan_order
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.quality.metrics import (
    FAIR,
    GOOD,
    MIXED,
    SPREADS,
    Fault,
    Metric,
    Score,
    Verdict,
    even_from_afar,
    lowest_uniform,
    meaning,
    score_of,
    verdict_of,
)
from tests.golden import assert_evaluated, listed
from tests.verbs.quality.quality_orders import even_dataset, in_equal_shards, score


def measured(value: float, **changed: Any) -> Metric:
    """Return a metric that is worse above 0.1 and scores 0 from 0.5 on."""
    named: dict[str, Any] = {
        "name": "x",
        "expected": 0.1,
        "spread": 0.01,
        "fault": "above",
        "reach": 0.4,
        **changed,
    }
    return Metric(value=value, **named)


@pytest.mark.parametrize(
    ("metrics", "value", "near", "far"), listed(Path(__file__).with_name("scores.txt"), globals())
)
def test_metrics_near_by_multiply_and_those_far_apart_take_up_to_a_half(
    metrics: list[Metric], value: float, near: float, far: float | None
) -> None:
    # sqrt(0.5 * 0.125) = 0.25: of the second case the second metric scores 0.125.
    found = score_of(metrics)
    assert found.value == pytest.approx(value)
    assert found.near == pytest.approx(near)
    assert found.far == (None if far is None else pytest.approx(far))


def test_the_expected_score_is_the_mean_over_orders_that_are_uniform() -> None:
    metrics = [
        measured(0.1, spread=0.004),
        measured(0.1, spread=0.006, fault="both"),
        measured(0.1, spread=0.008, fault="below"),
        measured(0.1, spread=0.01, fault="both", scale="far"),
    ]
    normal = np.random.default_rng(0).standard_normal((4000, 4))
    values = [
        score_of(
            [
                replace(m, value=0.1 + float(z) * m.spread)
                for m, z in zip(metrics, draws, strict=True)
            ]
        ).value
        for draws in normal
    ]
    said = score_of(metrics)
    error = said.spread / math.sqrt(len(values))
    assert np.mean(values) == pytest.approx(said.expected, abs=4 * error + 1e-4)
    assert np.std(values) == pytest.approx(said.spread, rel=0.05)


@pytest.mark.parametrize("fault", ["above", "below", "both"])
def test_what_one_metric_loses_is_that_of_a_normal_number(fault: Fault) -> None:
    z = np.linspace(-10, 10, 200_001)
    density = np.exp(-(z**2) / 2)
    lost = np.abs(z) if fault == "both" else np.maximum(0, z if fault == "above" else -z)
    mean = np.average(lost, weights=density)
    spread = math.sqrt(np.average((lost - mean) ** 2, weights=density))
    said = score_of([measured(0.1, spread=0.004, fault=fault)])  # 0.01 of the reach
    assert said.expected == pytest.approx(1 - 0.01 * mean, abs=1e-9)
    assert said.spread == pytest.approx(0.01 * spread, rel=1e-6)


def test_a_sampling_error_is_that_of_each_metric_by_its_weight() -> None:
    # One metric: a change of 0.04 in the value is 0.1 in the score.
    assert score_of([measured(0.3, sampling_error=0.04)]).sampling_error == pytest.approx(0.1)
    # Far apart a metric counts for half of what is near by.
    both = [measured(0.3, sampling_error=0.0), measured(0.3, sampling_error=0.04, scale="far")]
    assert score_of(both).sampling_error == pytest.approx(0.1 * 0.5 / 2)


def test_a_score_without_a_sampling_error_of_each_metric_has_none() -> None:
    found = score_of([measured(0.3, sampling_error=0.04), measured(0.3)])
    assert found.sampling_error is None


# What the score of an order is worth, in words.


def _verdict(num_examples: int, num_shards: int, settings: ReadSettings) -> str:
    return quality(even_dataset(num_examples, num_shards), "train", settings, what_if=False).verdict


@pytest.mark.parametrize("num_examples", [2, 3, 10, 1000, 60_000])
@pytest.mark.parametrize(
    "settings",
    [
        ReadSettings(),
        ReadSettings(cycle=2, block=1, batch=2),  # from half the dataset to the other, and back
        ReadSettings(reverse=True),
        ReadSettings(buffer=1, buffer_seed=1),
        ReadSettings(epochs=3),
        ReadSettings(repeat_files=True, epochs=2),
        ReadSettings(deterministic=False),
    ],
    ids=str,
)
def test_what_nothing_shuffles_is_no_shuffle_whatever_it_scores(
    num_examples: int, settings: ReadSettings
) -> None:
    assert _verdict(num_examples, 2, settings) == "no shuffle"


def test_a_file_shuffle_of_one_file_is_no_shuffle() -> None:
    assert _verdict(1000, 1, ReadSettings(shuffle_seed=1)) == "no shuffle"
    assert _verdict(1000, 2, ReadSettings(shuffle_seed=1)) == "weak"
    one_each = ReadSettings(shuffle_seed=1, host=Host(index=1, count=2), host_by="files")
    assert _verdict(1000, 2, one_each) == "no shuffle"
    assert _verdict(1000, 4, one_each) == "weak"


@pytest.mark.parametrize("num_examples", [2, 3, 7, 50, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_a_buffer_as_large_as_the_epoch_is_uniform_however_it_looks(
    num_examples: int, seed: int
) -> None:
    for size in (num_examples, num_examples + 1, -2):
        settings = ReadSettings(buffer=size, buffer_seed=seed)
        assert _verdict(num_examples, 1, settings) == "as good as uniform"
    part = ReadSettings(
        buffer=num_examples, buffer_seed=seed, host=Host(index=0, count=2), host_by="examples"
    )
    if num_examples > 3:
        assert _verdict(num_examples, 1, part) == "as good as uniform"


def test_a_buffer_over_files_without_end_is_judged_by_its_score() -> None:
    # It takes in the next epoch before this one is out.
    settings = ReadSettings(buffer=1000, buffer_seed=1, repeat_files=True, epochs=2)
    assert _verdict(1000, 1, settings) != "as good as uniform"


@pytest.mark.parametrize("num_examples", [2000, 60_000])
@pytest.mark.parametrize("num_shards", [1, 16, 100])
@pytest.mark.parametrize("batch", [32, 256])
def test_the_thresholds_are_buffers_of_a_quarter_and_of_half_the_dataset(
    num_examples: int, num_shards: int, batch: int
) -> None:
    def score(part: float) -> float:
        size = int(num_examples * part)
        settings = ReadSettings(cycle=1, buffer=size, buffer_seed=1, batch=batch)
        dataset = even_dataset(num_examples, num_shards)
        return quality(dataset, "train", settings, what_if=False).score.value

    assert 0.42 < score(0.25) < 0.56
    assert 0.74 < score(0.5) < 0.83
    assert score(0.2) < FAIR < score(0.33)
    assert score(0.45) < GOOD < score(0.6)


@pytest.mark.long
@pytest.mark.parametrize("shape", [(10, 4, 2), (50, 4, 12), (100, 4, 2), (1000, 16, 250)])
def test_uniform_permutations_are_as_good_as_uniform(shape: tuple[int, int, int]) -> None:
    n, shards, window = shape
    rng = np.random.default_rng(500)
    scores = [score(in_equal_shards(rng.permutation(n), shards), window) for _ in range(500)]
    assert sum(one.value < lowest_uniform(one) for one in scores) <= 2  # where 0.5 are expected


def _order(**settings: Any) -> Any:
    return plan_order(even_dataset(1000, 10), "train", ReadSettings(**settings)).order


def _score(value: float, expected: float = 0.99, spread: float = 0.001) -> Score:
    return Score(
        value=value, near=value, far=value, expected=expected, spread=spread, sampling_error=None
    )


def test_scores_of_metrics_and_their_verdicts() -> None:
    assert_evaluated(globals(), "scores")
    for value in (0.0, 0.5, 0.985):
        assert verdict_of(_score(value), _order()) == "no shuffle"
        whole = _order(buffer=1000, buffer_seed=1)
        assert verdict_of(_score(value), whole) == ("as good as uniform")


def test_of_a_few_examples_nothing_can_be_told() -> None:
    for num_examples in (2, 3, 5):
        found = _verdict(num_examples, 2, ReadSettings(shuffle_seed=1, cycle=1))
        assert found == "cannot tell", num_examples
    assert _verdict(1000, 500, ReadSettings(shuffle_seed=1)) in ("fair", "good")


def test_every_verdict_has_a_meaning() -> None:
    order = plan_order(even_dataset(9, 2)).order
    for verdict in get_args(Verdict):
        assert meaning(verdict, order)
    assert 0 < FAIR < GOOD < 1 < SPREADS
    assert lowest_uniform(_score(0.5, 0.9, 1.0)) == 0.0


def test_what_looks_even_and_is_not_is_said_with_its_verdict() -> None:
    assert frozenset(get_args(Verdict)) - MIXED == {"no shuffle", "weak", "fair"}
    assert "locally this order is fair. " in even_from_afar("fair")
    assert "locally this order is not shuffled. " in even_from_afar("no shuffle")


def test_a_buffer_that_falls_short_is_close_to_uniform_and_never_as_good() -> None:
    """A buffer of two thirds of 1,500 examples: its scores lie below those of permutations."""
    layout = Dataset(name="d", splits=(Split(name="train", shard_lengths=(214, 215) * 3 + (213,)),))
    found = [
        quality(layout, "train", ReadSettings(buffer=1000, buffer_seed=seed)) for seed in range(12)
    ]
    assert {one.verdict for one in found} <= {"good", "close to uniform"}
    assert np.mean([one.score.value for one in found]) < found[0].score.expected - 0.01
    whole = quality(layout, "train", ReadSettings(buffer=1500, buffer_seed=1))
    assert whole.verdict == "as good as uniform"
