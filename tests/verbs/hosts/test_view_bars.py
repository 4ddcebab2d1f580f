"""Bars of hosts in a terminal: who is late is seen and named, and every line fits."""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.draw.picture import picture_lines
from shardctl.draw.tables import PLAIN, Screen, display_width
from shardctl.verbs.hosts.answer import HostsPlan
from shardctl.verbs.hosts.view import hosts_table, sweep_table
from tests.cases import FUZZ, check_cases
from tests.verbs.hosts.host_plans import IMAGENET, plan
from tests.verbs.hosts.random_hosts import NUMS_HOSTS, SCREENS, plans

EMPTY = Dataset(name="bare", splits=(Split(name="train", shard_lengths=(0, 0)),))


def shown(found: HostsPlan, screen: Screen = PLAIN) -> list[str]:
    return "".join(picture_lines(found, screen)).splitlines()


def test_every_way_has_a_bar_a_host_after_the_times_that_it_reads() -> None:
    assert shown(plan(2, batch=4), Screen(width=60)) == [
        "To see: how often all hosts together read the data; 1 is",
        "each example once.",
        "way to share  times read",
        "even          ███████████████████████▉                  1.17",  # of 41 columns 7 / 12
        "files         ████████████████████▌                     1.00",
        "examples      █████████████████████████████████████████ 2.00",
        "",
        "To see: bars of one length are hosts in step; the others",
        "wait for the host with the longest.",
        "even: host  bytes                 examples     batches",
        "0           ██████▊   600 B       █████████ 6  █████████ 2",  # of 9 columns 6 / 8
        "1           █████████ 800 B most  █████████ 6  █████████ 2",
        "host 1 has the most: 800 B (+14.3% over the mean); 2 files,",
        "8 examples taken from disk",
        "",
        "files: host  examples                batches",
        "0            ███████████████ 8 most  ███████████████ 2 most",
        "1            ███████▌        4       ███████▌        1",
        "host 0 has the most: 8 examples (+33.3% over the mean), 2",
        "batches (+33.3%), 800 B (+33.3%); 2 files (mean 1.5)",
        "hosts make 1 to 2 batches: a collective hangs at step 1",
        "",
        "examples: host  examples     batches      bytes",
        "0–1             █████████ 6  █████████ 2  █████████ 1.2 KiB",
    ]


def test_who_is_late_is_seen_where_one_bar_has_room() -> None:
    lines = shown(plan(2, batch=4), Screen(width=40))
    at = lines.index("even: host  bytes")
    assert lines[at + 2].endswith("█ 800 B most")


def test_idle_hosts_and_refusals_are_words() -> None:
    lines = shown(plan(5), Screen(width=40))
    at = lines.index("files: host  examples")
    ends = [" ".join(re.findall(r"[\da-z]+", line)[1:]) for line in lines[at + 1 : at + 6]]
    assert ends == ["4 most", "4 most", "4 most", "0 idle", "0 idle"]
    assert "2 hosts (3–4) are idle: no examples" in lines
    assert "files: TFDS refuses an InputContext with" in lines
    assert next(line for line in lines if line.startswith("files  ")).endswith("1.00 refused")


def test_many_hosts_are_in_groups_and_the_straggler_is_named() -> None:
    lines = shown(plan(60, IMAGENET))
    at = next(number for number, line in enumerate(lines) if line.startswith("files: host"))
    assert lines[at + 1].startswith("0–6  ")
    assert "21,269–22,521 most" in lines[at + 1]
    assert "░" in lines[at + 1]
    assert lines[at + 8].startswith("52–59 ")
    assert lines[at + 9].startswith("2 hosts (0, 3) have the most: 22,521 examples (+5.5% over")
    assert "the shaded part the most" in " ".join(lines)


def test_idle_hosts_of_a_group_are_counted() -> None:
    lines = shown(plan(100_000, IMAGENET), Screen(width=60))
    at = next(number for number, line in enumerate(lines) if line.startswith("files: host"))
    assert lines[at + 1].endswith(" 0–1,252 most, 11,476 idle")  # of 12,500 hosts 1,024 read
    assert all(line.endswith(" 0 idle") for line in lines[at + 2 : at + 9])


def test_a_sweep_shows_what_is_over_one() -> None:
    lines = shown(plan([8, 60, 64], IMAGENET), Screen(width=60))
    assert lines[:3] == [
        "To see: bars show what is over 1, so the shortest are best.",
        "even read: times the data is read; files imbalance: examples",
        "of the busiest host / mean.",
    ]
    rows = [line.split() for line in lines[3:]]
    assert rows[0] == ["hosts", "even", "read", "files", "imbalance"]
    assert [row[0] for row in rows[1:]] == ["8", "60", "64"]
    assert [row[-1] for row in rows[1:]] == ["1.000", "1.055", "1.000"]
    assert rows[2][1] == rows[2][3] == "█" * 19  # half of what is left of 60 columns


def test_a_sweep_names_idle_hosts_and_refusals() -> None:
    lines = shown(plan([2, 4]))
    assert lines[-2].endswith("1.333 1 idle, refused")
    assert lines[-1] == "files: refused and hosts idle with 4 hosts"


@pytest.mark.parametrize("num_hosts", [3, [1, 3]])
def test_without_examples_there_is_nothing_to_see(num_hosts: int | list[int]) -> None:
    assert shown(plan(num_hosts, EMPTY)) == ["To see: nothing, for there are no examples."]


@pytest.mark.parametrize(("num_hosts", "draw"), [(60, hosts_table), ([8, 60], sweep_table)])
def test_the_table_stays_as_it_is_and_the_picture_follows(num_hosts, draw) -> None:  # type: ignore[no-untyped-def]
    found = plan(num_hosts, IMAGENET)
    table = "".join(draw(found, PLAIN))
    pictures = "\n".join([*shown(found), ""])
    assert "".join(draw(found, Screen(pictures=True))) == f"{table}\n{pictures}"


SWEEPS = st.lists(NUMS_HOSTS, min_size=1, max_size=30)
CASES = st.tuples(st.one_of(plans(NUMS_HOSTS), plans(SWEEPS)), SCREENS)


def check_fits(case: tuple[HostsPlan, Screen]) -> None:
    found, screen = case
    lines = shown(found, screen)
    assert screen.picture_width < 40 or max(map(display_width, lines)) <= screen.picture_width
    comparison = found.comparisons[0]
    if len(found.comparisons) == 1 and comparison.num_examples:
        said = " ".join(lines)
        assert ("idle" in said) == any(one.idle_hosts for one in comparison.strategies)
        assert ("refuse" in said) == any(one.refusal for one in comparison.strategies)


@pytest.mark.long
def test_no_line_is_wider_than_the_screen() -> None:
    check_cases(CASES, check_fits, 4)


@pytest.mark.fuzz
def test_no_line_is_wider_than_the_screen_fuzz() -> None:
    check_cases(CASES, check_fits, FUZZ // 4, fuzz=True)
