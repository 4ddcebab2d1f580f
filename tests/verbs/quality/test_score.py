"""Scores: what a metric loses by its fault, and what several come to together."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shardctl.verbs.quality.score import Fault, Metric, score_of
from tests.verbs.quality.quality_orders import in_equal_shards, score


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
    ("fault", "value", "score"),
    [
        pytest.param("above", 0.1, 1.0, id="as expected"),
        pytest.param("above", 0.3, 0.5, id="half of the reach above"),
        pytest.param("above", 0.5, 0.0, id="all of the reach above"),
        pytest.param("above", 9.0, 0.0, id="far above"),
        pytest.param("above", -0.3, 1.0, id="below is no fault"),
        pytest.param("below", -0.1, 0.5, id="half of the reach below"),
        pytest.param("below", 0.3, 1.0, id="above is no fault"),
        pytest.param("both", -0.1, 0.5, id="either side, below"),
        pytest.param("both", 0.3, 0.5, id="either side, above"),
        pytest.param("times", 0.5, 0.5, id="a reach above is a half by the ratio"),
        pytest.param("times", 1.3, 0.25, id="three times the reach is a quarter"),
        pytest.param("times", 0.0, 1.0, id="less is no fault by the ratio"),
    ],
)
def test_a_metric_loses_by_how_far_off_it_is_on_the_side_of_its_fault(
    fault: Fault, value: float, score: float
) -> None:
    assert measured(value, fault=fault).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("metrics", "value", "near", "far"),
    [
        pytest.param([measured(0.3)], 0.5, 0.5, None, id="one near by"),
        pytest.param([measured(0.3), measured(0.45)], 0.25, 0.25, None, id="the geometric mean"),
        pytest.param([measured(0.1), measured(9.0)], 0.0, 0.0, None, id="one that is at its worst"),
        pytest.param(
            [measured(0.3), measured(0.5, scale="far")], 0.25, 0.5, 0.0, id="half is lost far apart"
        ),
        pytest.param(
            [measured(0.3), measured(0.5, scale="far"), measured(0.1, scale="far")],
            0.375,
            0.5,
            0.5,
            id="the mean of those far apart",
        ),
        pytest.param(
            [measured(0.3), measured(9.0, scale="shown")], 0.5, 0.5, None, id="only shown"
        ),
    ],
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


def test_an_expected_score_is_never_below_0() -> None:
    assert score_of([measured(0.1, spread=9.0)]).expected == 0.0


def test_a_sampling_error_is_that_of_each_metric_by_its_weight() -> None:
    # One metric: a change of 0.04 in the value is 0.1 in the score.
    assert score_of([measured(0.3, sampling_error=0.04)]).sampling_error == pytest.approx(0.1)
    # Far apart a metric counts for half of what is near by.
    both = [measured(0.3, sampling_error=0.0), measured(0.3, sampling_error=0.04, scale="far")]
    assert score_of(both).sampling_error == pytest.approx(0.1 * 0.5 / 2)


def test_a_score_without_a_sampling_error_of_each_metric_has_none() -> None:
    found = score_of([measured(0.3, sampling_error=0.04), measured(0.3)])
    assert found.sampling_error is None


def test_the_uniform_score_has_the_expectation_and_spread_it_says() -> None:
    generator = np.random.default_rng(11)
    scores = [score(in_equal_shards(generator.permutation(2000), 16), 50) for _ in range(400)]
    values = np.array([each.value for each in scores])
    assert values.mean() == pytest.approx(scores[0].expected, abs=0.15 * (1 - scores[0].expected))
    assert values.std() == pytest.approx(scores[0].spread, rel=0.2)


def test_a_score_needs_metrics_that_are_near() -> None:
    near = Metric(name="n", value=0.5, expected=1, spread=0.1, fault="below", reach=1)
    far = Metric(name="f", value=1, expected=1, spread=0.1, fault="both", reach=1, scale="far")
    shown = Metric(name="s", value=0, expected=1, spread=0.1, fault="both", reach=1, scale="shown")
    assert score_of([near]).value == 0.5
    assert score_of([near, far]).value == 0.5
    assert score_of([near, far, shown]) == score_of([near, far])
    follows = Metric(name="f", value=0, expected=1, spread=0, fault="both", reach=1, scale="far")
    assert score_of([near, follows]).value == 0.25
