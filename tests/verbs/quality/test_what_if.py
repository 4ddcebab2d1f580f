"""What other settings score, what buffer a target needs, what fits into memory."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, ExampleSize
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import MemoryBudget, minimum_score, quality, reaches
from shardctl.verbs.quality.metrics import Metric, score_of
from tests.verbs.quality.quality_orders import even_dataset


def _scores(dataset: Dataset, settings: ReadSettings) -> dict[str, float]:
    found = quality(dataset, "train", settings)
    return {choice.change: choice.score.value for choice in found.alternatives}


def test_each_alternative_is_measured_as_its_own_pipeline_would_be() -> None:
    dataset, settings = even_dataset(30_000, 60), ReadSettings(cycle=4)
    scores = _scores(dataset, settings)
    same = {
        "as it is": settings,
        "--shuffle-seed 1": replace(settings, shuffle_seed=1),
        "--cycle 16": replace(settings, cycle=16),
        "--cycle 64": replace(settings, cycle=64),
        "--block 1": replace(settings, block=1),
    }
    for size in (1_000, 10_000, 30_000):
        buffered = replace(settings, buffer=size, buffer_seed=2)
        same[f"--buffer {size}"] = buffered
        if size < 30_000:  # beyond, all is one shuffle
            same[f"--shuffle-seed 1 --buffer {size}"] = replace(buffered, shuffle_seed=1)
    assert set(scores) == {*same}
    for change, changed in same.items():
        alone = quality(dataset, "train", changed, what_if=False).score.value
        assert scores[change] == pytest.approx(alone), change


@pytest.mark.long
def test_buffers_of_ten_times_the_size_are_tried_up_to_the_epoch() -> None:
    for num_examples, present, sizes in (
        (99_999, None, [1_000, 10_000, 99_999]),
        (100_000, None, [1_000, 10_000, 100_000]),
        (1_000, None, [1_000]),
        (20_000, 2_000, [20_000]),
        (19_999, 2_000, [19_999]),
    ):
        settings = ReadSettings(buffer=present, buffer_seed=None if present is None else 1)
        scores = _scores(even_dataset(num_examples, 4), settings)
        tried = [change for change in scores if change.startswith("--buffer ")]
        assert tried == [f"--buffer {size}" for size in sizes], num_examples


def test_changes_that_tfds_refuses_or_without_effect_are_left_out() -> None:
    ordered = replace(even_dataset(4000, 8), ordered=True)
    assert set(_scores(ordered, ReadSettings())) == {"as it is", "--buffer 1000", "--buffer 4000"}


@pytest.mark.parametrize("shuffle_seed", [None, 3])
@pytest.mark.parametrize("target", [0.2, 0.5, 0.9])
def test_the_buffer_for_a_target_is_the_smallest_to_two_digits(
    shuffle_seed: int | None, target: float
) -> None:
    dataset, settings = even_dataset(20_000, 40), ReadSettings(shuffle_seed=shuffle_seed)

    def score(buffer: int) -> float:
        tried = replace(settings, buffer=buffer, buffer_seed=2)
        return quality(dataset, "train", tried, what_if=False).score.value

    found = quality(dataset, "train", settings, target=target, what_if=False).buffer_for_target
    assert found is not None
    assert found.buffer is not None
    assert found.score == pytest.approx(score(found.buffer))
    assert found.score >= target
    assert score(int(0.85 * found.buffer)) < target
    assert int(str(found.buffer)[2:] or "0") == 0
    assert found.num_bytes == 7 * found.buffer  # 7 bytes an example


# What shuffle buffer an amount of memory buys.

# An example takes 1,000 bytes in a buffer: 600 of its own, and two tensors of 200 more.
DATASET = replace(
    even_dataset(20_000, 40), features=lambda: ExampleSize(num_bytes=600, num_tensors=2)
)


def _budget(memory: int | str, settings: ReadSettings | None = None) -> MemoryBudget:
    found = quality(DATASET, "train", settings, what_if=False, memory=memory).memory
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("memory", "fits", "buffer", "whole"),
    [
        (999, 0, None, False),
        (1999, 1, None, False),
        (2000, 2, 2, False),
        (1_234_567, 1234, 1234, False),
        ("20MB", 20_000, 20_000, True),
        ("19.9MB", 19_900, 19_900, False),
        ("1TiB", 2**40 // 1000, 20_000, True),
    ],
)
def test_the_buffer_is_what_fits_and_no_more_than_the_epoch(
    memory: int | str, fits: int, buffer: int | None, whole: bool
) -> None:
    found = _budget(memory)
    assert (found.fits, found.buffer, found.whole_epoch) == (fits, buffer, whole)
    if whole:
        assert found.verdict == "as good as uniform"
    if buffer is None:
        assert found.verdict == "no shuffle"


def test_the_score_is_that_of_the_pipeline_it_stands_for() -> None:
    present = ReadSettings(cycle=4, buffer=77, buffer_seed=5)
    found = _budget(2_000_000, present)
    alone = quality(DATASET, "train", replace(present, buffer=2000), what_if=False)
    assert alone.score.value == pytest.approx(found.score.value)
    assert alone.verdict == found.verdict


def test_without_any_size_the_way_out_is_named() -> None:
    plain = even_dataset(1000, 4)
    plain = replace(plain, splits=tuple(replace(s, num_bytes=None) for s in plain.splits))
    with pytest.raises(UsageError, match="give --example-bytes N"):
        quality(plain, "train", what_if=False, memory="8GiB")
    found = quality(plain, "train", what_if=False, memory="1MB", example_bytes=800)
    assert found.memory is not None
    assert found.memory.fits == 1000


# The least that is asked of an order, .


def test_a_minimum_is_a_number_or_a_word() -> None:
    words: dict[object, object] = {"weak": "weak", "Fair": "fair", "good": "good"}
    words |= {"uniform": "close to uniform", "as good as uniform": "as good as uniform"}
    for text, minimum in (words | {"0.5": 0.5, 0: 0.0, "1": 1.0}).items():
        assert minimum_score(text) == minimum
    rule = "give a score from 0 to 1, or weak, fair, good or uniform"
    for wrong in ("", "1.1", "-0.1", "nan", "inf", "best", "no shuffle", "50%"):
        with pytest.raises(UsageError, match=re.escape(rule)):
            minimum_score(wrong)


def test_a_word_asks_for_the_verdict_and_a_number_for_the_score() -> None:
    score = score_of([Metric(name="x", value=0.4, expected=0, spread=0, fault="above", reach=1)])
    ranks = ("no shuffle", "weak", "fair", "good", "close to uniform", "as good as uniform")
    for at, verdict in enumerate(ranks):
        for least, word in enumerate(ranks[1:], 1):
            assert reaches(score, verdict, minimum_score(word)) == (at >= least)  # type: ignore[arg-type]
        assert reaches(score, verdict, 0.6)  # type: ignore[arg-type]
        assert not reaches(score, verdict, 0.61)  # type: ignore[arg-type]
    assert not reaches(score, "cannot tell", "weak")
