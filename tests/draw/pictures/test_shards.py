"""Shards as bars: the largest, the empty and the missing are named, and every line fits."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.tables import PLAIN, Screen, display_width
from shardctl.verbs.layout.answer import layout
from tests.cases import FUZZ, check_cases
from tests.draw.pictures.drawn import drawn
from tests.verbs.hosts.random_hosts import SCREENS, splits


def shown(*found: Split, screen: Screen = PLAIN) -> list[str]:
    answer = layout(Dataset(name="toy", splits=found))
    return drawn(answer, screen.width)


def test_shards_have_bars_with_their_examples_and_bytes() -> None:
    train = Split(name="train", shard_lengths=(40, 0, 20, 10), shard_bytes=(4096, None, 2048, None))
    assert shown(train, screen=Screen(width=50)) == [
        "To see: bars of one length are shards that take",
        "equally long to read.",
        "train: shard  examples",
        "0             ███████████████████████████ 40 most",
        "1                                          0 empty",
        "2             █████████████▌              20",
        "3             ██████▊                     10",
        "shard 0 has the most: 40 examples (+128.6% over",
        "the mean)",
        "shard 0 has the largest file: 4.0 KiB (+33.3% over",
        "the mean)",
        "shard 1 is empty",
        "shard 3 is missing",
    ]


def test_shards_that_are_alike_share_a_bar() -> None:
    lines = shown(Split.even(name="train", num_examples=1_281_167, num_shards=1024))
    assert lines[-2].split() == ["train:", "shard", "examples"]
    assert lines[-1].startswith("0–1023        ███")
    assert lines[-1].endswith(" 1,251–1,252")
    assert len(lines) == 3


@pytest.mark.long
def test_many_shards_are_in_groups_with_their_smallest_and_largest() -> None:
    lines = shown(Split(name="train", shard_lengths=[10] * 999_999 + [15]), screen=Screen(width=70))
    assert "Of a group of" in " ".join(lines[:3])
    assert lines[-2].startswith("875000–999999  ██")
    assert lines[-2].endswith("░ 10–15 most")
    assert lines[-3].endswith(" 10")
    assert lines[-1] == "shard 999999 has the most: 15 examples (+50.0% over the mean)"


def test_of_many_splits_those_not_shown_are_counted() -> None:
    found = [Split(name=f"part{number}", shard_lengths=(1, 5)) for number in range(20)]
    lines = shown(*found)
    assert sum(re.match(r"part\d+: shard", line) is not None for line in lines) == 8
    assert lines[-1] == "12 more splits not shown; name one to see it"


def check_fits(case: tuple[list[Split], Screen]) -> None:
    found, screen = case
    found = [
        replace(split, name=f"{'長い' * number}{number}") for number, split in enumerate(found)
    ]
    lines = shown(*found, screen=screen)
    assert screen.picture_width < 40 or max(map(display_width, lines)) <= screen.picture_width


CASES = st.tuples(st.lists(splits(), min_size=1, max_size=9), SCREENS)


def test_no_line_is_wider_than_the_screen() -> None:
    check_cases(CASES, check_fits, 15)


@pytest.mark.fuzz
def test_no_line_is_wider_than_the_screen_fuzz() -> None:
    check_cases(CASES, check_fits, FUZZ // 4, fuzz=True)
