"""The chain that settings can say; test_short_form.py compares it with TensorFlow."""

from __future__ import annotations

import pytest

from shardctl.settings.short_form import chain_of
from shardctl.stages.stages import Batch, Repeat, Shard, Shuffle
from shardctl.stages.text import parse_stages

SHUFFLE, REPEAT, BATCH = Shuffle(buffer=9, seed=7), Repeat(count=3), Batch(size=4)


@pytest.mark.parametrize(
    ("text", "chain"),
    [
        ("shuffle(9, seed=7) | repeat(3) | batch(4)", (SHUFFLE, REPEAT, BATCH)),
        ("shard(2, 1) | map | shuffle(9, seed=7)", (Shard(num_shards=2, index=1), SHUFFLE)),
        ("cache | shuffle(9, seed=7) | repeat(3) | map | batch(4) | map", (SHUFFLE, REPEAT, BATCH)),
        ("repeat(3) | cache", (REPEAT,)),
        ("take(-1) | skip(0) | repeat(1) | shard(1, 0) | prefetch(0)", ()),
    ],
)
def test_stages_that_are_the_chain(text: str, chain: tuple[object, ...]) -> None:
    found = chain_of(parse_stages(text), reads_alike=True)
    assert found is not None
    assert tuple(found.values()) == chain
    if "cache" in text:
        assert chain_of(parse_stages(text), reads_alike=False) is None


@pytest.mark.parametrize(
    "text", ["repeat(3) | shuffle(9)", "shuffle(9) | map | repeat(3)", "repeat", "range(3)", "test"]
)
def test_stages_that_are_another_chain(text: str) -> None:
    assert chain_of(parse_stages(text), reads_alike=True) is None
