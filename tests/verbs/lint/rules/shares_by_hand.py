"""Hosts, and the examples that each gets, listed one by one; what the linter finds in them."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.answer import Finding, lint
from shardctl.verbs.lint.context import Usage

Sharing = tuple[tuple[int, ...], str, int, int, bool, int]


def shares_of(lengths: tuple[int, ...], host_by: str, num_hosts: int) -> list[list[int]]:
    """Return the ids of each host, handed out one after the other."""
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


def findings(case: Sharing, split: str = "train") -> dict[str, Finding]:
    lengths, host_by, num_hosts, batch, drop, epochs = case
    dataset = Dataset(name="d", splits=(Split(name=split, shard_lengths=lengths),))
    settings: dict[str, Any] = {"host_by": host_by, "batch": batch, "drop_remainder": drop}
    report = lint(
        dataset,
        [split],
        settings=ReadSettings(**settings, epochs=epochs),
        usage=Usage(hosts=num_hosts),
    )
    return {finding.rule.code: finding for finding in report.findings}


def counts(text: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


sharings = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=12).map(tuple),
    st.sampled_from(["even", "files", "examples"]),
    st.integers(2, 9),
    st.integers(1, 6),
    st.booleans(),
    st.integers(1, 3),
)
