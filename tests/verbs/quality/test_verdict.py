"""What the score of an order is worth, in words."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.metadata.names import catalog_dataset
from shardctl.order.plan_order import plan_order
from shardctl.order.sample import OrderSample
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.quality.metrics import far_metrics, near_metrics
from shardctl.verbs.quality.score import (
    FAIR,
    GOOD,
    MIXED,
    SPREADS,
    Score,
    Verdict,
    even_from_afar,
    lowest_uniform,
    meaning,
    score_of,
    verdict_of,
)
from tests.cases import FUZZ, add_cases, seed_of_test
from tests.verbs.quality.quality_orders import even_dataset


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


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        (ReadSettings(), "no shuffle"),
        (ReadSettings(shuffle_seed=1), "weak"),
        pytest.param(ReadSettings(buffer=10_000, buffer_seed=2), "weak", marks=pytest.mark.slow),
        (ReadSettings(shuffle_seed=1, buffer=1000, buffer_seed=2), "weak"),
        (ReadSettings(shuffle_seed=1, buffer=10_000, buffer_seed=2), "fair"),
        (ReadSettings(shuffle_seed=1, buffer=60_000, buffer_seed=2), "good"),
        (ReadSettings(shuffle_seed=1, buffer=-2, buffer_seed=2), "as good as uniform"),
    ],
    ids=str,
)
def test_what_people_do_with_imagenet(settings: ReadSettings, verdict: str) -> None:
    dataset = catalog_dataset("imagenet2012")
    assert dataset is not None
    assert quality(dataset, "train", settings, what_if=False).verdict == verdict


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


def _uniform(rng: np.random.Generator, num_examples: int, num_shards: int, window: int) -> Score:
    sizes = np.diff(np.round(np.arange(num_shards + 1) * num_examples / num_shards)).astype(int)
    ranks = rng.permutation(num_examples)
    sample = OrderSample(
        starts=np.zeros(1, np.int64),
        ranks=ranks[None],
        shards=np.repeat(np.arange(num_shards), sizes)[ranks][None],
        codes=ranks[None],
        num_positions=num_examples,
        num_ranks=num_examples,
        shard_sizes=sizes,
    )
    return score_of([*near_metrics(sample, window), *far_metrics(sample)])


def _num_below(num_permutations: int, seed: int, *shape: int) -> int:
    rng = np.random.default_rng(seed)
    scores = [_uniform(rng, *shape) for _ in range(num_permutations)]
    add_cases(num_permutations)
    return sum(score.value < lowest_uniform(score) for score in scores)


@pytest.mark.long
@pytest.mark.parametrize("shape", [(10, 4, 2), (50, 4, 12), (100, 4, 2), (1000, 16, 250)])
def test_uniform_permutations_are_as_good_as_uniform(shape: tuple[int, int, int]) -> None:
    assert _num_below(500, 500, *shape) <= 2  # where 0.5 are expected


@pytest.mark.fuzz
@pytest.mark.parametrize("shape", [(20, 4, 5), (100, 10, 25), (1000, 1, 250), (10_000, 64, 256)])
def test_of_many_uniform_permutations_999_in_1000_are(shape: tuple[int, int, int]) -> None:
    # At 1.5 in 1000, and as many more as chance brings once in some 100,000 runs.
    usual = 0.0015 * 10 * FUZZ
    assert _num_below(10 * FUZZ, seed_of_test(), *shape) <= usual + 4.3 * usual**0.5 + 2


def _order(**settings: Any) -> Any:
    return plan_order(even_dataset(1000, 10), "train", ReadSettings(**settings)).order


def _score(value: float, expected: float = 0.99, spread: float = 0.001) -> Score:
    return Score(
        value=value, near=value, far=value, expected=expected, spread=spread, sampling_error=None
    )


@pytest.mark.parametrize(
    ("score", "verdict"),
    [
        (_score(0.0), "weak"),
        (_score(0.4999), "weak"),
        (_score(0.5), "fair"),
        (_score(0.7999), "fair"),
        (_score(0.8), "good"),
        (_score(0.9849), "good"),
        (_score(0.985), "close to uniform"),
        (_score(1.0), "close to uniform"),
        # Of few examples a uniform permutation may score 0.9 - 5 * 0.05 = 0.65.
        (_score(0.6, 0.9, 0.05), "fair"),
        (_score(0.7, 0.9, 0.05), "cannot tell"),
        (_score(0.95, 0.9, 0.05), "cannot tell"),
        (_score(0.1, 0.6, 0.3), "cannot tell"),
    ],
)
def test_a_score_between_the_thresholds(score: Score, verdict: str) -> None:
    assert verdict_of(score, _order(shuffle_seed=1)) == verdict
    assert verdict_of(score, _order()) == "no shuffle"
    assert verdict_of(score, _order(buffer=1000, buffer_seed=1)) == "as good as uniform"


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
    assert "near by this order is fair: " in even_from_afar("fair")
    assert "near by this order is not shuffled: " in even_from_afar("no shuffle")


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


def test_an_order_close_to_uniform_is_not_said_to_score_as_uniform_ones_do() -> None:
    """0.953 is four spreads below what is expected: of 200 uniform permutations none is so low."""
    score = _score(0.953, 0.9842, 0.0078)
    order = plan_order(even_dataset(1500, 7), None, ReadSettings(buffer=1000, buffer_seed=1)).order
    assert verdict_of(score, order) == "close to uniform"
    assert meaning("close to uniform", order).startswith("the score is within 5 spreads of")
