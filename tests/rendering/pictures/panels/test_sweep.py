"""A sweep over numbers of hosts as a picture: its figures are the plan's."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.planning.hosts.hosts import HostsPlan
from shardctl.rendering.pictures.panel import sweep_picture
from shardctl.rendering.pictures.picture import Box, Label, Picture
from tests.cases import FUZZ, check_cases
from tests.rendering.hosts.host_plans import IMAGENET, plan
from tests.rendering.hosts.random_hosts import NUMS_HOSTS, plans
from tests.rendering.pictures.drawn import check_labels


def labels(picture: Picture) -> list[str]:
    return [mark.text for mark in picture.marks if isinstance(mark, Label)]


def test_each_number_of_hosts_has_a_bar_from_one_on() -> None:
    # Shards of 4, 4, 4: two hosts read 14 under even, and the first has 8 of 12 under files.
    picture = sweep_picture(plan([2, 3]))
    assert picture.title == "train on 2 numbers of hosts"
    assert picture.numbers.headings[:5] == (
        *("hosts", "serves best", "even: times read", "even: imbalance", "even: idle hosts"),
    )
    assert [row[2:8] for row in picture.numbers.rows] == [
        (14 / 12, 1.0, 0, 1.0, 8 / 6, 0),
        (1.0, 1.0, 0, 1.0, 1.0, 0),
    ]
    assert {"2 hosts", "1.167", "1.333", "3 hosts", "1.000"} <= set(labels(picture))
    assert picture.alternative == (
        "even read: 1.000 to 1.167, the most on 2 hosts. "
        "files imbalance: 1.000 to 1.333, the most on 2 hosts."
    )
    assert [mark.title for mark in picture.marks if isinstance(mark, Box) and mark.width] == [
        "2 hosts: 1.167",
        "2 hosts: 1.333",
    ]


def test_refused_numbers_are_marked_and_told() -> None:
    picture = sweep_picture(plan([2, 4, 13]))
    assert {"1.333 refused", "4.333 refused"} <= set(labels(picture))
    assert "files: refused and hosts idle with 4, 13 hosts." in labels(picture)
    assert "examples: hosts idle with 13 hosts." in picture.alternative


def test_many_numbers_are_in_groups() -> None:
    picture = sweep_picture(plan(list(range(1, 321)), IMAGENET))
    assert picture.note == "320 numbers of hosts in 64 groups, each of those that follow."
    assert picture.numbers.headings == (
        *("hosts", "even read, least", "even read, most"),
        *("files imbalance, least", "files imbalance, most"),
    )
    assert len(picture.numbers.rows) == 64
    assert picture.numbers.rows[0][:2] == ("1–5", 1.0)
    check_labels(picture.marks, picture.height)


def test_where_nothing_is_wasted_there_are_words_and_no_bars() -> None:
    picture = sweep_picture(plan([1, 3]))
    assert labels(picture) == [
        "even read: 1.000 with each number of hosts.",
        "files imbalance: 1.000 with each number of hosts.",
    ]


def test_without_examples_it_says_so() -> None:
    dataset = Dataset(name="bare", splits=(Split(name="train", shard_lengths=(0,)),))
    picture = sweep_picture(plan([1, 3], dataset))
    assert labels(picture)[0] == "There are no examples."
    assert "files: refused and hosts idle with 1, 3 hosts." in labels(picture)


def check_sweep(found: HostsPlan) -> None:
    picture = sweep_picture(found)
    check_labels(picture.marks, picture.height)
    rows = picture.numbers.rows
    if len(found.comparisons) <= 64:
        for row, comparison in zip(rows, found.comparisons, strict=True):
            even, files, _ = comparison.strategies
            assert row[0] == comparison.num_hosts
            assert row[2] == even.read_amplification
            assert row[6:8] == (files.imbalance, files.idle_hosts)
    said = " ".join(labels(picture))
    strategies = [one for comparison in found.comparisons for one in comparison.strategies]
    assert ("idle" in said) == any(one.idle_hosts for one in strategies)
    assert ("refused" in said) == any(one.refusal for one in strategies)


SWEEPS = st.one_of(
    st.lists(NUMS_HOSTS, min_size=1, max_size=12),
    st.tuples(st.integers(1, 50), st.integers(1, 90)).map(
        lambda ends: list(range(ends[0], sum(ends)))
    ),
)


def test_labels_are_apart_and_in_the_frame() -> None:
    check_cases(plans(SWEEPS), check_sweep, 3)


@pytest.mark.fuzz
def test_labels_are_apart_and_in_the_frame_fuzz() -> None:
    check_cases(plans(SWEEPS), check_sweep, FUZZ // 4, fuzz=True)
