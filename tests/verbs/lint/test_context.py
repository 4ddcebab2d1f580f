"""What rules ask of the specs and settings of a project, and of the chains of its stages."""

from __future__ import annotations

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
from tests.golden import assert_evaluated
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


def files(host_by: str, index: int) -> int:
    found = context(host_by=host_by, host=Host(index=index, count=4), **MIXED)
    return found.files_of_host(found.reads[0])


def cycle(how: dict[str, Any]) -> int:
    found = context("train", "train[:0]", evaluated=("test", "test[9:9]"), **how)
    assert [read.spec for read in found.trained] == ["train"]
    assert [read.spec for read in found.evaluated] == ["test"]
    return found.cycle_of_host(found.reads[0])


def counted(text: str) -> list[float | None]:
    return list(counts_of(parse_stages(text), lambda read: 10))


def test_files_cycles_and_elements_are_counted_as_on_file() -> None:
    assert_evaluated(globals(), "context")


@pytest.mark.parametrize("name", ["hosts", "take", "max_open_files"])
@pytest.mark.parametrize("value", [0, -3])
def test_numbers_of_a_usage_are_at_least_1(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=f"{value}: a number, at least 1, is needed"):
        Usage(**{name: value})  # type: ignore[arg-type]


# Chains of stages.


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
