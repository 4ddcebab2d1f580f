"""The heat map of shards by position."""

from __future__ import annotations

import numpy as np
import pytest

from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.shard_map import ShardMap, shard_map
from shardctl.rendering.pictures.picture import NUM_LEVELS, Cells, Picture
from shardctl.rendering.pictures.shard_map import levels, shard_map_picture
from tests.planning.quality.quality_orders import order_of
from tests.rendering.pictures.drawn import check_labels


def _map(num_examples: int, num_shards: int, settings: ReadSettings | None = None) -> ShardMap:
    return shard_map(order_of(num_examples, num_shards, settings or ReadSettings()))


def _levels(picture: Picture) -> np.ndarray:
    return [mark for mark in picture.marks if isinstance(mark, Cells)][-1].levels


def test_files_read_one_after_the_other_are_a_diagonal() -> None:
    # 48 files of 200 examples over 96 columns of 100: each file feeds two columns, 48 times what
    # it would uniformly.
    drawn = _levels(shard_map_picture(_map(9600, 48, ReadSettings(cycle=1))))
    # 9,600 examples are few for 48 x 96 cells, so some of the columns are one.
    wide = drawn.shape[1]
    assert wide in (12, 16)
    for row in range(48):
        for column in range(wide):
            overlap = max(
                0.0, min((row + 1) / 48, (column + 1) / wide) - max(row / 48, column / wide)
            )
            assert (drawn[row, column] > 0) == (overlap > 1e-9)
    assert set(drawn[drawn > 0]) <= {6, 7, 8}  # more than 4 times


def test_a_uniform_permutation_is_one_shade() -> None:
    settings = ReadSettings(buffer=200_000, buffer_seed=1)
    drawn = _levels(shard_map_picture(_map(200_000, 40, settings)))
    assert drawn.shape == (40, 96)
    assert (drawn == 3).mean() > 0.98


def test_levels_are_times_what_a_uniform_permutation_has() -> None:
    times = np.array([[0.0, 0.01, 0.3, 0.59, 0.61, 1.0, 1.5, 1.7, 3.0, 5.0, 9.0, 17.0, 1e6]])
    assert levels(times).tolist() == [[0, 1, 2, 2, 3, 3, 3, 4, 5, 6, 7, 8, 8]]
    assert int(levels(times).max()) == NUM_LEVELS


def test_the_table_has_the_counts_of_all_examples() -> None:
    found = _map(9600, 32, ReadSettings(shuffle_seed=1))
    numbers = shard_map_picture(found).numbers
    assert len(numbers.headings) == 2 + 8
    assert len(numbers.rows) == 32
    counts = np.array([row[2:] for row in numbers.rows])
    assert counts.sum() == 9600
    assert counts.sum(axis=1).tolist() == [300] * 32  # each shard is read whole
    assert counts.sum(axis=0).tolist() == [1200] * 8
    assert numbers.headings[2] == "0–1,199"
    assert [row[1] for row in numbers.rows] == [f"{1 / 32:.4f}"] * 32


def test_words_say_from_how_many_shards_a_part_comes() -> None:
    # One file at a time, each half of a column wide: a column of 100 examples is within one file.
    text = shard_map_picture(_map(9600, 48, ReadSettings(cycle=1))).alternative
    assert "each of 96 equal parts of the epoch has examples of 1, on average 1.0" in text
    # 48 (1 - (47/48)**100) = 42.2 of them, if the 100 are drawn uniformly.
    assert "of a uniform permutation it would have those of 42.2" in text
    assert "is 0.01 at the start of the epoch" in text
    assert "0.99 at its end" in text


def test_more_shards_than_rows_are_in_groups_and_it_is_said() -> None:
    picture = shard_map_picture(_map(20_000, 1000))
    assert picture.note == "1,000 shards are in 48 groups."
    assert len(picture.numbers.rows) == 48


def test_of_one_shard_nothing_is_drawn_that_looks_shuffled() -> None:
    picture = shard_map_picture(_map(1000, 1))
    assert not any(isinstance(mark, Cells) for mark in picture.marks)
    assert "One shard feeds all 1,000 positions" in picture.alternative
    check_labels(picture.marks, picture.height)


def test_few_shards_are_said_to_hide_what_is_within() -> None:
    note = shard_map_picture(_map(1000, 4)).note
    assert note == "How well each of so few shards is mixed within is in the score."


@pytest.mark.parametrize(
    ("num_examples", "num_shards"), [(2, 2), (3, 3), (97, 2), (53, 53), (20_000, 1024)]
)
def test_labels_stay_within_the_frame_and_apart(num_examples: int, num_shards: int) -> None:
    picture = shard_map_picture(_map(num_examples, num_shards))
    check_labels(picture.marks, picture.height)


def test_a_million_million_examples_say_how_many_are_looked_up() -> None:
    settings = ReadSettings(shuffle_seed=1, buffer=10**6, buffer_seed=1)
    picture = shard_map_picture(_map(10**12, 1000, settings))
    assert picture.note is not None
    assert "positions of 1,000,000,000,000 are looked up, the buffer drawn at random." in (
        picture.note
    )
    check_labels(picture.marks, picture.height)
