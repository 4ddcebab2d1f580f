"""What it takes to follow a pipeline, said before it is begun."""

from __future__ import annotations

import pytest

from shardctl.errors import UsageError
from shardctl.order.sources import progress_of
from shardctl.stages.pipelines import readers_of
from shardctl.stages.text import parse_stages


def _progress(text: str, size: int = 1000, pass_index: int = 0) -> bool:
    stages = parse_stages(text)
    sizes = dict.fromkeys(readers_of(stages), size)
    return progress_of(stages, sizes, pass_index) is not None


def test_counts_of_a_chain_take_no_time() -> None:
    for text in ("repeat(10_000_000_000) | batch(4)", "shuffle(9, seed=1) | map | repeat(9)"):
        assert not _progress(text)


@pytest.mark.parametrize(
    "text", ["sample_from_datasets([a, b], seed=1)", "filter(kept=x) | repeat(3)"]
)
def test_a_mixture_and_a_filter_are_followed_one_by_one(text: str) -> None:
    assert _progress(text)


def test_what_takes_more_than_a_day_is_refused() -> None:
    text = "sample_from_datasets([a | repeat(10), b | repeat(90)], seed=1)"
    with pytest.raises(UsageError, match=r"100,000,000,000 examples .* about 1 day, .* take\(N\)"):
        _progress(text, size=10**9)
    assert _progress(f"{text} | batch(10) | take(100)", size=10**9)


def test_so_many_iterators_are_refused() -> None:
    text = "shuffle(9, seed=1) | map | repeat(5_000_000)"
    with pytest.raises(UsageError, match="5,000,000 times, each with seeds"):
        _progress(text)
    with pytest.raises(UsageError, match="6,000,000 times"):
        _progress("shuffle(9, seed=1) | map | repeat(2_000_000)", pass_index=2)
    assert not _progress(f"{text} | take(5)")


def test_more_positions_than_there_are_is_refused() -> None:
    with pytest.raises(UsageError, match="positions go up to"):
        _progress("repeat(9_000_000_000_000_000_000)")
