"""The least that is asked of an order, and the cheapest cure where it is less."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import minimum_score, quality, reaches, shortfall
from shardctl.verbs.quality.score import Score
from tests.verbs.quality.quality_orders import even_dataset


def _score(value: float) -> Score:
    return Score(
        value=value, near=value, far=value, expected=0.99, spread=0.001, sampling_error=None
    )


@pytest.mark.parametrize(
    ("text", "minimum"),
    [
        ("0.5", 0.5),
        (0, 0.0),
        ("1", 1.0),
        ("weak", "weak"),
        ("Fair", "fair"),
        ("good", "good"),
        ("uniform", "close to uniform"),
        ("as good as uniform", "as good as uniform"),
    ],
)
def test_a_minimum_is_a_number_or_a_word(text: object, minimum: object) -> None:
    assert minimum_score(text) == minimum


@pytest.mark.parametrize("text", ["", "1.1", "-0.1", "nan", "inf", "best", "no shuffle", "50%"])
def test_no_other_minimum_is_taken(text: str) -> None:
    rule = "a score from 0 to 1, or weak, fair, good or uniform, is needed"
    with pytest.raises(UsageError, match=re.escape(rule)):
        minimum_score(text)


def test_a_word_asks_for_the_verdict_and_a_number_for_the_score() -> None:
    score = _score(0.6)
    ranks = ("no shuffle", "weak", "fair", "good", "close to uniform", "as good as uniform")
    for at, verdict in enumerate(ranks):
        for least, word in enumerate(ranks[1:], 1):
            assert reaches(score, verdict, minimum_score(word)) == (at >= least)  # type: ignore[arg-type]
        assert reaches(score, verdict, 0.6)  # type: ignore[arg-type]
        assert not reaches(score, verdict, 0.61)  # type: ignore[arg-type]
    assert not reaches(score, "cannot tell", "weak")


def _said(minimum: str, num_shards: int = 64, num_examples: int = 50_000, **read: object) -> str:
    dataset = even_dataset(num_examples, num_shards)
    plan = quality(dataset, "train", ReadSettings(**read))  # type: ignore[arg-type]
    return shortfall(plan, minimum_score(minimum)) or ""


@pytest.mark.parametrize("minimum", ["0.5", "fair"])
def test_a_cure_is_enough_and_nothing_cheaper_in_the_table_is(minimum: str) -> None:
    plan = quality(even_dataset(50_000, 64), "train")
    cure = re.search(
        r"cheapest cure: (.*) \(score (.*)\)$", shortfall(plan, minimum_score(minimum)) or ""
    )
    assert cure is not None
    found = {choice.change: choice for choice in plan.alternatives}
    chosen = found.pop(cure[1])
    assert chosen.score.value == pytest.approx(float(cure[2]), abs=1e-4)
    assert chosen.score.value >= 0.5
    assert chosen.verdict == "fair"
    for choice in found.values():
        if not choice.rewrites and (choice.buffer or 0) < (chosen.buffer or 0):
            assert choice.score.value < 0.5


def test_a_change_that_needs_no_memory_is_cheaper_than_any_buffer() -> None:
    said = _said("fair", 1000, 8000, shuffle_seed=1)
    assert re.search(r"; cheapest cure: (cycle|block) \d+ \(score 0\.[5-9]", said), said


@pytest.mark.long
def test_without_one_in_the_table_it_is_the_smallest_buffer() -> None:
    said = _said("good", 1, buffer=1000, buffer_seed=2)
    buffer = re.search(r"; cheapest cure: --buffer (\d+) \(score 0\.8", said)
    assert buffer is not None
    enough = ReadSettings(buffer=int(buffer[1]), buffer_seed=2)
    assert quality(even_dataset(50_000, 1), "train", enough).verdict == "good"
    less = replace(enough, buffer=int(int(buffer[1]) * 0.95))
    assert quality(even_dataset(50_000, 1), "train", less).verdict == "fair"


def test_what_only_a_uniform_permutation_reaches_is_a_buffer_of_everything() -> None:
    end = "; cheapest cure: --buffer 50000, the whole epoch, which is uniform"
    assert _said("uniform", buffer=1000, buffer_seed=2).endswith(end)
    assert _said("0.9999").endswith("and so is a uniform permutation, which scores 0.9974")


def test_of_few_examples_it_is_said_what_chance_does() -> None:
    said = _said("fair", 3, 3, shuffle_seed=1)
    assert "(cannot tell): a uniform permutation of so few examples may score 0.0000" in said
    assert said.endswith("; cheapest cure: --buffer 3, the whole epoch, which is uniform")


@pytest.mark.parametrize("num_examples", [10, 40, 100, 200])
@pytest.mark.parametrize("minimum", ["fair", "good", "uniform", "0.5"])
def test_a_buffer_that_is_a_cure_is_enough_of_few_examples_too(
    num_examples: int, minimum: str
) -> None:
    buffer = re.search(r"cheapest cure: --buffer (\d+)", _said(minimum, 1, num_examples))
    assert buffer is not None
    assert _said(minimum, 1, num_examples, buffer=int(buffer[1]), buffer_seed=2) == ""


@pytest.mark.long
def test_what_is_good_enough_has_no_shortfall() -> None:
    whole = {"buffer": -2, "buffer_seed": 1}
    for minimum in ("0", "0.5", "weak", "good", "uniform"):
        assert _said(minimum, **whole) == ""
