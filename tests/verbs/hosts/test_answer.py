"""Hosts compared: figures by brute force, permutations by tf.data, advice."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings
from shardctl.verbs.hosts.answer import Comparison, advice, hosts, problems, reason
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.spec.host_cases import HostCase, host_cases

IMAGENET = Dataset(
    name="imagenet2012",
    splits=(
        Split.even(name="train", num_examples=1_281_167, num_shards=1024, num_bytes=146999114192),
    ),
)


def toy(*lengths: int, **facts: Any) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="train", shard_lengths=lengths, **facts),))


def compared(dataset: Dataset, num_hosts: int, spec: str = "train", **settings: Any) -> Comparison:
    return hosts(dataset, spec, ReadSettings(**settings), hosts=num_hosts).comparisons[0]


def of_case(case: HostCase, **settings: Any) -> Comparison:
    spec = "+".join(
        f"{case.dataset.splits[split].name}[{start}:{stop}]" for split, start, stop in case.slices
    )
    return compared(case.dataset, case.num_hosts, spec, reverse=case.reverse, **settings)


def batches_by_hand(num_examples: int, epochs: int, batch: int, drop: bool) -> int:
    """Return how many batches there are, by filling them one after the other."""
    stream = iter(range(num_examples * epochs))
    count = 0
    while contents := list(islice(stream, batch)):
        count += len(contents) == batch or not drop
    return count


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
    for shuffled in (None, True):
        found = compared(dataset, 4, shuffle_files=shuffled).strategies
        assert [one.same_permutation for one in found] == [None] * 3
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


def best(comparison: Comparison) -> str | None:
    return None if comparison.recommended is None else comparison.recommended.name


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


def test_advice_and_reasons_are_these() -> None:
    assert_evaluated(globals(), "advice", advice, reason)


def test_epochs_of_more_examples_than_63_bits_count_are_refused() -> None:
    with pytest.raises(UsageError, match="--epochs 4611686018427387904 of 8 examples is too many"):
        hosts(toy(4, 4), "train", ReadSettings(epochs=1 << 62), hosts=2)


def test_a_source_without_files_is_not_shared_by_tfds() -> None:
    with pytest.raises(UsageError, match="has no files for TFDS to share"):
        hosts("range(23)", hosts=2)
