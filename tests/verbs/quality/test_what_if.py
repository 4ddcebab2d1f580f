"""What other settings make of the quality, and the smallest buffer that is good enough."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.quality.answer import quality
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
    assert set(scores) == {*same, "4 times as many files"}
    for change, changed in same.items():
        alone = quality(dataset, "train", changed, what_if=False).score.value
        assert scores[change] == pytest.approx(alone), change
    finer = quality(even_dataset(30_000, 240), "train", settings, what_if=False).score.value
    assert scores["4 times as many files"] == pytest.approx(finer)


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


def test_more_files_help_where_files_are_shuffled() -> None:
    scores = _scores(
        even_dataset(40_000, 64), ReadSettings(shuffle_seed=1, buffer=2000, buffer_seed=1)
    )
    assert scores["4 times as many files"] > scores["as it is"] > scores["files not shuffled"]
    assert scores["buffer 20,000"] > scores["as it is"]
    assert "files shuffled" not in scores


def test_four_times_as_many_files_hold_a_quarter_each_to_the_example() -> None:
    lengths, quarters = (5, 6, 7, 4), (1, 1, 1, 2, 1, 2, 1, 2, 1, 2, 2, 2, 1, 1, 1, 1)
    rough, fine = (
        Dataset(name="d", splits=(Split(name="train", shard_lengths=tuple(shards)),))
        for shards in (lengths, quarters)
    )
    settings = ReadSettings(shuffle_seed=1, cycle=2, block=1)
    alone = quality(fine, "train", settings, what_if=False).score.value
    assert _scores(rough, settings)["4 times as many files"] == pytest.approx(alone)


def test_alternatives_that_tfds_refuses_are_left_out() -> None:
    ordered = replace(even_dataset(4000, 8), ordered=True)
    assert set(_scores(ordered, ReadSettings())) == {
        "as it is",
        "block 1",
        "buffer 1,000",
        "4 times as many files",
    }


def test_a_list_of_files_cannot_name_more_files() -> None:
    dataset = Dataset(name="d", splits=(Split(name="train", shard_lengths=(1, 2, 1)),))
    assert "4 times as many files" not in _scores(dataset, ReadSettings())


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


def test_memory_is_unknown_where_the_metadata_has_no_bytes() -> None:
    split = Split.even(name="train", num_examples=1001, num_shards=3)
    dataset = Dataset(name="d", splits=(split,))
    unknown = quality(dataset, "train", target=0.5, what_if=False).buffer_for_target
    assert unknown is not None
    assert unknown.num_bytes is None
    sized = replace(dataset, splits=(replace(split, num_bytes=10_000),))
    known = quality(sized, "train", target=0.5, what_if=False).buffer_for_target
    assert known is not None
    assert known.buffer == unknown.buffer
    assert known.num_bytes == math.ceil((known.buffer or 0) * 10_000 / 1001)


def test_more_files_that_leave_a_host_without_a_batch_are_no_alternative() -> None:
    """Of 1 + 1 + 2 examples the first host has 1 + 2, a batch of 3; of more files it has fewer."""
    split = Split(name="train", shard_lengths=(1, 1, 5))
    settings = {"block": 1, "shuffle_seed": 0, "host": "0/2", "host_by": "files", "batch": 3}
    found = quality(
        Dataset(name="toy", splits=(split,)), "train[:50%]", {**settings, "drop_remainder": True}
    )
    changes = [alternative.change for alternative in found.alternatives]
    assert not any("as many files" in change for change in changes)
