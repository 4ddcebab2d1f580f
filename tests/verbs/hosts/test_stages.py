"""What hosts share of pipelines with stages, mixtures among them, beside examples written out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

import shardctl
from shardctl.dataset.dataset import Dataset, Split
from shardctl.spec.host import HOST_MODES, Host, HostBy
from shardctl.verbs.eval.view import advice as advice_of
from shardctl.verbs.hosts.answer import advice
from tests.golden import assert_evaluated
from tests.spec.host_cases import Example, HostCase

LENGTHS = {"train": (8, 5, 0, 13, 7), "test": (7, 7, 6)}
TOY = Dataset(
    name="toy",
    splits=tuple(Split(name=name, shard_lengths=sizes) for name, sizes in LENGTHS.items()),
)


def shares(split: str, mode: HostBy, num_hosts: int) -> list[list[Example]]:
    """Return the examples of each host, written out, in the order of storage."""
    alone = Dataset(name="toy", splits=(TOY.split(split),))
    slices = ((0, 0, sum(LENGTHS[split])),)
    case = HostCase(dataset=alone, slices=slices, num_hosts=num_hosts, strategy=mode)
    found = [[e for instruction in host for e in instruction] for host in case.reads()]
    return [found[0][i::num_hosts] for i in range(num_hosts)] if mode == "examples" else found


def batches(examples: Iterable[Any], size: int, *, drop: bool = False) -> Iterator[list[Any]]:
    stream = iter(examples)
    while batch := list(islice(stream, size)):
        if len(batch) == size or not drop:
            yield batch


@pytest.mark.parametrize("stages", ["map | batch(7) | repeat(3)", "repeat(2) | map | batch(64)"])
@pytest.mark.parametrize("mode", ["even", "files"])
def test_steps_are_those_of_the_order_of_each_host(stages: str, mode: str) -> None:
    found = shardctl.hosts("imagenet2012", "validation", {"stages": stages}, hosts=5)
    steps = found.comparisons[0].strategy(mode).batches
    for index in range(5):
        settings = {"stages": stages, "host": Host(index=index, count=5), "host_by": mode}
        order = shardctl.plan_order("imagenet2012", "validation", settings).order
        assert steps is not None
        assert order.num_steps == steps[index]


@pytest.mark.parametrize("num_hosts", [1, 2, 3])
@pytest.mark.parametrize("mode", HOST_MODES)
def test_each_reader_of_a_mixture_is_shared_by_itself(mode: HostBy, num_hosts: int) -> None:
    stages = "zip(train, test) | batch(3)"
    found = shardctl.hosts(TOY, None, {"stages": stages}, hosts=num_hosts)
    comparison = found.comparisons[0]
    own = comparison.strategy(mode)
    assert (found.spec, comparison.num_examples) == ("train, test", 53)
    assert own.columns is not None
    assert own.batches is not None
    train, test = (shares(split, mode, num_hosts) for split in LENGTHS)
    for host in range(num_hosts):
        assert own.columns.num_examples[host] == len(train[host]) + len(test[host])
        pairs = list(zip(train[host], test[host], strict=False))
        assert own.batches[host] == len(list(batches(pairs, 3)))
    files = {"even": None, "files": 7, "examples": 7 * num_hosts}[mode]  # one has no examples
    assert files is None or own.columns.num_files.sum() == files


@pytest.mark.parametrize("mode", HOST_MODES)
@pytest.mark.parametrize("stop_on_empty", [True, False])
def test_steps_of_a_sampled_mixture_are_those_of_tensorflow(
    mode: HostBy, *, stop_on_empty: bool
) -> None:
    tf = pytest.importorskip("tensorflow")
    stages = (
        "sample_from_datasets(read(train), read(test), weights=[0.3, 0.7], seed=5, "
        f"stop_on_empty={stop_on_empty}) | shuffle(4, seed=1) | batch(2)"
    )
    found = shardctl.hosts(TOY, None, {"stages": stages}, hosts=3).comparisons[0].strategy(mode)
    assert found.batches is not None
    for host in range(3):
        parts = [tf.data.Dataset.range(len(shares(split, mode, 3)[host])) for split in LENGTHS]
        mixed = tf.data.Dataset.sample_from_datasets(
            parts, [0.3, 0.7], seed=5, stop_on_empty_dataset=stop_on_empty
        )
        assert found.batches[host] == len(list(mixed.shuffle(4, seed=1).batch(2)))


def test_a_mixture_that_a_host_has_no_file_of_is_refused_by_files() -> None:
    stages = "train | concatenate(test) | batch(4)"
    found = shardctl.hosts(TOY, None, {"stages": stages}, hosts=4).comparisons[0]
    assert found.strategy("files").refusal == (
        "TFDS refuses an InputContext with fewer files than hosts: 3 for 4"
    )
    assert found.strategy("even").refusal is None
    settings = shardctl.ReadSettings()
    assert (
        next(advice(found, settings)) == "2 readers: the hosts share the files of each separately"
    )


# Evaluations of pipelines with stages, played in plain Python.

PLAYED: dict[str, Callable[[list[Example], bool], Iterable[list[Example]]]] = {
    "map | batch(4)": lambda own, drop: batches(own, 4, drop=drop),
    "repeat(2) | batch(4)": lambda own, drop: batches([*own, *own], 4, drop=drop),
    "batch(4) | repeat(2)": lambda own, drop: [*batches(own, 4, drop=drop)] * 2,
    "skip(2) | take(5) | batch(4)": lambda own, drop: batches(own[2:7], 4, drop=drop),
    "batch(4) | take(1)": lambda own, drop: [*batches(own, 4, drop=drop)][:1],
    "batch(3) | unbatch | batch(4)": lambda own, drop: batches(own, 4, drop=drop),
    "take(3) | repeat(3) | batch(4)": lambda own, drop: batches(own[:3] * 3, 4, drop=drop),
    "cache | batch(4, drop_remainder=True)": lambda own, drop: batches(own, 4, drop=drop),
}


@pytest.mark.parametrize("num_hosts", [1, 2, 3])
@pytest.mark.parametrize("mode", HOST_MODES)
@pytest.mark.parametrize("stages", PLAYED)
def test_an_evaluation_of_stages_is_that_of_batches_filled_by_hand(
    stages: str, mode: HostBy, num_hosts: int
) -> None:
    settings = {"stages": stages, "host_by": mode}
    found = shardctl.evaluate(TOY, "train", settings, hosts=num_hosts, devices=2)
    assert found.host_batch == 4
    assert found.remainder == ("drop" if "drop" in stages else "ragged")
    whole = shares("train", mode, num_hosts)
    played = {drop: [list(PLAYED[stages](own, drop)) for own in whole] for drop in (False, True)}
    ragged, full = played[False], played[True]
    of_host = [[example for batch in host for example in batch] for host in ragged]
    assert found.num_examples.tolist() == list(map(len, of_host))
    assert found.num_steps("ragged").tolist() == list(map(len, ragged))
    assert found.num_steps("drop").tolist() == list(map(len, full))
    assert found.distinct_shapes("ragged") == len({len(b) for host in ragged for b in host})
    seen = Counter(example for host in of_host for example in host)
    kept = Counter(example for host in full for batch in host for example in batch)
    assert found.num_left_out == 33 - len(seen)
    assert found.dropped_by_host_batch == len(seen) - len(kept)
    shown = kept if found.remainder == "drop" else seen
    assert found.num_repeated == shown.total() - len(shown)
    steps = list(map(len, full if found.remainder == "drop" else ragged))
    hang = found.hang(found.remainder)
    assert (hang is not None) == (min(steps) != max(steps))


def test_an_evaluation_of_stages_says_what_they_repeat_and_leave_out() -> None:
    mixed = "sample_from_datasets(read(train), read(test), seed=5) | batch(8)"
    found = shardctl.evaluate(TOY, None, {"stages": mixed}, hosts=2)
    # 17 and 16 of 33 examples, and 10 of 20.
    assert found.num_examples.tolist() == [27, 26]
    assert (found.total, found.num_left_out, found.num_repeated) == (53, 0, 0)
    apart = shardctl.evaluate(TOY, "train", {"stages": "batch(4) | shuffle(9, seed=1)"}, hosts=2)
    assert apart.differing_step is None  # which batch is a partial one is not known
    found = shardctl.evaluate(TOY, "test", {"stages": "repeat(2) | map | batch(4)"}, hosts=2)
    assert advice_of(found) == (
        "--stages yields 20 examples twice, and a metric counts them twice; leave out the repeat",
    )
    taken = shardctl.evaluate(TOY, "test", {"stages": "take(8) | batch(4)"}, hosts=2)
    assert advice_of(taken) == ("4 of 20 examples lost (20.000%)", "--stages leaves out 4 examples")


def test_what_cannot_be_counted_is_refused() -> None:
    assert_evaluated(globals(), "stages")


def test_counts_do_not_wait_for_seeds_that_move_examples_alone() -> None:
    found = shardctl.evaluate(TOY, "train", {"stages": "shuffle(9) | map | batch(4)"}, hosts=2)
    assert found.num_steps("ragged").tolist() == [5, 4]
    assert np.array_equal(found.num_examples, [17, 16])


def test_steps_without_batches_or_end_are_none() -> None:
    for stages in ("map | repeat(2)", "repeat | batch(2)"):
        found = shardctl.hosts(TOY, "test", {"stages": stages}, hosts=3).comparisons[0]
        assert found.strategy("even").batches is None
    stages = "batch(2, drop_remainder=True) | take(2)"
    steps = shardctl.hosts(TOY, "test", {"stages": stages}, hosts=3).comparisons[0]
    assert steps.strategy("even").batches is not None
    assert steps.strategy("even").batches.tolist() == [2, 2, 2]  # type: ignore[union-attr]


def test_readers_of_several_datasets_are_called_by_them() -> None:
    stages = "read(test, data='mnist') | concatenate(read(test, data='cifar10')) | batch(4)"
    found = shardctl.hosts("imagenet2012", None, {"stages": stages}, hosts=2)
    assert found.spec == "mnist/test, cifar10/test"
    steps = found.comparisons[0].strategy("even").num_batches
    assert steps is not None
    assert (steps.min, steps.max) == (2500, 2500)
