"""Plans: the file instructions of each spec and host."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from shardctl.spec.host import Host
from shardctl.verbs.plan.answer import plan
from tests.cases import add_cases, counted
from tests.cli.conftest import Shardctl
from tests.golden import assert_evaluated
from tests.spec.tfds_splits import (
    ids_read,
    random_layout,
    random_spec,
    reads,
    tfds_reads,
    tfds_splits,
    toy_dataset,
)

TOY = {"train": (3, 4, 0, 3), "test": (2,)}


def test_one_host_is_planned_as_it_is_among_all() -> None:
    dataset = toy_dataset(TOY)
    everyone = plan(dataset, "all", hosts=3, drop_remainder=True).plans
    for index in range(3):
        host = Host(index=index, count=3)
        assert plan(dataset, "all", host=host, drop_remainder=True).plans == (everyone[index],)


def test_idle_hosts_are_said_and_too_many_refused() -> None:
    assert_evaluated(globals(), "hosts")


def test_every_host_reads_what_tfds_even_splits_reads() -> None:
    import tensorflow_datasets as tfds

    rng = random.Random(5)
    num_cases = 0
    while num_cases < 400:
        layout = random_layout(rng)
        spec = random_spec(rng, layout)
        dataset, hosts = toy_dataset(layout), rng.randint(1, 9)
        drop_remainder = rng.random() < 0.5
        theirs = tfds.even_splits(spec, n=hosts, drop_remainder=drop_remainder)
        splits = tfds_splits(layout)
        expected = [tfds_reads(splits, part) for part in theirs]
        if None in expected:
            continue
        found = plan(dataset, spec, hosts=hosts, drop_remainder=drop_remainder).plans
        assert [reads(p.file_instructions) for p in found] == expected, (layout, spec, hosts)
        num_cases += 1
    add_cases(num_cases)


def test_the_plans_of_all_hosts_read_each_example_once() -> None:
    rng = random.Random(6)
    for _ in counted(range(200)):
        lengths = tuple(rng.randint(0, 9) for _ in range(rng.randint(1, 6)))
        start, stop = sorted(rng.randint(0, sum(lengths)) for _ in range(2))
        found = plan(
            toy_dataset({"train": lengths}), f"train[{start}:{stop}]", hosts=rng.randint(1, 8)
        )
        shared = [
            example
            for p in found.plans
            for example in ids_read(p.file_instructions, {"train": lengths})
        ]
        assert shared == [("train", i) for i in range(sum(lengths))][start:stop]


@pytest.fixture(autouse=True)
def layout(shardctl: Shardctl) -> None:
    ones = [1] * 50
    Path("toy.yaml").write_text(
        "name: toy\nsplits:\n  train: {shard_lengths: [3, 0, 5]}\n"
        f"  many: {{shard_lengths: {ones}}}\n"
    )


@pytest.mark.parametrize(
    ("splits", "read"),
    [
        ("{train: {shard_lengths: [3]}, test: {shard_lengths: [2]}}", "train"),
        ("{only: {shard_lengths: [3]}}", "only"),
        ("{a: {shard_lengths: [3]}, b: {shard_lengths: [2]}}", None),
    ],
)
def test_without_a_spec_it_reads_what_simulate_reads(
    splits: str, read: str | None, shardctl: Shardctl
) -> None:
    Path("other.yaml").write_text(f"name: other\nsplits: {splits}\n")
    planned = shardctl("plan", "-d", "other.yaml")
    if read is not None:
        assert planned == shardctl("plan", read, "-d", "other.yaml")
        assert planned.exit_code == 0
        return
    simulated = shardctl("simulate", "-d", "other.yaml")
    assert planned == simulated
    assert planned.stderr == "error: no split given and other has no train; it has: a, b\n"
