"""What one way of sharing comes to: figures by brute force, batches and permutations by tf.data."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import pytest
from hypothesis import strategies as st

from tests.cases import check_cases
from tests.spec.host_cases import HostCase, host_cases
from tests.verbs.hosts.comparisons import IMAGENET, batches_by_hand, compared, of_case, toy


@dataclass(frozen=True, kw_only=True)
class Batched:
    case: HostCase
    batch: int
    epochs: int
    drop: bool


def check_figures(batched: Batched) -> None:
    case = batched.case
    settings = {"batch": batched.batch, "epochs": batched.epochs, "drop_remainder": batched.drop}
    found = of_case(case, **settings).strategy(case.strategy)
    reads = case.reads()
    shares = [[example for instruction in host for example in instruction] for host in reads]
    if case.strategy == "examples":
        shares = [shares[0][i :: case.num_hosts] for i in range(case.num_hosts)]
    counts = list(map(len, shares))
    total = sum(map(len, case.parts()))
    # One after the other, so that nobody relies on how much TFDS would read ahead.
    taken = sum(instruction[-1][2] + 1 for host in reads for instruction in host)
    assert found.read_amplification == (float(Fraction(taken, total)) if total else None)
    assert found.idle_hosts == counts.count(0)
    assert found.imbalance == (
        pytest.approx(max(counts) / (total / case.num_hosts)) if total else None
    )
    straggler = found.num_examples.straggler
    assert (counts[straggler], counts.index(max(counts))) == (max(counts), straggler)
    batches = [batches_by_hand(n, batched.epochs, batched.batch, batched.drop) for n in counts]
    assert found.batches is not None
    assert found.batches.tolist() == batches
    assert found.is_uneven == (len(set(batches)) > 1)


@pytest.mark.long
def test_figures_are_those_of_a_brute_force_count() -> None:
    cases = st.builds(
        Batched,
        case=host_cases(),
        batch=st.integers(1, 20),
        epochs=st.integers(1, 3),
        drop=st.booleans(),
    )
    check_cases(cases, check_figures, 120)


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize(("num_files", "num_hosts"), [(12, 3), (13, 3), (20, 4), (9, 4), (5, 4)])
def test_hosts_with_equally_many_files_share_a_permutation(
    seed: int, num_files: int, num_hosts: int
) -> None:
    tf = pytest.importorskip("tensorflow")
    permutations = set()
    for host in range(num_hosts):
        # TFDS core/reader.py: shard, then shuffle with a buffer as long as the whole list.
        files = tf.data.Dataset.range(num_files).shard(num_hosts, host)
        shuffled = files.shuffle(num_files, seed=seed).as_numpy_iterator()
        permutations.add(tuple((int(file) - host) // num_hosts for file in shuffled))
    comparison = compared(toy(*[6] * num_files), num_hosts, shuffle_seed=seed)
    assert comparison.strategy("files").same_permutation == (len(permutations) == 1)


def test_a_permutation_is_one_only_where_a_seed_fixes_it() -> None:
    dataset = toy(*[6] * 12)
    assert [s.same_permutation for s in compared(dataset, 4).strategies] == [None] * 3
    open_order = compared(dataset, 4, shuffle_files=True)
    assert [s.same_permutation for s in open_order.strategies] == [None] * 3
    fixed = compared(dataset, 7, shuffle_seed=1)
    # 12 files of 6 for 7 hosts: ids 0 to 10 lie in 2 files, 11 to 21 in 3; whole files are 2 or 1.
    assert [s.same_permutation for s in fixed.strategies] == [False, False, True]


def test_more_hosts_than_files_is_impossible_with_the_reason() -> None:
    files = compared(toy(5, 0, 5, 5), 4).strategy("files")
    assert files.refusal == "TFDS refuses an InputContext with fewer files than hosts: 3 for 4"
    assert files.idle_hosts == 1
    assert compared(toy(5, 0, 5, 5), 3).strategy("files").refusal is None
    # TFDS core/reader.py: one input pipeline is never refused.
    assert compared(toy(5), 1).strategy("files").refusal is None


def test_hosts_without_examples_are_refused_under_even_and_idle_under_examples() -> None:
    comparison = compared(toy(5), 7)
    even, _, examples = comparison.strategies
    assert even.refusal is not None
    assert "2 hosts" in even.refusal
    assert (even.idle_hosts, examples.idle_hosts, examples.refusal) == (2, 2, None)


def test_64_hosts_with_ds_shard_read_the_data_64_times() -> None:
    even, files, examples = compared(IMAGENET, 64).strategies
    assert 1.0 < (even.read_amplification or 0) < 1.03
    assert (files.read_amplification, files.shared_files, files.num_files.max) == (1.0, 0, 16)
    assert (examples.read_amplification, examples.shared_files) == (64.0, 1024)
    assert examples.num_files.max == 1024


def test_shares_of_a_subsplit_are_those_of_its_range() -> None:
    dataset = toy(4, 4, 4)
    case = HostCase(dataset=dataset, slices=((0, 2, 9),), num_hosts=2, strategy="files")
    found = compared(dataset, 2, "train[2:9]").strategy("files")
    assert found.columns is not None
    assert found.columns.num_examples.tolist() == [sum(map(len, host)) for host in case.reads()]
    whole = compared(toy(5, 4), 2, batch=2, drop_remainder=True)
    assert (whole.num_repeated, whole.num_left_out) == (0, 0)  # what batches drop is counted there
