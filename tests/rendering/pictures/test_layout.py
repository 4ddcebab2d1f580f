"""Shards as pictures: every number is the layout's; the largest, empty and missing are named."""

from __future__ import annotations

import pytest

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.planning.layout import Layout, layout
from shardctl.rendering.pictures.layout import layout_pictures
from shardctl.rendering.pictures.picture import Box, Label, Line, Picture
from tests.cases import FUZZ, check_cases
from tests.rendering.hosts.random_hosts import splits
from tests.rendering.pictures.drawn import HOSTILE, check_labels


def of_splits(*found: Split, name: str = "toy") -> Layout:
    return layout(Dataset(name=name, splits=found))


def labels(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Label)]


def test_each_split_has_a_picture_with_its_examples_and_bytes() -> None:
    train = Split(name="train", shard_lengths=(40, 0, 20), shard_bytes=(4096, 0, 2048))
    test = Split(name="test", shard_lengths=(5,))
    first, second = layout_pictures(of_splits(train, test))
    assert (first.title, second.title) == ("train in toy: 3 shards", "test in toy: 1 shard")
    assert first.numbers.headings == ("shard", "examples", "bytes")
    assert list(first.numbers.rows) == [(0, 40, 4096), (1, 0, 0), (2, 20, 2048)]
    assert second.numbers.headings == ("shard", "examples")
    assert list(second.numbers.rows) == [(0, 5)]
    # The mean of 40, 0 and 20 is 20, that of 4, 0 and 2 KiB is 2 KiB.
    assert {"40 most", "0 empty", "20", "4.0 KiB most", "0 B", "2.0 KiB"} <= set(labels(first))
    assert "Shard 0 has the most: 40 examples (+100.0% over the mean)." in labels(first)
    assert first.alternative == (
        "train has 60 examples in 3 shards, 0–40 in each. "
        "Shard 0 has the most: 40 examples (+100.0% over the mean). "
        "Shard 0 has the largest file: 4.0 KiB (+100.0% over the mean). Shard 1 is empty."
    )
    assert labels(second)[-1] == "test has 5 examples in 1 shard, 5 in each."


def test_a_file_that_is_missing_is_named_and_counts_in_no_mean() -> None:
    train = Split(name="train", shard_lengths=(4, 4, 4), shard_bytes=(1000, None, 1000))
    (picture,) = layout_pictures(of_splits(train))
    assert list(picture.numbers.rows) == [(0, 4, 1000), (1, 4, None), (2, 4, 1000)]
    assert "- missing" in labels(picture)
    assert labels(picture)[-1] == "Shard 1 is missing."
    means = [mark for mark in picture.marks if isinstance(mark, Line) and mark.dashed][1:]
    bars = [mark for mark in picture.marks if isinstance(mark, Box) and mark.title and mark.width]
    assert [mean.points[0][0] for mean in means] == pytest.approx(
        [bar.x + bar.width for bar in (bars[0], bars[-1])]  # where all bars end
    )


@pytest.mark.long
def test_many_shards_are_in_groups_of_which_both_ends_are_drawn() -> None:
    lengths = [10] * 999_999 + [15]
    (picture,) = layout_pictures(of_splits(Split(name="train", shard_lengths=lengths)))
    assert picture.note == "1,000,000 shards in 64 groups of 15,625, named by the first."
    assert picture.numbers.headings[:4] == (
        "shards",
        "examples, least",
        "examples, most",
        "examples, mean",
    )
    *rest, last = picture.numbers.rows
    assert {row[1:] for row in rest} == {(10, 10, 10.0)}
    assert last == ("984375–999999", 10, 15, (10 * 15_624 + 15) / 15_625)
    assert "most" in labels(picture)
    alarms = [mark for mark in picture.marks if isinstance(mark, Box) and mark.role == "alarm"]
    assert len(alarms) == 1 + 1  # and one in the key


def test_of_many_splits_the_last_picture_counts_those_not_drawn() -> None:
    found = [Split(name=f"part{number}", shard_lengths=(1, 2)) for number in range(20)]
    pictures = layout_pictures(of_splits(*found))
    assert len(pictures) == 8
    assert [picture.note for picture in pictures[:-1]] == [None] * 7
    assert pictures[-1].note == "12 more splits not shown; name one to see it."


@pytest.mark.parametrize("lengths", [(), (0, 0, 0)])
def test_a_split_without_examples_says_so(lengths: tuple[int, ...]) -> None:
    (picture,) = layout_pictures(of_splits(Split(name="train", shard_lengths=lengths)))
    check_labels(picture.marks, picture.height)
    said = "3 shards (0–2) are empty." if lengths else "train has 0 examples in 0 shards."
    assert labels(picture) == [said]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_within_the_frame(name: str) -> None:
    split = Split(name=name * 9, shard_lengths=(3, 1))
    for picture in layout_pictures(of_splits(split, name=name * 5)):
        check_labels(picture.marks, picture.height)


def as_int(value: object) -> int:
    assert isinstance(value, int)
    return value


def check_split(split: Split) -> None:
    (picture,) = layout_pictures(of_splits(split))
    check_labels(picture.marks, picture.height)
    for box in (mark for mark in picture.marks if isinstance(mark, Box)):
        assert box.x >= -1e-6
        assert box.x + box.width <= picture.width + 1e-6
        assert box.y + box.height <= picture.height + 1e-6
    rows = picture.numbers.rows
    if split.num_shards <= 64:
        assert [row[1] for row in rows] == list(split.shard_lengths)
        if split.shard_bytes is not None:
            assert [row[2] for row in rows] == list(split.shard_bytes)
    else:
        assert min(as_int(row[1]) for row in rows) == min(split.shard_lengths)
        assert max(as_int(row[2]) for row in rows) == max(split.shard_lengths)
    said = " ".join(labels(picture))
    assert ("empty" in said) == (0 in split.shard_lengths)
    sizes = split.shard_bytes or ()
    pairs = zip(sizes, split.shard_lengths, strict=False)
    assert ("missing" in said) == any(size is None and length for size, length in pairs)


def test_marks_stay_in_the_frame_and_labels_apart_whatever_the_shards() -> None:
    check_cases(splits(), check_split, 40)


@pytest.mark.fuzz
def test_marks_stay_in_the_frame_and_labels_apart_fuzz() -> None:
    check_cases(splits(), check_split, FUZZ, fuzz=True)
