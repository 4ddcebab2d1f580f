"""Verdicts on a comparison of hosts: reasons, advice, and what fails a check."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.settings.read_settings import ReadSettings
from shardctl.spec.host import HostBy
from shardctl.verbs.hosts.advice import advice, problems, reason
from shardctl.verbs.hosts.answer import Comparison, hosts
from tests.cases import check_cases
from tests.spec.hosts.host_cases import HostCase, host_cases
from tests.verbs.hosts.comparisons import IMAGENET, batches_by_hand, compared, toy


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
    comparison = _comparison_of(case, batch)
    assert bool(problems(comparison, case.strategy, bound)) == wrong


def _comparison_of(case: HostCase, batch: int | None) -> Comparison:
    spec = "+".join(
        f"{case.dataset.splits[split].name}[{start}:{stop}]" for split, start, stop in case.slices
    )
    settings = ReadSettings(batch=batch, reverse=case.reverse)
    return hosts(case.dataset, spec, settings, hosts=case.num_hosts).comparisons[0]


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
        assert part in line
        assert line.startswith(f"{num_hosts:,} hosts, {strategy}: ")


def test_advice_says_how_to_make_batches_equal() -> None:
    uneven = compared(toy(513, 512), 2, batch=512)
    said = advice(uneven, ReadSettings(batch=512))
    assert said[1] == (
        "even: hosts make 1 to 2 batches, so a collective hangs at step 1; "
        "take(1) or --drop-remainder gives every host 1"
    )


def test_advice_warns_of_ds_shard_after_files_shuffled_without_a_seed() -> None:
    settings = ReadSettings(shuffle_files=True)
    said = advice(compared(toy(4, 4), 2, shuffle_files=True), settings)
    assert any("overlap" in line for line in said)


def test_ds_shard_after_different_file_orders_reads_examples_twice() -> None:
    tf = pytest.importorskip("tensorflow")
    orders = [[0, 1, 2], [1, 0, 2]]  # what two unseeded hosts may shuffle three files to
    seen: list[int] = []
    for host, order in enumerate(orders):
        files = tf.data.Dataset.from_tensor_slices(order)
        read = files.interleave(
            lambda f: tf.data.Dataset.range(5).map(lambda i, f=f: i + 5 * tf.cast(f, tf.int64)),
            cycle_length=1,
        )
        seen += [int(x) for x in read.shard(2, host)]
    assert len(seen) == 15
    assert len(set(seen)) < 15


@pytest.mark.parametrize(
    ("lengths", "num_hosts", "settings", "said"),
    [
        ((10,), 1, {}, []),
        ((), 4, {}, []),
        ((10, 10), 2, {}, ["2 files divide among 2 hosts, 1 each"]),
        ((10,) * 6, 2, {}, ["6 files divide among 2 hosts, 3 each"]),
        ((1,) * 2004, 2, {}, ["2,004 files divide among 2 hosts, 1,002 each"]),
        ((10,), 4, {}, ["1 file does not divide among 4 hosts; 4 would"]),
        ((1,) * 7, 3, {}, ["7 files do not divide among 3 hosts; 6 or 9 would"]),
        (
            (10, 10),
            2,
            {"shuffle_seed": 1},
            ["2 files divide", "hosts with equally many files and one seed open them in the same"],
        ),
    ],
)
def test_advice_says_whether_files_divide_and_shuffles_are_shared(
    lengths: tuple[int, ...], num_hosts: int, settings: dict[str, Any], said: list[str]
) -> None:
    found = advice(compared(toy(*lengths), num_hosts, **settings), ReadSettings(**settings))
    assert len(found) == len(said)
    assert all(line.startswith(words) for line, words in zip(found, said, strict=True))


@pytest.mark.parametrize(
    ("lengths", "num_hosts", "settings", "said"),
    [
        ((10,), 1, {}, "one host reads the same under each"),
        ((), 4, {}, "TFDS reads none of them: there are fewer examples than hosts"),
        (
            (10, 10),
            2,
            {},
            "10 examples a host, 1.00 times read; examples reads 2.00 times",
        ),
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
    assert reason(compared(toy(*lengths), num_hosts, **settings)) == said


def test_what_cures_a_hang_is_an_argument_of_whoever_reads() -> None:
    """33 examples of 5 hosts are 6 or 7 each: batches of 6 are 1 or 2."""
    found = hosts("mnist", "train[:33]", {"batch": 6}, hosts=5)
    (hang,) = [line for line in advice(found.comparisons[0], found.settings) if "hangs" in line]
    assert "take(1) or --drop-remainder gives every host 1" in hang
