"""Evaluations: the figures of Flax's page, hosts played in lockstep, and what cures them.

The page is "Processing the entire Dataset" of the Flax documentation.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Dataset, Split
from shardctl.errors import UsageError
from shardctl.settings.read_settings import ReadSettings, as_settings
from shardctl.spec.host import HostBy
from shardctl.verbs.eval.answer import (
    REMAINDERS,
    Evaluation,
    Hang,
    Remainder,
    evaluate,
    of_training,
)
from shardctl.verbs.eval.view import advice, cures, problems
from tests.cases import check_cases
from tests.golden import assert_evaluated
from tests.spec.host_cases import HostCase
from tests.strategies import shard_lengths


def toy(*lengths: int) -> Dataset:
    return Dataset(name="toy", splits=(Split(name="test", shard_lengths=lengths),))


@dataclass(frozen=True, kw_only=True)
class EvalCase:
    """An evaluation, and what each of its hosts gets."""

    lengths: tuple[int, ...]
    num_hosts: int
    num_devices: int
    batch: int
    host_by: HostBy
    remainder: Remainder = "ragged"

    def evaluation(self, **changed: Any) -> Evaluation:
        values = {**vars(self), **changed}
        settings = ReadSettings(host_by=values["host_by"])
        return evaluate(
            toy(*self.lengths),
            batch_per_device=values["batch"],
            hosts=values["num_hosts"],
            devices=values["num_devices"],
            remainder=values["remainder"],
            settings=settings,
        )

    def shares(self) -> list[list[int]]:
        """Return the examples of each host, written out."""
        slices = ((0, 0, sum(self.lengths)),)
        case = HostCase(
            dataset=toy(*self.lengths),
            slices=slices,
            num_hosts=self.num_hosts,
            strategy=self.host_by,
        )
        shares = [[e[2] for instruction in host for e in instruction] for host in case.reads()]
        if self.host_by == "examples":
            return [shares[0][i :: self.num_hosts] for i in range(self.num_hosts)]
        return shares


eval_cases = st.builds(
    EvalCase,
    lengths=shard_lengths(max_shards=6, max_length=40),
    num_hosts=st.integers(1, 7),
    num_devices=st.integers(1, 4),
    batch=st.integers(1, 8),
    host_by=st.sampled_from(["even", "even", "files", "examples"]),
    remainder=st.sampled_from(REMAINDERS),
)


def batches_by_hand(share: list[int], size: int) -> list[int]:
    """Return the sizes of the batches of a host."""
    return [len(share[start : start + size]) for start in range(0, len(share), size)]


def hang_by_hand(steps: list[int]) -> Hang | None:
    """Let all hosts step at once until one cannot while another can."""
    for step in range(max(steps) + 1):
        going = [host for host, count in enumerate(steps) if count > step]
        if going and len(going) < len(steps):
            return Hang(
                step=step,
                waiting=len(going),
                first_waiting=going[0],
                finished=len(steps) - len(going),
            )
    return None


MNIST = Dataset(
    name="mnist",
    splits=(
        Split(name="train", shard_lengths=(60_000,)),
        Split(name="test", shard_lengths=(10_000,)),
    ),
)


# The figures of the page, which says d=8, b=128 and d*b=512 of 4,097 examples; 8 x 128 is 1024.


def test_figures_are_those_of_the_page() -> None:
    alone = evaluate(MNIST, batch=512)
    assert (alone.spec, alone.num_batches.tolist()) == ("test", [19 + 1])
    assert alone.remainders.tolist() == [272]
    assert [alone.distinct_shapes(way) for way in REMAINDERS] == [2, 1, 1]
    of_eight = evaluate(
        MNIST, batch_per_device=512, devices=8
    )  # 2 batches of 8 x 512 and 1,808 more
    assert (of_eight.dropped_by_device_batch, of_eight.dropped_by_host_batch) == (272, 1808)
    six = evaluate(MNIST, batch=512, hosts=6)
    assert Counter(six.num_examples.tolist()) == {1667: 4, 1666: 2}
    assert (six.hang("ragged"), six.differing_step) == (None, 3)  # 3 batches and 131, or 130
    odd = evaluate(toy(4097), batch_per_device=64, devices=8, hosts=8)
    assert odd.num_batches.tolist() == [2, *[1] * 7]
    assert odd.hang("ragged") == Hang(step=1, waiting=1, first_waiting=0, finished=7)
    assert (odd.padding.tolist(), odd.padding_batches.tolist()) == ([511, *[0] * 7], [0, *[1] * 7])
    assert odd.hang("pad") is None
    wide = evaluate(toy(4097), batch_per_device=128, devices=8, hosts=8)
    assert (wide.host_batch, wide.num_batches.tolist()) == (1024, [1] * 8)
    assert list(problems(wide)) == []


# tf.data, and hosts in lockstep


def check_by_hand(case: EvalCase) -> None:
    found, shares = case.evaluation(), case.shares()
    size = case.num_devices * case.batch
    batches = [batches_by_hand(share, size) for share in shares]
    most = max(map(len, batches))
    assert found.num_examples.tolist() == list(map(len, shares))
    assert found.num_batches.tolist() == list(map(len, batches))
    for host, sizes in enumerate(batches):
        partial = [n for n in sizes if n < size]
        assert found.remainders[host] == sum(partial)
        assert found.padding[host] == sum(size - n for n in partial)
        assert found.padding_batches[host] == most - len(sizes)
    full = [[n for n in sizes if n == size] for sizes in batches]
    assert found.distinct_shapes("ragged") == len({n for sizes in batches for n in sizes})
    assert found.distinct_shapes("drop") == len({n for sizes in full for n in sizes})
    assert found.distinct_shapes("pad") == (1 if most else 0)
    assert found.dropped_by_host_batch == sum(map(len, shares)) - sum(map(sum, full))
    by_device = [n for share in shares for n in batches_by_hand(share, case.batch)]
    assert found.dropped_by_device_batch == sum(n for n in by_device if n < case.batch)
    assert found.hang("ragged") == hang_by_hand(list(map(len, batches)))
    assert found.hang("drop") == hang_by_hand(list(map(len, full)))
    assert found.hang("pad") is None
    hangs = {"ragged": found.hang("ragged"), "drop": found.hang("drop"), "pad": None}
    lost = found.dropped_by_host_batch if case.remainder == "drop" else 0
    assert any(problems(found)) == (hangs[case.remainder] is not None or lost > 0)
    differing = [
        step
        for step in range(min(map(len, batches)))  # a step that not all make is a hang
        if len({sizes[step] for sizes in batches}) > 1
    ]
    if case.remainder == "ragged":
        assert found.differing_step == (min(differing) if differing else None)
    assert advice(found) or hangs[case.remainder] is None


@pytest.mark.long
def test_figures_are_those_of_hosts_played_in_lockstep() -> None:
    check_cases(eval_cases, check_by_hand, 250)


# What is asked


def test_what_is_asked_is_chosen_or_refused() -> None:
    def of_splits(*names: str) -> Evaluation:
        splits = tuple(Split(name=name, shard_lengths=(4,)) for name in names)
        return evaluate(Dataset(name="toy", splits=splits), batch=2)

    assert_evaluated(globals(), "asked", of_splits)


def test_stages_epochs_and_endless_files_of_training_are_left_out() -> None:
    training = as_settings({"stages": "shuffle(9, seed=1) | repeat | batch(4)"})
    settings, said = of_training(training)
    assert settings == ReadSettings()
    assert "stages are left out" in said[0]
    assert of_training(training, {"stages"}) == (training, ())
    assert of_training(ReadSettings(epochs=3, repeat_files=True)) == (ReadSettings(), ())
    assert of_training(ReadSettings(loader="torch", epochs=3)) == (ReadSettings(loader="torch"), ())
    chain = as_settings({"loader": "torch", "stages": "DataLoader(batch_size=4)"})
    assert of_training(chain) == (chain, ())
    with pytest.raises(UsageError, match="--repeat-files has no end"):
        evaluate(MNIST, settings={"repeat_files": True}, batch=2**31 - 1)


def test_of_several_epochs_one_is_counted() -> None:
    once, twice = (evaluate(MNIST, settings={"epochs": n}, batch=512, hosts=3) for n in (1, 2))
    assert twice.num_examples.tolist() == once.num_examples.tolist() == [3334, 3333, 3333]
    assert advice(twice) == (*advice(once), "of --epochs only one is counted; others may differ")


# Cures: the nearest batch that hosts played in lockstep survive, and its cost.


def is_cured(case: EvalCase, batch: int) -> bool:
    size = case.num_devices * batch
    batches = [batches_by_hand(share, size) for share in case.shares()]
    if case.remainder == "ragged":
        return hang_by_hand(list(map(len, batches))) is None
    full = [[n for n in sizes if n == size] for sizes in batches]
    now = [batches_by_hand(share, case.num_devices * case.batch) for share in case.shares()]
    whole = [sum(n == case.num_devices * case.batch for n in sizes) for sizes in now]
    keeps_step = hang_by_hand(list(map(len, full))) is None and all(full)
    return keeps_step and (hang_by_hand(whole) is not None or batches == full)


def check_cures(case: EvalCase) -> None:
    evaluation = case.evaluation()
    found = {cure.change: cure for cure in cures(evaluation)}
    assert bool(found) == any(problems(evaluation))
    if not found:
        return
    limit = -(-max(map(len, case.shares())) // case.num_devices)
    sizes = [size for size in range(1, limit + 1) if size != case.batch and is_cured(case, size)]
    assert ("batch" in found) == bool(sizes)
    if sizes:
        cure = found["batch"]
        cured = case.evaluation(batch=cure.value)
        assert cured.hang(case.remainder) is None
        assert case.remainder == "drop" or not cured.num_lost
        steps = [cure.num_steps] * cured.num_hosts
        assert cured.num_steps(case.remainder).tolist() == steps
        assert cure.value in sizes
        assert abs(cure.value - case.batch) == min(abs(size - case.batch) for size in sizes)


def test_cures_are_the_nearest_that_hosts_in_lockstep_survive() -> None:
    check_cases(eval_cases, check_cures, 200)


def cures_of(remainder: Remainder) -> object:
    evaluation = evaluate(toy(4097), batch_per_device=64, devices=8, hosts=8, remainder=remainder)
    return [(c.change, c.value, c.num_steps) for c in cures(evaluation)]
