"""Even splits: what each host reads, against `tfds.even_splits`."""

from __future__ import annotations

import functools
import random

import pytest
from hypothesis import strategies as st

from shardctl.spec.host import even_range, even_split
from shardctl.spec.subsplit import SplitRange, file_instructions, resolve_subsplit
from tests.cases import check_cases, counted
from tests.spec.tfds_splits import (
    ids_read,
    random_layout,
    random_spec,
    reads,
    tfds_reads,
    tfds_runs_backwards,
    tfds_splits,
    toy_dataset,
)
from tests.strategies import error_line


@pytest.mark.parametrize(
    ("num_examples", "count", "drop_remainder", "expected"),
    [
        (11, 3, False, [4, 4, 3]),  # the example in TFDS's documentation
        (11, 3, True, [3, 3, 3]),
        (12, 3, False, [4, 4, 4]),
        (2, 3, False, [1, 1, 0]),  # more hosts than examples
        (2, 3, True, [0, 0, 0]),
        (0, 2, False, [0, 0]),
        (7, 1, True, [7]),
    ],
)
def test_the_first_hosts_take_what_does_not_divide(
    num_examples: int, count: int, drop_remainder: bool, expected: list[int]
) -> None:
    parts = [even_range(5, 5 + num_examples, i, count, drop_remainder) for i in range(count)]
    assert [len(part) for part in parts] == expected


def test_each_part_of_a_sum_is_split_by_itself() -> None:
    ranges = resolve_subsplit("train[:3]+test", toy_dataset({"train": (9,), "test": (3,)})).ranges
    parts = [even_split(ranges, index, 2) for index in range(2)]
    read = [[(p.split.name, p.start, p.stop) for p in part] for part in parts]
    # Host 0 has 2 and 2 of 6, not 3.
    assert read == [
        [("train", 0, 2), ("test", 0, 2)],
        [("train", 2, 3), ("test", 2, 3)],
    ]


def test_hosts_partition_what_one_reader_reads() -> None:
    def check(case: tuple[int, int, int, bool]) -> None:
        start, num_examples, count, drop_remainder = case
        parts = [
            list(even_range(start, start + num_examples, i, count, drop_remainder))
            for i in range(count)
        ]
        sizes = {len(part) for part in parts}
        shared = [example for part in parts for example in part]
        kept = num_examples - num_examples % count if drop_remainder else num_examples
        assert shared == list(range(start, start + kept))
        assert max(sizes) - min(sizes) <= (0 if drop_remainder else 1)

    cases = st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(1, 60), st.booleans())
    check_cases(cases, check, 150)


@pytest.mark.long
def test_hosts_of_a_sum_read_together_what_one_reader_reads() -> None:
    rng = random.Random(4)
    for _ in counted(range(300)):
        layout = {
            name: lengths for name, lengths in random_layout(rng).items() if sum(lengths) < 99
        }
        layout["train"] = (3, 0, 8)
        dataset = toy_dataset(layout)
        ranges = resolve_subsplit("+".join([*layout, "train[2:9]"]), dataset).ranges
        count = rng.randint(1, 9)
        alone = ids_read(file_instructions(ranges), layout)
        together = [
            example
            for index in range(count)
            for example in ids_read(file_instructions(even_split(ranges, index, count)), layout)
        ]
        assert sorted(together) == sorted(alone)


def test_hosts_read_what_tfds_even_splits_reads() -> None:
    import tensorflow_datasets as tfds

    rng = random.Random(3)
    num_cases, num_read = 1500, 0
    for _ in counted(range(num_cases)):
        layout = random_layout(rng)
        splits, dataset = tfds_splits(layout), toy_dataset(layout)
        spec = random_spec(rng, layout)
        count, drop_remainder = rng.choice([1, 2, 3, 7, 64]), rng.random() < 0.5
        index = rng.randrange(count)
        theirs = tfds.even_splits(spec, n=count, drop_remainder=drop_remainder)[index]
        expected = tfds_reads(splits, theirs)
        if error_line(functools.partial(resolve_subsplit, spec, dataset)) is not None:
            # Both refuse, backwards slices too: even_splits asserts that a part does not end
            # before it starts.
            assert expected is None, (layout, spec)
            continue
        assert not tfds_runs_backwards(splits, spec)
        ranges = resolve_subsplit(spec, dataset).ranges
        part = even_split(ranges, index, count, drop_remainder=drop_remainder)
        assert reads(file_instructions(part)) == expected, (layout, spec, index, count)
        num_read += bool(expected)
    assert num_read > num_cases / 5


@pytest.mark.parametrize(
    ("index", "count", "says"),
    [
        (0, 0, "0 hosts: at least 1 is needed"),  # tfds.even_splits(n=0) is an empty list
        (0, -2, "-2 hosts: at least 1 is needed"),
        (3, 3, "host 3 of 3: hosts count from 0 to 2"),
        (-1, 3, "host -1 of 3: hosts count from 0 to 2"),
    ],
)
def test_a_host_that_is_none_is_refused(index: int, count: int, says: str) -> None:
    split = toy_dataset({"train": (3,)}).split("train")
    ranges = [SplitRange(split=split, start=0, stop=3)]
    assert error_line(lambda: even_split(ranges, index, count)) == says
