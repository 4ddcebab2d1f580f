"""What shuffle buffer an amount of memory buys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shardctl.dataset.dataset import Dataset
from shardctl.dataset.element_size import ExampleSize
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import Host
from shardctl.verbs.quality.answer import quality
from shardctl.verbs.quality.what_if import MemoryBudget
from tests.verbs.quality.quality_orders import even_dataset

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
        assert (found.score, found.verdict) == (found.without.score.value, "no shuffle")
        assert not found.gains


def test_of_hosts_each_has_its_own_buffer_and_part() -> None:
    settings = ReadSettings(host=Host(index=1, count=4))
    found = _budget(_dataset(), "1GiB", settings)
    assert (found.buffer, found.whole_epoch) == (5000, True)


def test_the_scores_are_those_of_the_pipelines_they_stand_for() -> None:
    dataset, present = _dataset(), ReadSettings(cycle=4, buffer=77, buffer_seed=5)
    found = _budget(dataset, 2_000_000, present)
    assert found.files is not None
    assert found.both is not None
    bare = replace(present, buffer=None, buffer_seed=None)
    for settings, score, verdict in (
        (replace(present, buffer=2000), found.score, found.verdict),
        (bare, found.without.score.value, found.without.verdict),
        (replace(bare, shuffle_seed=1), found.files.score.value, found.files.verdict),
        (replace(present, buffer=2000, shuffle_seed=1), found.both.score.value, found.both.verdict),
    ):
        alone = quality(dataset, "train", settings, what_if=False)
        assert alone.score.value == pytest.approx(score)
        assert alone.verdict == verdict


def test_where_files_are_shuffled_there_is_nothing_to_compare_with() -> None:
    found = _budget(_dataset(), 2_000_000, ReadSettings(shuffle_seed=3))
    assert (found.files, found.both) == (None, None)
    assert found.gains
    assert not found.files_do_as_well
    assert found.without.verdict == "weak"


def test_a_file_shuffle_may_do_as_well_alone() -> None:
    # A file an example: shuffling files is shuffling examples.
    found = _budget(_dataset(1000, 1000), 50_000)
    assert found.buffer == 50
    assert found.gains
    assert found.files_do_as_well
    assert not _budget(_dataset(1000, 1), 50_000).files_do_as_well


def test_what_tfds_refuses_is_not_compared() -> None:
    found = _budget(replace(_dataset(), ordered=True), 2_000_000)
    assert (found.files, found.both) == (None, None)
    assert found.buffer == 2000


def test_a_buffer_that_is_there_takes_so_much() -> None:
    for buffer, num_bytes in ((100, 100_000), (-2, 20_000_000), (50_000, 20_000_000), (None, None)):
        settings = ReadSettings() if buffer is None else ReadSettings(buffer=buffer, buffer_seed=1)
        found = quality(_dataset(), "train", settings, what_if=False)
        assert found.buffer_bytes == num_bytes, buffer


def test_alternatives_count_decoded_examples_too() -> None:
    found = {
        choice.change: choice for choice in quality(_dataset(), "train", target=0.9).alternatives
    }
    assert found["buffer 1,000"].num_bytes == 1000 * _EACH
    target = quality(_dataset(), "train", target=0.9, what_if=False).buffer_for_target
    assert target is not None
    assert target.buffer is not None
    assert target.num_bytes == target.buffer * _EACH


def test_without_any_size_the_way_out_is_named() -> None:
    plain = even_dataset(1000, 4)
    plain = replace(plain, splits=tuple(replace(s, num_bytes=None) for s in plain.splits))
    with pytest.raises(UsageError, match="give --example-bytes N"):
        quality(plain, "train", what_if=False, memory="8GiB")
    found = quality(plain, "train", what_if=False, memory="1MB", example_bytes=800)
    assert found.memory is not None
    assert found.memory.fits == 1000
    with pytest.raises(UsageError, match=r"^--example-bytes '0': a number of bytes is needed"):
        quality(plain, "train", example_bytes=0)
    with pytest.raises(UsageError, match=r"^--memory '8 cups': "):
        quality(plain, "train", memory="8 cups")
