"""What other settings score, what buffer a target needs or memory buys, the cheapest cure."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, ExampleSize
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import minimum_score, quality, reaches, shortfall
from shardctl.verbs.quality.metrics import Score
from shardctl.verbs.quality.what_if import MemoryBudget
from tests.verbs.quality.quality_orders import even_dataset


def _scores(dataset: Dataset, settings: ReadSettings) -> dict[str, float]:
    found = quality(dataset, "train", settings)
    return {choice.change: choice.score.value for choice in found.alternatives}


def test_each_alternative_is_measured_as_its_own_pipeline_would_be() -> None:
    dataset, settings = even_dataset(30_000, 60), ReadSettings(cycle=4)
    scores = _scores(dataset, settings)
    same = {
        "as it is": settings,
        "files shuffled": replace(settings, shuffle_seed=1),
        "cycle 16": replace(settings, cycle=16),
        "cycle 64": replace(settings, cycle=64),
        "block 1": replace(settings, block=1),
        "buffer 1,000": replace(settings, buffer=1000, buffer_seed=2),
        "buffer 10,000": replace(settings, buffer=10_000, buffer_seed=2),
        "files shuffled, buffer 1,000": replace(
            settings, shuffle_seed=1, buffer=1000, buffer_seed=2
        ),
        "files shuffled, buffer 10,000": replace(
            settings, shuffle_seed=1, buffer=10_000, buffer_seed=2
        ),
    }
    assert set(scores) == {*same}
    for change, changed in same.items():
        alone = quality(dataset, "train", changed, what_if=False).score.value
        assert scores[change] == pytest.approx(alone), change


@pytest.mark.long
def test_buffers_of_ten_times_the_size_are_tried_up_to_the_epoch() -> None:
    for num_examples, present, sizes in (
        (99_999, None, [1_000, 10_000]),
        (100_000, None, [1_000, 10_000, 100_000]),
        (1_000, None, [1_000]),
        (20_000, 2_000, [20_000]),
        (19_999, 2_000, []),
    ):
        settings = ReadSettings(buffer=present, buffer_seed=None if present is None else 1)
        scores = _scores(even_dataset(num_examples, 4), settings)
        tried = [change for change in scores if change.startswith("buffer ")]
        assert tried == [f"buffer {size:,}" for size in sizes], num_examples


def test_alternatives_that_tfds_refuses_are_left_out() -> None:
    ordered = replace(even_dataset(4000, 8), ordered=True)
    assert set(_scores(ordered, ReadSettings())) == {"as it is", "block 1", "buffer 1,000"}


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


def test_no_buffer_is_needed_below_what_there_is() -> None:
    settings = ReadSettings(shuffle_seed=1, buffer=100, buffer_seed=1)
    found = quality(even_dataset(9000, 90), "train", settings, target=0.01).buffer_for_target
    assert found is not None
    assert (found.buffer, found.num_bytes) == (0, 0)


def test_a_target_that_no_buffer_reaches_says_what_the_whole_epoch_does() -> None:
    found = quality(even_dataset(2000, 9), "train", target=1.0, what_if=False).buffer_for_target
    assert found is not None
    assert found.buffer is None
    assert 0.95 < found.score < 1


# What shuffle buffer an amount of memory buys.

_EACH = 1000  # bytes of an example in a buffer: 600 of its own, and two tensors of 200 more


def _dataset(num_examples: int = 20_000, num_shards: int = 40) -> Dataset:
    size = ExampleSize(num_bytes=600, num_tensors=2)
    return replace(even_dataset(num_examples, num_shards), features=lambda: size)


def _budget(
    dataset: Dataset, memory: int | str, settings: ReadSettings | None = None
) -> MemoryBudget:
    found = quality(dataset, "train", settings, what_if=False, memory=memory).memory
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
    found = _budget(_dataset(), memory)
    assert (found.fits, found.buffer, found.whole_epoch) == (fits, buffer, whole)
    if whole:
        assert found.verdict == "as good as uniform"
    if buffer is None:
        assert found.verdict == "no shuffle"


def test_of_hosts_each_has_its_own_buffer_and_part() -> None:
    settings = ReadSettings(host=Host(index=1, count=4))
    found = _budget(_dataset(), "1GiB", settings)
    assert (found.buffer, found.whole_epoch) == (5000, True)


def test_the_score_is_that_of_the_pipeline_it_stands_for() -> None:
    dataset, present = _dataset(), ReadSettings(cycle=4, buffer=77, buffer_seed=5)
    found = _budget(dataset, 2_000_000, present)
    alone = quality(dataset, "train", replace(present, buffer=2000), what_if=False)
    assert alone.score.value == pytest.approx(found.score.value)
    assert alone.verdict == found.verdict


def test_a_buffer_that_is_there_takes_so_much() -> None:
    for buffer, num_bytes in ((100, 100_000), (-2, 20_000_000), (50_000, 20_000_000), (None, None)):
        settings = ReadSettings() if buffer is None else ReadSettings(buffer=buffer, buffer_seed=1)
        found = quality(_dataset(), "train", settings, what_if=False)
        assert found.buffer_bytes == num_bytes, buffer


def test_without_any_size_the_way_out_is_named() -> None:
    plain = even_dataset(1000, 4)
    plain = replace(plain, splits=tuple(replace(s, num_bytes=None) for s in plain.splits))
    with pytest.raises(UsageError, match="give --example-bytes N"):
        quality(plain, "train", what_if=False, memory="8GiB")
    found = quality(plain, "train", what_if=False, memory="1MB", example_bytes=800)
    assert found.memory is not None
    assert found.memory.fits == 1000


# The least that is asked of an order, and the cheapest cure where it is less.


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
        r"cheapest cure in the table: (.*) \(score (.*)\)$",
        shortfall(plan, minimum_score(minimum)) or "",
    )
    assert cure is not None
    found = {choice.change: choice for choice in plan.alternatives}
    chosen = found.pop(cure[1])
    assert chosen.score.value == pytest.approx(float(cure[2]), abs=1e-4)
    assert chosen.score.value >= 0.5
    assert chosen.verdict == "fair"
    for choice in found.values():
        if (choice.buffer or 0) < (chosen.buffer or 0):
            assert choice.score.value < 0.5


def test_a_change_that_needs_no_memory_is_cheaper_than_any_buffer() -> None:
    said = _said("fair", 1000, 8000, shuffle_seed=1)
    assert re.search(r"; cheapest cure in the table: (cycle|block) \d+ \(score 0\.[5-9]", said), (
        said
    )


def test_without_one_in_the_table_it_is_a_buffer_of_everything() -> None:
    end = "; --buffer 50000, the whole epoch, is uniform, and --target SCORE finds the smallest"
    assert _said("uniform", buffer=1000, buffer_seed=2).endswith(f"{end} that does")
    assert _said("uniform", buffer=50_000, buffer_seed=2) == ""
    assert _said("0.9999").endswith("and so is a uniform permutation, which scores 0.9974")
    assert _said("good", stages="repeat(2) | shuffle(9, seed=1)").endswith(
        "; change the shuffles of --stages"
    )
