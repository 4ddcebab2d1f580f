"""Hosts compared: figures by brute force, permutations by tf.data, verdicts as named cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.core.dataset.dataset import Dataset, Split
from shardctl.core.hosts.host import HostBy
from shardctl.core.instructions.split_range import SplitRange
from shardctl.core.settings.read_settings import ReadSettings
from shardctl.errors import UsageError
from shardctl.planning.hosts.advice import advice, problems, reason
from shardctl.planning.hosts.hosts import Comparison, hosts
from shardctl.planning.hosts.strategy import Strategy
from tests.cases import add_cases, check_cases
from tests.core.hosts.host_cases import HostCase, host_cases

IMAGENET = Dataset(
    name="imagenet2012",
    splits=(Split.even(name="train", num_examples=1_281_167, num_shards=1024, num_bytes=10**11),),
)


def toy(*lengths: int, **facts: Any) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="train", shard_lengths=lengths, **facts),))


def compared(dataset: Dataset, num_hosts: int, spec: str = "train", **settings: Any) -> Comparison:
    return hosts(dataset, spec, num_hosts, ReadSettings(**settings)).comparisons[0]


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

    def strategy(self) -> Strategy:
        settings = ReadSettings(
            batch=self.batch,
            epochs=self.epochs,
            drop_remainder=self.drop,
            reverse=self.case.reverse,
        )
        spec = "+".join(
            f"{self.case.dataset.splits[split].name}[{start}:{stop}]"
            for split, start, stop in self.case.slices
        )
        plan = hosts(self.case.dataset, spec, self.case.num_hosts, settings)
        return plan.comparisons[0].strategy(self.case.strategy)


def check_figures(batched: Batched) -> None:
    case, found = batched.case, batched.strategy()
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


def test_figures_are_those_of_a_brute_force_count() -> None:
    cases = st.builds(
        Batched,
        case=host_cases(),
        batch=st.integers(1, 20),
        epochs=st.integers(1, 3),
        drop=st.booleans(),
    )
    check_cases(cases, check_figures, 500)


def test_batches_are_as_many_as_those_of_tf_data() -> None:
    tf = pytest.importorskip("tensorflow")
    num_cases = 0
    for epochs, batch, drop in [(1, 7, False), (1, 7, True), (3, 7, False), (2, 16, True)]:
        strategy = compared(
            toy(20, 31, 4), 4, batch=batch, epochs=epochs, drop_remainder=drop
        ).strategy("files")
        assert strategy.columns is not None
        assert strategy.batches is not None
        for num_examples, found in zip(
            strategy.columns.num_examples.tolist(), strategy.batches.tolist(), strict=True
        ):
            read = tf.data.Dataset.range(num_examples).repeat(epochs)
            assert sum(1 for _ in read.batch(batch, drop_remainder=drop)) == found
            num_cases += 1
    add_cases(num_cases)


def test_64_hosts_with_ds_shard_read_the_data_64_times() -> None:
    comparison = compared(IMAGENET, 64)
    amplification = [strategy.read_amplification for strategy in comparison.strategies]
    assert amplification[1:] == [1.0, 64.0]
    assert 1.0 < (amplification[0] or 0) < 1.03
    assert [strategy.shared_files for strategy in comparison.strategies][1:] == [0, 1024]
    assert [strategy.num_files.max for strategy in comparison.strategies][1:] == [16, 1024]


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


@pytest.mark.parametrize(
    ("dataset", "num_hosts", "settings", "expected"),
    [
        pytest.param(IMAGENET, 1, {}, "even", id="one host: as TFDS does by default"),
        pytest.param(IMAGENET, 64, {"batch": 256}, "files", id="files divide: no file read twice"),
        pytest.param(IMAGENET, 60, {"batch": 256}, "even", id="files leave batches unequal"),
        pytest.param(IMAGENET, 60, {}, "even", id="files are 5% out of balance"),
        pytest.param(IMAGENET, 2000, {}, "even", id="more hosts than files"),
        pytest.param(toy(60_000), 8, {}, "even", id="one file, which TFDS does not deal"),
        pytest.param(toy(10, 10), 2, {}, "even", id="both read once: TFDS's default"),
        pytest.param(toy(3), 4, {}, "examples", id="more hosts than examples"),
        pytest.param(toy(), 4, {}, None, id="nothing to read"),
    ],
)
def test_the_strategy_that_serves_best(
    dataset: Dataset, num_hosts: int, settings: dict[str, Any], expected: str | None
) -> None:
    comparison = compared(dataset, num_hosts, **settings)
    best = comparison.recommended
    assert (None if best is None else best.name) == expected
    assert reason(comparison)


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


def test_file_shares_follow_the_order_of_the_files() -> None:
    dataset = toy(1, 2, 4, 8, 16)
    there, back = (
        compared(dataset, 2, reverse=reverse).strategy("files") for reverse in (False, True)
    )
    assert there.columns is not None
    assert back.columns is not None
    assert there.columns.num_examples.tolist() == [1 + 4 + 16, 2 + 8]
    assert back.columns.num_examples.tolist() == [16 + 4 + 1, 8 + 2]
    odd = compared(toy(1, 2, 4, 8), 2, reverse=True).strategy("files").columns
    assert odd is not None
    assert odd.num_examples.tolist() == [8 + 2, 4 + 1]


def test_a_sweep_has_the_figures_of_each_number_of_hosts() -> None:
    counts = [1, 7, 64, 2000]
    sweep = hosts(IMAGENET, "train", counts, ReadSettings(batch=32)).comparisons
    for comparison, count in zip(sweep, counts, strict=True):
        single = compared(IMAGENET, count, batch=32)
        assert comparison.num_hosts == count
        assert reason(comparison) == reason(single)
        for ours, theirs in zip(comparison.strategies, single.strategies, strict=True):
            assert (ours.num_examples, ours.num_bytes, ours.num_batches) == (
                theirs.num_examples,
                theirs.num_bytes,
                theirs.num_batches,
            )


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
    return hosts(case.dataset, spec, case.num_hosts, settings).comparisons[0]


def test_check_finds_idle_hosts_unequal_batches_and_amplification() -> None:
    cases = st.tuples(
        host_cases(), st.none() | st.integers(1, 20), st.sampled_from([1.0, 1.1, 2.0, 100.0])
    )
    check_cases(cases, lambda case: check_problems(*case), 500)


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


def test_epochs_count_in_batches_alone() -> None:
    once, thrice = (compared(toy(10, 10), 2, batch=8, epochs=n).strategy("even") for n in (1, 3))
    assert (once.num_examples, once.num_bytes) == (thrice.num_examples, thrice.num_bytes)
    assert once.batches is not None
    assert thrice.batches is not None
    assert (once.batches.tolist(), thrice.batches.tolist()) == ([2, 2], [4, 4])


def test_shares_of_a_subsplit_are_those_of_its_range() -> None:
    dataset = toy(4, 4, 4)
    case = HostCase(dataset=dataset, slices=((0, 2, 9),), num_hosts=2, strategy="files")
    found = compared(dataset, 2, "train[2:9]").strategy("files")
    assert found.columns is not None
    assert found.columns.num_examples.tolist() == [sum(map(len, host)) for host in case.reads()]
    assert case.ranges == [SplitRange(split=dataset.splits[0], start=2, stop=9)]


@pytest.mark.parametrize("count", [0, -1, 1_000_001])
def test_numbers_of_hosts_out_of_range_are_refused(count: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 1000000"):
        hosts(IMAGENET, "train", count)


def test_data_sources_are_said_to_differ() -> None:
    dataset = Dataset(name="d", splits=IMAGENET.splits, file_format="array_record")
    assert "seeks" in hosts(dataset, "train", 2).warnings[0]
