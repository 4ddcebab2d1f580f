"""What the rules say of hosts, batches and sets of ids is what listing every example comes to."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.instructions.subsplit import resolve_subsplit
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.planning.lint.context import Usage, num_file_instructions
from shardctl.planning.lint.id_sets import as_spec, id_sets, in_both, num_ids, without
from shardctl.planning.lint.lint import Finding, lint
from tests.strategies import NUM_FUZZ, Recorder, count_cases

Deal = tuple[tuple[int, ...], str, int, int, bool, int]


def dealt(lengths: tuple[int, ...], host_by: str, num_hosts: int) -> list[list[int]]:
    """Return the ids of each host, by dealing cards."""
    files, first = [], 0
    for length in lengths:
        if length:
            files.append(list(range(first, first + length)))
        first += length
    hosts: list[list[int]] = [[] for _ in range(num_hosts)]
    if host_by == "files":
        for index, file in enumerate(files):
            hosts[index % num_hosts] += file
        return hosts
    for place in range(first):
        hosts[place % num_hosts].append(place)
    if host_by == "even":  # as many to each as by examples, in one piece
        sizes = [len(host) for host in hosts]
        hosts = [list(range(sum(sizes[:i]), sum(sizes[: i + 1]))) for i in range(num_hosts)]
    return hosts


def num_batches(num_examples: int, batch: int, drop: bool) -> int:
    """Count batches by filling them."""
    full, filled = 0, 0
    for _ in range(num_examples):
        filled += 1
        if filled == batch:
            full, filled = full + 1, 0
    return full + (filled > 0 and not drop)


def findings(case: Deal, split: str = "train") -> dict[str, Finding]:
    lengths, host_by, num_hosts, batch, drop, epochs = case
    dataset = Dataset(name="d", splits=(Split(name=split, shard_lengths=lengths),))
    settings: dict[str, Any] = {"host_by": host_by, "batch": batch, "drop_remainder": drop}
    report = lint(
        dataset,
        [split],
        settings=ReadSettings(**settings, epochs=epochs),
        usage=Usage(num_hosts=num_hosts),
    )
    return {finding.rule.code: finding for finding in report.findings}


def counts(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


deals = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=12).map(tuple),
    st.sampled_from(["even", "files", "examples"]),
    st.integers(2, 9),
    st.integers(1, 6),
    st.booleans(),
    st.integers(1, 3),
)


def agrees_by_hand(case: Deal) -> None:
    lengths, host_by, num_hosts, batch, drop, epochs = case
    found, hosts = findings(case), dealt(lengths, host_by, num_hosts)
    num_files = sum(length > 0 for length in lengths)
    steps = [num_batches(len(host) * epochs, batch, drop) for host in hosts]
    refused = not all(hosts) if host_by == "even" else num_files < num_hosts
    refused = refused and host_by != "examples"
    if not num_files:
        assert set(found) == {"SC044"}
        return
    uneven = min(steps) < max(steps) and not refused
    assert ("SC034" in found) == uneven, case
    if uneven:
        assert counts(found["SC034"].why)[:2] == [min(steps), max(steps)]
        dropped = [num_batches(len(host) * epochs, batch, True) for host in hosts]
        cures = not drop and min(dropped) == max(dropped)
        assert ("--drop-remainder" in found["SC034"].fix) == cures
    idle = sum(not host for host in hosts)
    few = host_by != "examples" and num_files < num_hosts
    assert ("SC031" in found) == few
    assert ("SC032" in found) == (host_by != "examples" and not few and num_files % num_hosts > 0)
    assert ("SC037" in found) == (idle > 0 and not (host_by == "files" and few))
    assert ("SC033" in found) == (host_by == "examples" and num_hosts >= 8)


def test_hosts_get_what_dealing_by_hand_gives(record_property: Recorder) -> None:
    record_property("cases", count_cases(deals, agrees_by_hand, 250))


@pytest.mark.fuzz
def test_hosts_get_what_dealing_by_hand_gives_fuzzed(record_property: Recorder) -> None:
    record_property("cases", count_cases(deals, agrees_by_hand, NUM_FUZZ, fuzz=True))


def test_an_evaluation_loses_what_fills_no_batch(record_property: Recorder) -> None:
    def check(case: Deal) -> None:
        lengths, host_by, num_hosts, batch, drop, _ = case
        found = findings(case, "test")
        hosts = dealt(lengths, host_by, num_hosts)
        lost = sum(len(host) - batch * num_batches(len(host), batch, True) for host in hosts)
        assert ("SC051" in found) == (drop and lost > 0)
        if "SC051" in found:
            assert counts(found["SC051"].why)[:2] == [lost, sum(lengths)]

    record_property("cases", count_cases(deals, check, 150))


def test_the_evaluation_of_flax_loses_272_of_10000() -> None:
    # https://flax.readthedocs.io/en/latest/guides/data_preprocessing/full_eval.html
    found = findings(((10_000,), "even", 1, 512, True, 1), "test")
    assert counts(found["SC051"].why) == [272, 10_000, 512]
    assert 10_000 - 272 == 19 * 512 == 9728


ranges = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30)))


def test_sets_of_ids_are_sets(record_property: Recorder) -> None:
    splits = {name: Split(name=name, shard_lengths=(7, 0, 13, 10)) for name in "ab"}
    toy = Dataset(name="toy", splits=tuple(splits.values()))

    def pieces(drawn: list[tuple[str, int, int]]) -> list[SplitRange]:
        return [
            SplitRange(split=splits[name], start=min(a, b), stop=max(a, b)) for name, a, b in drawn
        ]

    def ids(drawn: list[tuple[str, int, int]]) -> set[tuple[str, int]]:
        return {(p.split.name, i) for p in pieces(drawn) for i in range(p.start, p.stop)}

    def check(case: tuple[list[tuple[str, int, int]], list[tuple[str, int, int]]]) -> None:
        left, right = (id_sets(pieces(drawn)) for drawn in case)
        both = in_both(left, right)
        listed = {(n, i) for n, some in both.items() for a, b in some for i in range(a, b)}
        assert listed == ids(case[0]) & ids(case[1])
        assert num_ids(both) == len(listed)
        assert num_ids(left) == len(ids(case[0]))
        rest = as_spec(without(left, right), toy)
        parts = resolve_subsplit(rest, toy).ranges if rest else ()
        found = [(piece.split.name, i) for piece in parts for i in range(piece.start, piece.stop)]
        assert sorted(found) == sorted(ids(case[0]) - ids(case[1]))
        bounds = ((0, 7), (7, 20), (20, 30))
        touched = sum(
            any(start <= i < stop for i in range(p.start, p.stop))
            for p in pieces(case[0])
            for start, stop in bounds
        )
        assert num_file_instructions(tuple(pieces(case[0]))) == touched

    record_property("cases", count_cases(st.tuples(ranges, ranges), check, 300))
