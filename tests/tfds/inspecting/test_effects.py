"""What each stage does to the order, in words."""

from __future__ import annotations

import pytest

from shardctl.stages.part import Source, Stage
from shardctl.stages.text import parse_stages

WORDS = {
    "shuffle(10, seed=1)": "mixes within a buffer of 10, anew for each iterator",
    "shuffle(-2, seed=1, reshuffle=false)": "mixes all elements, the same in every pass",
    "repeat": "repeats without end",
    "repeat(3)": "repeats 3 times",
    "batch(1000, drop_remainder=true)": (
        "puts 1,000 into one element; drops a last batch that is not full"
    ),
    "unbatch": "takes batches apart; keeps the order",
    "shard(3, 1)": "keeps 1 element of 3, from number 1 on",
    "take(5)": "ends after 5 elements",
    "skip(1)": "drops the first 1 element",
    "cache": "later passes repeat the first whole one",
    "map": "keeps the order; parts a shuffle from a repeat",
    "prefetch": "keeps the order; reads ahead",
    "concatenate(test)": "goes on with another dataset",
    "filter": "drops elements by what is in them",
    "range(5)": "counts 5 elements",
    "zip(a, b)": "puts one of each of 2 datasets into one element",
    "sample_from_datasets([a, b])": (
        "draws the next of 2 datasets by its weight; ends when all have ended"
    ),
    "choose_from_datasets([a, b], choices=range(2))": (
        "takes the next of 2 datasets as chosen; ends at the first that ends"
    ),
}


@pytest.mark.parametrize("text", WORDS)
def test_effects_in_words(text: str) -> None:
    pipeline = parse_stages(text)
    part: Stage | Source = pipeline.stages[0] if pipeline.stages else pipeline.source
    assert part.effect == WORDS[text]
