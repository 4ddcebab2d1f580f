"""What rules ask of the specs and settings of a project."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Split
from shardctl.errors import UsageError
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange
from shardctl.verbs.lint.context import LintContext, Usage, num_file_instructions
from tests.cases import check_cases
from tests.verbs.lint.rules.rule_cases import case

FOUR: dict[str, Any] = {"usage": {"hosts": 4}}
MIXED: dict[str, Any] = {"layout": {"train": (3, 0, 4, 5)}}


def context(*specs: str, **how: Any) -> LintContext:
    return case(*specs, **how).lint().context


def test_specs_without_examples_are_neither_trained_nor_evaluated_on() -> None:
    found = context("train[:5]", "train[:0]", evaluated=("test", "test[9:9]"))
    assert [read.spec for read in found.trained] == ["train[:5]"]
    assert [read.spec for read in found.evaluated] == ["test"]


@pytest.mark.parametrize(
    ("spec", "num_files"),
    [
        ("train", 3),
        ("train[:3]", 1),
        ("train[2:4]", 2),
        ("train[:0]", 0),
        ("train[:1]+train[11:]", 2),
        ("train[:1]+train[1:3]", 2),
    ],
)
def test_files_are_counted_once_a_range_and_without_empty_shards(spec: str, num_files: int) -> None:
    assert context(spec, **MIXED).reads[0].num_files == num_files


def test_a_range_is_as_many_files_as_have_an_example_in_it() -> None:
    split = Split(name="train", shard_lengths=(7, 0, 13, 10))
    bounds = ((0, 7), (7, 7), (7, 20), (20, 30))

    def check(drawn: list[tuple[int, int]]) -> None:
        ranges = [SplitRange(split=split, start=min(a, b), stop=max(a, b)) for a, b in drawn]
        touched = sum(
            any(start <= i < stop for i in range(piece.start, piece.stop))
            for piece in ranges
            for start, stop in bounds
        )
        assert num_file_instructions(tuple(ranges)) == touched

    check_cases(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))), check, 200)


@pytest.mark.parametrize(
    ("how", "num_hosts", "host"),
    [({}, 1, "0/1"), (FOUR, 4, "0/4"), ({"host": Host(index=2, count=8)}, 8, "2/8")],
)
def test_the_host_is_the_one_named_or_else_the_first(
    how: dict[str, Any], num_hosts: int, host: str
) -> None:
    found = context(**how)
    assert (found.num_hosts, str(found.host)) == (num_hosts, host)


@pytest.mark.parametrize("host_by", ["even", "files", "examples"])
def test_only_an_input_context_hides_the_length(host_by: str) -> None:
    assert context(host_by=host_by).knows_length
    alone = {"host": Host(index=0, count=1)}  # is an InputContext too
    for how in (FOUR, alone):
        assert context(host_by=host_by, **how).knows_length == (host_by != "files")


# 3, 4 and 5 examples in files 0, 2 and 3. Evenly among 4 hosts, 3 each: [0, 3), [3, 6), ...
@pytest.mark.parametrize(
    ("host_by", "index", "num_files"),
    [
        ("even", 0, 1),
        ("even", 1, 1),
        ("even", 2, 2),
        ("even", 3, 1),
        ("files", 0, 1),
        ("files", 2, 1),
        ("files", 3, 0),
        ("examples", 3, 3),
    ],
)
def test_a_host_interleaves_the_files_of_its_share(
    host_by: str, index: int, num_files: int
) -> None:
    found = context(host_by=host_by, host=Host(index=index, count=4), **MIXED)
    assert found.files_of_host(found.reads[0]) == num_files


@pytest.mark.parametrize(
    ("how", "cycle"),
    [
        ({}, 16),
        ({"cycle": 100}, 64),
        ({"cycle": 100, "usage": {"hosts": 32}}, 2),
        ({"cycle": 100, "repeat_files": True}, 100),
        ({"layout": {"ordered": True}}, 1),
    ],
)
def test_no_more_files_are_open_than_the_host_has(how: dict[str, Any], cycle: int) -> None:
    found = context(**how)
    assert found.cycle_of_host(found.reads[0]) == cycle


@pytest.mark.parametrize(
    ("how", "several"),
    [({}, False), ({"epochs": 2}, True), ({"repeat_files": True}, True), ({"pass_index": 1}, True)],
)
def test_examples_are_read_again_by_epochs_repeats_and_later_passes(
    how: dict[str, Any], several: bool
) -> None:
    assert context(**how).several_epochs == several


@pytest.mark.parametrize(
    ("how", "races", "reshuffles"),
    [
        ({}, False, False),
        ({"shuffle_seed": 1}, False, True),
        ({"shuffle_seed": 1, "reshuffle": False}, False, False),
        ({"shuffle_files": True}, True, True),
        ({"shuffle_files": True, "deterministic": True}, False, True),
        ({"shuffle_files": True, "deterministic": False}, False, True),
    ],
)
def test_files_come_as_they_may_where_they_are_shuffled_without_a_seed(
    how: dict[str, Any], races: bool, reshuffles: bool
) -> None:
    found = context(**how)
    assert (found.races, found.reshuffles_files) == (races, reshuffles)


@pytest.mark.parametrize(
    ("file_format", "said", "reads_data_source"),
    [
        ("tfrecord", None, False),
        ("array_record", None, True),
        ("parquet", None, False),
        ("array_record", False, False),
        ("parquet", True, True),
    ],
)
def test_only_array_record_is_read_by_as_data_source_where_nobody_said(
    file_format: str, said: bool | None, reads_data_source: bool
) -> None:
    found = context(usage={"as_data_source": said}, layout={"file_format": file_format})
    assert found.reads_data_source == reads_data_source


@pytest.mark.parametrize("name", ["hosts", "take", "max_open_files"])
@pytest.mark.parametrize("value", [0, -3])
def test_numbers_of_a_usage_are_at_least_1(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{value}: a number, at least 1, is needed"):
        Usage(**{name: value})  # type: ignore[arg-type]
