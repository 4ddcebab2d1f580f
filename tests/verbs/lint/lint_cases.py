"""Ways to read a toy dataset, in a word or two, and hosts whose examples are listed by hand."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.lint.answer import Finding, Lint, lint
from shardctl.verbs.lint.context import Usage

GIB = 1024**3


def dataset(
    *,
    train: Sequence[int] = (100,) * 64,
    test: Sequence[int] = (50,) * 8,
    num_bytes: int | None = 10 * GIB,
    **more: Any,
) -> Dataset:
    """A dataset of 64 shards of 100 examples, unless said otherwise."""
    splits = tuple(
        Split(name=name, shard_lengths=tuple(lengths), num_bytes=num_bytes)
        for name, lengths in (("train", train), ("test", test))
    )
    return Dataset(name="toy", splits=splits, **more)


def linted(
    *specs: str,
    evaluated: Sequence[str] = (),
    usage: Mapping[str, Any] | None = None,
    layout: Mapping[str, Any] | None = None,
    **read: Any,
) -> Lint:
    """Return what is found; without specs the default one is read."""
    return lint(
        dataset(**(layout or {})),
        specs or None,
        ReadSettings(**read),
        evaluated=evaluated,
        usage=Usage(**(usage or {})),
    )


def codes(found: Lint) -> list[str]:
    """Return the codes of what is found."""
    return [finding.rule.code for finding in found.findings]


def whys(found: Lint, code: str) -> list[str]:
    """Return why a rule finds something."""
    return [finding.why for finding in found.findings if finding.rule.code == code]


SEEDED: dict[str, Any] = {"shuffle_seed": 1, "buffer": 2000, "buffer_seed": 2}

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
    """Return what is found where hosts share a split, by its code."""
    lengths, host_by, hosts, batch, drop, epochs = case
    data = Dataset(name="d", splits=(Split(name=split, shard_lengths=lengths),))
    settings = {"host_by": host_by, "batch": batch, "drop_remainder": drop, "epochs": epochs}
    report = lint(data, [split], settings, usage=Usage(hosts=hosts))
    return {finding.rule.code: finding for finding in report.findings}


def counts(text: str) -> list[int]:
    """Return the numbers in a text."""
    return [int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", text)]


sharings = st.tuples(
    st.lists(st.integers(0, 9), min_size=1, max_size=12).map(tuple),
    st.sampled_from(["even", "files", "examples"]),
    st.integers(2, 9),
    st.integers(1, 6),
    st.booleans(),
    st.integers(1, 3),
)
