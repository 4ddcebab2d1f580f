"""The figures of a sweep: what is over 1, in groups, and with which numbers hosts are idle."""

from __future__ import annotations

import pytest

from shardctl.verbs.hosts.view import group_name, refused_numbers, spread_of, sweep_groups
from shardctl.verbs.report.elements import figures
from tests.verbs.hosts.host_plans import IMAGENET, plan

EVEN, FILES = range(2)
(READ,), (IMBALANCE,) = (list(figures(name)) for name in ("even", "files"))


def test_every_number_is_its_own_where_there_are_few() -> None:
    groups = sweep_groups(plan([8, 60, 64], IMAGENET), 8)
    assert list(map(group_name, groups)) == ["8", "60", "64"]
    assert [spread_of(group, EVEN, READ).text for group in groups] == ["1.000", "1.028", "1.000"]
    files = [spread_of(group, FILES, IMBALANCE) for group in groups]
    assert [spread.text for spread in files] == ["1.000", "1.055", "1.000"]
    assert {spread.words for spread in files} == {""}


def test_a_group_has_the_least_and_the_most_of_its_numbers() -> None:
    # Shards of 4, 4, 4: on 2 hosts the first has 8 of 12 examples, on 4 the fourth has none.
    (group,) = sweep_groups(plan([4, 2, 3]), 1)
    spread = spread_of(group, FILES, IMBALANCE)
    assert group_name(group) == "2–4"
    assert (spread.least, spread.most) == pytest.approx((0, 1 / 3))
    assert spread.text == "1.000–1.333"
    assert spread.words == "0–1 idle, 1 refused"


def test_a_loader_has_both_figures() -> None:
    assert [figure.heading for figure in figures("DistributedSampler")] == [
        "DistributedSampler read",
        "DistributedSampler imbalance",
    ]


def test_numbers_of_hosts_that_are_refused_are_told() -> None:
    assert list(refused_numbers(plan([2, 3]))) == []
    assert list(refused_numbers(plan([2, 4, 5, 6, 13]))) == [
        "even: refused and hosts idle with 13 hosts",
        "files: refused and hosts idle with 4–6, 13 hosts",
        "examples: hosts idle with 13 hosts",
    ]
