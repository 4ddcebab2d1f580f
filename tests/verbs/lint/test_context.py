"""What rules ask of the specs and settings of a project, and of the chains of its stages."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import strategies as st

from shardctl.dataset.dataset import Split
from shardctl.errors import UsageError
from shardctl.spec.host import Host
from shardctl.spec.subsplit import SplitRange
from shardctl.stages.text import parse_stages
from shardctl.verbs.lint.context import LintContext, Usage, chains, counts_of, num_file_instructions
from tests.cases import check_cases
from tests.verbs.lint.lint_cases import linted

FOUR: dict[str, Any] = {"usage": {"hosts": 4}}
MIXED: dict[str, Any] = {"layout": {"train": (3, 0, 4, 5)}}


def context(*specs: str, **how: Any) -> LintContext:
    return linted(*specs, **how).context


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
    found = context("train", "train[:0]", evaluated=("test", "test[9:9]"), **how)
    assert [read.spec for read in found.trained] == ["train"]
    assert [read.spec for read in found.evaluated] == ["test"]
    assert found.cycle_of_host(found.reads[0]) == cycle


@pytest.mark.parametrize("name", ["hosts", "take", "max_open_files"])
@pytest.mark.parametrize("value", [0, -3])
def test_numbers_of_a_usage_are_at_least_1(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{value}: a number, at least 1, is needed"):
        Usage(**{name: value})  # type: ignore[arg-type]


# Chains of stages, and the counts of their elements beside lists made by hand.


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("skip(3) | take(5) | batch(2)", [10, 7, 5, 3]),
        ("batch(4) | batch(2) | unbatch | unbatch", [10, 3, 2, 3, 10]),
        ("batch(4, drop_remainder=True) | unbatch", [10, 2, 8]),
        ("batch(4) | skip(1) | unbatch", [10, 3, 2, None]),
        ("shard(3, 0) | repeat(2)", [10, 4, 8]),
        ("repeat | take(99) | cache", [10, math.inf, 99, 99]),
        ("repeat(-1) | skip(4)", [10, math.inf, math.inf]),
        ("take(0) | repeat", [10, 0, 0]),
        ("skip(-1)", [10, 0]),
        ("take(-1)", [10, 10]),
        ("filter | take(3) | repeat", [10, None, None, math.inf]),
        ("concatenate(range(4)) | batch(5)", [10, 14, 3]),
        ("concatenate(range(4) | repeat)", [10, math.inf]),
        ("concatenate(range(4) | filter)", [10, None]),
        ("zip(range(4), range(7)) | batch(3)", [4, 2]),
        ("zip(range(4), range(7) | filter)", [None]),
        ("sample_from_datasets([range(4), range(7)], seed=1)", [11]),
        ("sample_from_datasets([range(4), range(7) | repeat], seed=1)", [math.inf]),
        ("sample_from_datasets([range(4), range(7)], seed=1, stop_on_empty_dataset=True)", [None]),
        (
            "sample_from_datasets([range(4) | repeat, range(7) | repeat], seed=1, "
            "stop_on_empty_dataset=True)",
            [math.inf],
        ),
    ],
)
def test_elements_are_counted_stage_by_stage(text: str, counts: list[float | None]) -> None:
    assert list(counts_of(parse_stages(text), lambda read: 10)) == counts


def test_chains_come_from_the_outside_in_with_what_follows_them() -> None:
    text = "sample_from_datasets([train | cache | concatenate(test), test], seed=1) | batch(2)"
    found = list(chains(parse_stages(text)))
    assert [chain.place for chain in found] == [
        "",
        "input 0",
        "input 1",
        "concatenate, stage 2 of input 0",
    ]
    assert [[stage.name for stage in chain.behind] for chain in found] == [
        [],
        ["batch"],
        ["batch"],
        ["batch"],
    ]
    (cache, concatenate) = found[1].stages(lambda read: 10)
    assert (cache.place, concatenate.place) == ("stage 1 of input 0", "stage 2 of input 0")
    assert [stage.name for stage in cache.behind] == ["concatenate", "batch"]
    assert [stage.name for stage in concatenate.before] == ["cache"]
