"""Plans: the file instructions of each spec and host."""

from __future__ import annotations

import random

import pytest

from shardctl.base.tfds_rules import DEFAULT_TEMPLATE
from shardctl.dataset.dataset import Dataset, Split
from shardctl.dataset.shard_files import ShardFiles
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.plan.answer import plan
from tests.cases import add_cases, counted
from tests.spec.tfds_splits import (
    ids_read,
    random_layout,
    random_spec,
    reads,
    tfds_reads,
    tfds_splits,
    toy_dataset,
)
from tests.strategies import error_line

TOY = {"train": (3, 4, 0, 3), "test": (2,)}


def imagenet() -> Dataset:
    files = ShardFiles.from_template(
        DEFAULT_TEMPLATE,
        dataset="imagenet2012",
        split="train",
        file_format="tfrecord",
        num_shards=1024,
    )
    train = Split.even(name="train", num_examples=1_281_167, num_shards=1024, files=(files,))
    return Dataset(name="imagenet2012", version="5.1.0", splits=(train,))


def test_one_percent_of_imagenet_is_the_eleven_instructions_of_the_tfds_guide() -> None:
    (found,) = plan(imagenet(), "train[44%:45%]").plans
    rows = [
        (i.filename.removeprefix("imagenet2012-"), i.skip, i.take) for i in found.file_instructions
    ]
    # https://www.tensorflow.org/datasets/determinism
    assert rows == [
        ("train.tfrecord-00450-of-01024", 700, 551),
        ("train.tfrecord-00451-of-01024", 0, 1251),
        ("train.tfrecord-00452-of-01024", 0, 1251),
        ("train.tfrecord-00453-of-01024", 0, 1251),
        ("train.tfrecord-00454-of-01024", 0, 1252),
        ("train.tfrecord-00455-of-01024", 0, 1251),
        ("train.tfrecord-00456-of-01024", 0, 1251),
        ("train.tfrecord-00457-of-01024", 0, 1251),
        ("train.tfrecord-00458-of-01024", 0, 1251),
        ("train.tfrecord-00459-of-01024", 0, 1251),
        ("train.tfrecord-00460-of-01024", 0, 1001),
    ]
    # 44% is 563713.48 and 45% is 576525.15 of 1281167.
    assert found.num_examples == 576_525 - 563_713 == sum(row[2] for row in rows)
    assert found.file_instructions[0].first_id == 563_713
    assert found.file_instructions[-1].first_id + 1001 == 576_525


def test_there_is_one_plan_for_each_spec_and_host_specs_first() -> None:
    found = plan(toy_dataset(TOY), "train", "test[:1]", hosts=2).plans
    assert [(p.spec, str(p.host), p.num_examples) for p in found] == [
        ("train", "0/2", 5),
        ("train", "1/2", 5),
        ("test[:1]", "0/2", 1),
        ("test[:1]", "1/2", 0),
    ]


def test_without_hosts_one_reader_reads_all() -> None:
    (found,) = plan(toy_dataset(TOY), "train").plans
    assert found.host is None
    rows = [(i.filename, i.skip, i.take, i.first_id) for i in found.file_instructions]
    assert rows == [
        ("toy-train.tfrecord-00000-of-00004", 0, 3, 0),
        ("toy-train.tfrecord-00001-of-00004", 0, 4, 3),
        ("toy-train.tfrecord-00003-of-00004", 0, 3, 7),
    ]


@pytest.mark.parametrize(
    ("drop_remainder", "ranges"),
    [
        (False, [(0, 4), (4, 7), (7, 10)]),  # 10 = 4 + 3 + 3
        (True, [(0, 3), (3, 6), (6, 9)]),
    ],
)
def test_hosts_share_the_examples(drop_remainder: bool, ranges: list[tuple[int, int]]) -> None:
    found = plan(toy_dataset(TOY), "train", hosts=3, drop_remainder=drop_remainder).plans
    assert [(p.ranges[0].start, p.ranges[0].stop) for p in found] == ranges


def test_one_host_is_planned_as_it_is_among_all() -> None:
    dataset = toy_dataset(TOY)
    everyone = plan(dataset, "all", hosts=3, drop_remainder=True).plans
    for index in range(3):
        host = Host(index=index, count=3)
        assert plan(dataset, "all", host=host, drop_remainder=True).plans == (everyone[index],)


@pytest.mark.parametrize(
    ("spec", "hosts", "warnings"),
    [
        ("train", None, []),
        ("train", 10, []),
        ("train", 11, ["'train': host 10/11 reads no examples"]),
        ("train", 13, ["'train': 3 hosts read no examples"]),
        ("test[1:1]", 2, ["'test[1:1]' selects no examples; TFDS refuses to read it"]),
    ],
)
def test_idle_hosts_are_said(spec: str, hosts: int | None, warnings: list[str]) -> None:
    assert list(plan(toy_dataset(TOY), spec, hosts=hosts).warnings) == warnings


def test_an_empty_plan_has_no_instructions() -> None:
    (found,) = plan(toy_dataset(TOY), "train[3:3]").plans
    assert found.file_instructions == ()
    assert found.num_examples == 0
    split = toy_dataset(TOY).split("train")
    assert found.ranges == (SplitRange(split=split, start=3, stop=3),)


def test_hosts_and_one_of_them_are_two_answers() -> None:
    dataset, one = toy_dataset(TOY), Host(index=0, count=3)
    assert error_line(lambda: plan(dataset, "train", hosts=5, host=one)) == (
        "--host and --hosts together: --host I/N already says how many there are"
    )
    assert error_line(lambda: plan(dataset, "train", drop_remainder=True)) == (
        "--drop-remainder needs --hosts N or --host I/N: one reader drops nothing"
    )


@pytest.mark.parametrize(
    ("hosts", "says"),
    [
        (0, "0 hosts: at least 1 is needed"),
        (-3, "-3 hosts: at least 1 is needed"),
        (
            10**9 - 1,
            "999999999 hosts: at most 1000000 are planned at once; choose one, as in 0/999999999",
        ),
        (10**9, "1000000000 hosts: at most 999999999 are counted"),
    ],
)
def test_a_number_of_hosts_that_cannot_be_planned_is_refused(hosts: int, says: str) -> None:
    assert error_line(lambda: plan(toy_dataset(TOY), "train", hosts=hosts)) == says


def test_a_bad_spec_among_good_ones_is_refused() -> None:
    line = error_line(lambda: plan(toy_dataset(TOY), "train", "trian"))
    assert line == "no split 'trian' in toy; it has: train, test"


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
