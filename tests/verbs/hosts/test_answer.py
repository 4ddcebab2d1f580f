"""Hosts compared: which way serves best and why, what to change, what fails a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HostBy
from shardctl.verbs.hosts.answer import advice, hosts, problems, reason
from tests.cases import check_cases
from tests.spec.host_cases import HostCase, host_cases
from tests.verbs.hosts.comparisons import IMAGENET, batches_by_hand, compared, of_case, toy


@pytest.mark.parametrize(
    ("dataset", "num_hosts", "settings", "expected"),
    [
        pytest.param(IMAGENET, 1, {}, "even", id="one host: as TFDS does by default"),
        pytest.param(IMAGENET, 64, {"batch": 256}, "files", id="files divide: no file read twice"),
        pytest.param(IMAGENET, 60, {"batch": 256}, "even", id="files leave batches unequal"),
        pytest.param(IMAGENET, 60, {}, "even", id="files are 5% out of balance"),
        pytest.param(IMAGENET, 2000, {}, "even", id="more hosts than files"),
        pytest.param(toy(60_000), 8, {}, "even", id="one file, which TFDS does not split"),
        pytest.param(toy(10, 10), 2, {}, "even", id="both read once: TFDS's default"),
        pytest.param(toy(3), 4, {}, "examples", id="more hosts than examples"),
        pytest.param(toy(), 4, {}, None, id="nothing to read"),
    ],
)
def test_the_strategy_that_serves_best(
    dataset: Dataset, num_hosts: int, settings: dict[str, Any], expected: str | None
) -> None:
    best = compared(dataset, num_hosts, **settings).recommended
    assert (None if best is None else best.name) == expected


@pytest.mark.parametrize(
    ("num_files", "num_hosts", "expected"),
    [(1024, 64, (1024,)), (1024, 60, (1020, 1080)), (3, 8, (8,)), (8, 8, (8,)), (0, 8, (8,))],
)
def test_shard_counts_that_divide_evenly(
    num_files: int, num_hosts: int, expected: tuple[int, ...]
) -> None:
    assert compared(toy(*[2] * num_files), num_hosts).even_shard_counts == expected
    for count in expected:
        files = compared(toy(*[2] * count), num_hosts).strategy("files")
        assert (files.num_files.min, files.imbalance) == (files.num_files.max, 1.0)


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_numbers_of_hosts_out_of_range_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 1000000"):
        hosts(IMAGENET, "train", hosts=count)


def test_a_repr_names_the_best_strategy_for_each_of_a_few_numbers_of_hosts() -> None:
    assert repr(hosts(toy(4, 4), "train", hosts=range(1, 7))) == (
        "<HostsPlan toy train: 1 host (best: even), 2 hosts (best: even), 3 hosts (best: even), "
        "4 hosts (best: even) and 2 more>"
    )
    (none,) = hosts(toy(0), "train", hosts=2).comparisons
    assert repr(none) == "<Comparison 2 hosts: TFDS refuses all>"


def check_problems(case: HostCase, batch: int | None, bound: float) -> None:
    reads = case.reads()
    shares = [sum(map(len, host)) for host in reads]
    if case.strategy == "examples":
        shares = [len(range(i, shares[0], case.num_hosts)) for i in range(case.num_hosts)]
    total = sum(map(len, case.parts()))
    taken = sum(instruction[-1][2] + 1 for host in reads for instruction in host)
    wrong = 0 in shares or (total > 0 and taken / total > bound)
    if batch is not None:
        wrong = wrong or len({batches_by_hand(n, 1, batch, False) for n in shares}) > 1
    assert bool(problems(of_case(case, batch=batch), case.strategy, bound)) == wrong


@pytest.mark.long
def test_check_finds_idle_hosts_unequal_batches_and_amplification() -> None:
    cases = st.tuples(
        host_cases(), st.none() | st.integers(1, 20), st.sampled_from([1.0, 1.1, 2.0, 100.0])
    )
    check_cases(cases, lambda case: check_problems(*case), 120)


@pytest.mark.parametrize(
    ("strategy", "num_hosts", "settings", "expected"),
    [
        ("even", 64, {"batch": 256}, []),
        ("files", 60, {"batch": 256}, ["84 to 88 batches"]),
        ("examples", 64, {}, ["read amplification 64 is over 1.1"]),
        ("files", 1025, {}, ["TFDS refuses", "1 idle"]),
        ("even", 700, {}, ["read amplification"]),
    ],
)
def test_problems_are_named(
    strategy: HostBy, num_hosts: int, settings: dict[str, Any], expected: Sequence[str]
) -> None:
    found = problems(compared(IMAGENET, num_hosts, **settings), strategy)
    assert len(found) == len(expected)
    for line, part in zip(found, expected, strict=True):
        assert line.startswith(f"{num_hosts:,} hosts, {strategy}: {part}")


@pytest.mark.parametrize(
    ("lengths", "num_hosts", "settings", "said"),
    [
        ((10,), 1, {}, []),
        ((), 4, {}, []),
        ((10, 10), 2, {}, ["2 files divide among 2 hosts, 1 each"]),
        ((1,) * 2004, 2, {}, ["2,004 files divide among 2 hosts, 1,002 each"]),
        ((10,), 4, {}, ["1 file does not divide among 4 hosts; 4 would"]),
        ((1,) * 7, 3, {}, ["7 files do not divide among 3 hosts; 6 or 9 would"]),
        (
            (513, 512),
            2,
            {"batch": 512},
            [
                "2 files divide",
                "even: hosts make 1 to 2 batches, so a collective hangs at step 1; "
                "take(1) or --drop-remainder gives every host 1",
            ],
        ),
        # 4 or 5 batches, also where partial ones are dropped.
        ((9, 8), 2, {"batch": 2}, ["2 files", "even: hosts make 4 to 5 batches, so a collective "]),
        ((10, 10), 2, {"shuffle_seed": 1}, ["2 files divide", "hosts with equally many files and"]),
        ((4, 4), 2, {"shuffle_files": True}, ["2 files", "examples: without --shuffle-seed each"]),
    ],
)
def test_advice_says_whether_files_divide_and_what_hangs(
    lengths: tuple[int, ...], num_hosts: int, settings: dict[str, Any], said: list[str]
) -> None:
    found = list(advice(compared(toy(*lengths), num_hosts, **settings), ReadSettings(**settings)))
    assert len(found) == len(said)
    assert all(line.startswith(words) for line, words in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("lengths", "num_hosts", "settings", "said"),
    [
        ((10,), 1, {}, "one host reads the same under each"),
        ((), 4, {}, "TFDS reads none of them: there are fewer examples than hosts"),
        ((10, 10), 2, {}, "10 examples a host, 1.00 times read; examples reads 2.00 times"),
        ((4, 4), 2, {"batch": 4}, "1 batch on every host, 1.00 times read; examples reads 2.00 ti"),
        (
            (4, 4, 4),
            2,
            {"batch": 4},
            "2 batches on every host, 1.17 times read; files gives 1 to 2 batches; "
            "examples reads 2.00 times",
        ),
        # All are uneven, and 5 of 13 are as many times the mean. Even shares read 5, 4 and 5 + 3.
        (
            (5, 5, 3),
            3,
            {"batch": 2},
            "3 to 5 examples a host, 1.00 times read; even reads 1.31 times; "
            "examples reads 3.00 times",
        ),
        (
            (3,),
            4,
            {},
            "1 host is idle under it, TFDS refuses the others; even is refused; files is refused",
        ),
    ],
)
def test_a_reason_is_the_merit_of_one_and_the_faults_of_the_others(
    lengths: tuple[int, ...], num_hosts: int, settings: dict[str, Any], said: str
) -> None:
    assert reason(compared(toy(*lengths), num_hosts, **settings)).startswith(said)


def test_epochs_of_more_examples_than_63_bits_count_are_refused() -> None:
    with pytest.raises(UsageError, match="--epochs 4611686018427387904 of 8 examples is too many"):
        hosts(toy(4, 4), "train", ReadSettings(epochs=1 << 62), hosts=2)
