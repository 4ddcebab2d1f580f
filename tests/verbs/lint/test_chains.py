"""The chains of a pipeline and the counts of their elements, beside lists made by hand."""

from __future__ import annotations

import math

import pytest

from shardctl.stages.text import parse_stages
from shardctl.verbs.lint.context import chains, counts_of


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
